"""``graphuq track``: a folder of frames → location of an object in each, with uncertainty."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.cli import atomic_folder, output_folder, the_facts

CHECKPOINT = ".track.npz"


def track(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Folder of PNG frames. The object is brighter than half."
        ),
    ],
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Picture, or folder with one picture for each frame; dark pixels are missing.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder for the files that are written."
        ),
    ] = Path("out/track"),
    n_eigenpairs: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Number of Laplacian eigenpairs. More of them resolve finer detail.",
        ),
    ] = 300,
    n_samples: Annotated[
        int, typer.Option(metavar="NUMBER", help="Largest number of kept draws of each chain.")
    ] = 4000,
    n_chains: Annotated[int, typer.Option(metavar="NUMBER", help="Number of chains.")] = 4,
    n_warmup: Annotated[
        int, typer.Option(metavar="NUMBER", help="Warm-up steps, which are discarded.")
    ] = 1000,
    random_state: Annotated[
        int,
        typer.Option(metavar="NUMBER", help="Random seed. The same seed gives the same result."),
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run of the same command.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no progress bar and no table.")
    ] = False,
) -> None:
    """Locate an object in every frame of FOLDER, although pixels are missing or wrong.

    For each frame, three pictures are written: the probability of the object, its location
    (probability above one half), and the width of the 95 % interval. The output folder also
    receives frames.csv, an overview of each kind, and posterior.nc.
    """
    with output_folder(output):
        import numpy as np
        import pandas as pd

        from graphuq.cli import without_formulas
        from graphuq.results import soft_label_interval, soft_label_mean
        from graphuq_papers.films.figures import frame_panels, plot_frames
        from graphuq_papers.films.frames import load_frames, write_picture
        from graphuq_papers.films.tracking import track as infer_location

        frames = load_frames(folder, mask)
        checkpoint = output / CHECKPOINT
        if not resume:
            checkpoint.unlink(missing_ok=True)
        result = infer_location(
            frames,
            n_eigenpairs=min(n_eigenpairs, frames.labels.size),
            n_samples=n_samples,
            n_chains=n_chains,
            n_warmup=n_warmup,
            seed=random_state,
            progress=not quiet,
            checkpoint=checkpoint,
        )
        probability = frames.maps(soft_label_mean(result))
        low, high = soft_label_interval(result, 0.95).T
        width = frames.maps(high - low)
        located = probability > 0.5
        rows = []
        for t, (name, labels) in enumerate(zip(frames.names, frames.labels, strict=True)):
            center = np.argwhere(located[t]).mean(axis=0) if located[t].any() else [np.nan, np.nan]
            rows.append(
                {
                    "frame": name,
                    "missing": int((labels == 0).sum()),
                    "pixels": int(located[t].sum()),
                    "expected_pixels": float(probability[t].sum()),
                    "row": center[0],
                    "column": center[1],
                    "contradicted": int((located[t] != (labels > 0))[labels != 0].sum()),
                    "mean_width": float(width[t].mean()),
                }
            )
        table = pd.DataFrame(rows)
        with atomic_folder(output) as writing:
            for t, name in enumerate(frames.names):
                for kind, values in (
                    ("probability", probability[t]),
                    ("location", located[t]),
                    ("width", width[t]),
                ):
                    grey = np.rint(255 * values).astype(np.uint8)
                    write_picture(writing / f"{kind}_{name}.png", grey)
            for kind, values, label in (
                ("probability", probability, "probability of the object"),
                ("width", width, "width of the 95 % interval"),
            ):
                top = 1.0 if kind == "probability" else max(float(width.max()), 1e-9)
                axes = frame_panels(*values.shape)
                plot_frames(values, label, (0.0, top), names=frames.names, axes=axes)
                axes[0].figure.savefig(writing / f"overview_{kind}.png", dpi=130)
            without_formulas(table).to_csv(writing / "frames.csv", index=False, float_format="%.6g")
            result.save(writing / "posterior.nc")
            written = sorted(path.name for path in writing.iterdir())
        checkpoint.unlink(missing_ok=True)
        facts = the_facts(quiet)
        shown = {"table": table.to_string(index=False, float_format=lambda x: f"{x:.3g}")}
        facts.say("{table}", frames=rows, shown=shown)
        facts.say("{convergence}", convergence=result.diagnostics.verdict)
        facts.wrote(*(output / name for name in written))
