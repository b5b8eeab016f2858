"""Six strangers, from the first page to a right answer.

Question: how long does somebody read and wait before the first answer, and what stands in the way?

How to run:

    python benchmarks/bench_walks.py

Each walk is what the pages say, on a file such as that person has: the command or the code that
they give. Sections that are read are named below; reading is 200 words a minute.
Files are simulated, but for penguins (package palmerpenguins) and a network of NetworkX.

Prints: a row for each person with words read, minutes of reading, seconds of waiting, the share of
right answers among rows without a label, and the verdict. Wall seconds, so other work on the
machine makes them longer.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
WORDS_A_MINUTE = 200
FIRST = {"../README.md": ["", "Install", "Six lines"]}
READ = {
    "table": {"start.md": ["", "I have a table"]},
    "network": {"graphs.md": ["", "Files of Gephi and others"]},
    "scene": {"scenes.md": ["", "Labels"]},
    "tissue": {"cells.md": ["", "Label all cells", "Tissues: cells with places"]},
    "labelling team": {"labelling_page.md": ["", "Start", "Several people"]},
    "uncertainty": {"extending.md": ["", "A likelihood"]},
}
TEXTS = {
    "bill": "invoice payment account due amount bank transfer receipt",
    "trip": "flight hotel booking gate luggage airport ticket seat",
    "team": "meeting agenda project deadline review minutes slides call",
}
COMMON = "please thanks the we you for regards today"


def words_read(pages: dict[str, list[str]]) -> int:
    """Return the number of words of the first page and of sections of others."""
    n_words = 0
    for name, sections in {**FIRST, **pages}.items():
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
        found = {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
        n_words += sum(len(found[section].split()) for section in sections)
    return n_words


def graphuq(folder: Path, *arguments: str) -> str:
    """Run the command in a fresh process, and return what it printed."""
    code = "import sys; from graphuq.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def right(folder: Path, truth: np.ndarray) -> float:
    """Return the share of right classes among rows without a label."""
    import pandas as pd

    table = pd.read_csv(folder / "out" / "predictions.csv")
    free = table["given"].isna().to_numpy()
    return float((table["label"].astype(str).to_numpy() == truth)[free].mean())


def table(folder: Path) -> tuple[str, Callable[[], float]]:
    """A data scientist: measurements with words and gaps, 15 of 344 species known."""
    from palmerpenguins import load_penguins

    penguins = load_penguins()
    truth = penguins["species"].to_numpy(dtype=str)
    known = np.random.default_rng(0).choice(len(truth), 15, replace=False)
    penguins["species"] = np.where(np.isin(np.arange(len(truth)), known), truth, "")
    penguins.to_csv(folder / "penguins.csv", index=False)
    arguments = ["classify", "penguins.csv", "--label-column", "species", "--output", "out"]
    refused = graphuq(folder, *arguments)  # names the options that are missing
    options = re.findall(r"--encode|--impute", refused)
    return graphuq(folder, *arguments, *options), lambda: right(folder, truth)


def network(folder: Path) -> tuple[str, Callable[[], float]]:
    """A student of networks: two of 34 members have chosen a side."""
    import networkx as nx

    club = nx.karate_club_graph()
    truth = np.array([club.nodes[node]["club"] for node in club])
    for node in set(club) - {0, 33}:
        del club.nodes[node]["club"]
    nx.write_gml(club, folder / "club.gml")
    arguments = ["classify", "club.gml", "--label-column", "club", "-o", "out"]
    return graphuq(folder, *arguments), lambda: right(folder, truth)


def scene(folder: Path) -> tuple[str, Callable[[], float]]:
    """A person with a scene of 12,000 pixels, of which 24 are known."""
    import pandas as pd
    import rasterio
    from rasterio.transform import from_origin

    rng, names = np.random.default_rng(0), np.array(["meadow", "water", "wood"])
    fields = np.repeat([[0, 1, 2]], 40, axis=1) + np.zeros((100, 120), int)
    fields[40:60, 30:90] = (fields[40:60, 30:90] + 1) % 3
    bands = rng.normal(size=(3, 6))[fields] + rng.normal(scale=0.5, size=(100, 120, 6))
    place = {"crs": "EPSG:32633", "transform": from_origin(5e5, 5e6, 10, 10)}
    shape = {"height": 100, "width": 120, "count": 6, "dtype": "float32"}
    with rasterio.open(folder / "scene.tif", "w", driver="GTiff", **shape, **place) as file:
        file.write(np.moveaxis(bands, -1, 0).astype(np.float32))
    pixels = [rng.permutation(np.argwhere(fields == k))[:8] for k in range(3)]
    rows, columns = np.concatenate(pixels).T
    labels = {"x": 5e5 + 10 * columns + 5, "y": 5e6 - 10 * rows - 5, "class": names.repeat(8)}
    pd.DataFrame(labels).to_csv(folder / "places.csv", index=False)
    shown = graphuq(folder, "map", "scene.tif", "--labels", "places.csv", "--output", "maps")

    def share() -> float:
        with rasterio.open(folder / "maps" / "classes.tif") as file:
            named = np.array(["", *(file.tags(1)[str(k)] for k in (1, 2, 3))])
            found = named[file.read(1)] == names[fields]
        found[rows, columns] = False
        return float(found.sum() / (found.size - len(rows)))

    return shown, share


def tissue(folder: Path) -> tuple[str, Callable[[], float]]:
    """A biologist: 1,500 cells with genes and places, eight of each of five types known."""
    import graphuq as gq

    made = gq.datasets.simulated_tissue(1500, contrast=2.2, patchiness=0.97, rng=1)
    adata = made.to_anndata(made.known(8, rng=1))
    fitted = gq.external.scanpy.label_cells(adata, "few", use_rep="X")
    free = (adata.obs["few"] == "Unknown").to_numpy()
    found = (adata.obs["gq_label"].astype(str) == made.classes).to_numpy()[free]
    return fitted.result_.trust.headline, lambda: float(found.mean())


def labelling_team(folder: Path) -> tuple[str, Callable[[], float]]:
    """Two people with 300 texts and three classes, who give twelve labels each."""
    import graphuq as gq

    rng, names = np.random.default_rng(0), list(TEXTS)
    truth = np.array([names[row % 3] for row in range(300)])
    texts = [
        " ".join([*rng.choice(TEXTS[name].split(), 6), *rng.choice(COMMON.split(), 4)])
        for name in truth
    ]
    page = gq.label(None, texts, labels=folder / "labels.jsonl", open_browser=False)
    for turn in range(24):
        row = page.session.wait_until_current().queue[0] if turn > 2 else turn
        page.session.label(("ada", "bob")[turn % 2], [int(row)], str(truth[row]))
    page.forecasts.wait()
    found = page.predictions()
    page.close()
    free = found["given"].isna().to_numpy()
    share = float((found["label"].to_numpy() == truth)[free].mean())
    return page.session.result.trust.headline, lambda: share


def uncertainty(folder: Path) -> tuple[str, Callable[[], float]]:
    """A researcher: the likelihood of docs/extending.md, sampled and approximated."""
    command = [sys.executable, ROOT / "examples" / "own_likelihood.py"]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return shown.partition(";")[2].strip(), lambda: float(re.search(r"accuracy ([\d.]+)", shown)[1])


WALKS = {
    "table": table,
    "network": network,
    "scene": scene,
    "tissue": tissue,
    "labelling team": labelling_team,
    "uncertainty": uncertainty,
}


def main() -> None:
    """Walk each way and print a row for it."""
    chosen = sys.argv[1:] or list(WALKS)
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            shown, share = WALKS[name](Path(folder))
            seconds = time.perf_counter() - began
            n_words = words_read(READ[name])
            verdict = re.search(r"Verdict: (\w+)", shown)
            words = verdict[1] if verdict else shown
            minutes = f"{n_words} words, {n_words / WORDS_A_MINUTE:.1f} min"
            print(f"| {name} | {minutes} | {seconds:.0f} s | {share():.3f} | {words} |", flush=True)


if __name__ == "__main__":
    main()
