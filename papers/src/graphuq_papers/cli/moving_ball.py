"""``graphuq moving-ball``: the frames of a simulated film, for ``graphuq track``."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.cli import atomic_folder, output_folder, the_facts


def moving_ball(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the frames, which are PNG files.")
    ],
    random_state: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed.")] = 0,
) -> None:
    """Write nine frames of a ball that moves, with missing pixels and a false second ball.

    Example: graphuq moving-ball ball && graphuq track ball
    """
    from graphuq_papers.films.frames import moving_ball as simulate

    frames = simulate(seed=random_state)
    with output_folder(folder), atomic_folder(folder) as writing:
        frames.save(writing)
    n_frames, height, width = frames.labels.shape
    the_facts().say(
        "{n_frames} frames of {height} × {width} pixels written to {folder}",
        n_frames=n_frames,
        height=height,
        width=width,
        folder=folder,
        files=[folder / f"{name}.png" for name in frames.names],
    )
