"""Bad options, damaged frames and killed runs: the promises of docs/robustness.md."""

import re
import shutil
from importlib.metadata import entry_points

import numpy as np
import pytest
from PIL import Image

from graphuq.errors import GraphuqError
from graphuq_papers.films import load_frames
from robustness import hostile
from robustness import test_killed_runs as killed
from robustness.damage import damaged
from robustness.hostile import TWENTY_DIGITS
from robustness.test_bad_commands import refused  # noqa: F401
from robustness.test_fuzz import require_short
from robustness.test_killed_runs import Command, server, whole  # noqa: F401

TRACKED = {f"{kind}_f{t}.png" for kind in ("probability", "location", "width") for t in range(3)}
BALL = {f"frame{t}.png" for t in range(1, 10)}
COMMANDS = {
    "track": Command(
        "track {folder}/frames -o {folder}/out --quiet --n-eigenpairs 20 --n-warmup 50 "
        "--n-samples 200 --n-chains 2",
        TRACKED | {"frames.csv", "overview_probability.png", "overview_width.png", "posterior.nc"},
        "frames.csv",
        resumes=True,
    ),
    "moving-ball": Command("moving-ball {folder}/out", BALL, "frame3.png"),
    "reproduce": Command(
        "reproduce hartog figure3 --quick -o {folder}/out",
        {"figure3.csv", "figure3.txt", "figure3.png"},
        "figure3.csv",
    ),
}
N_KILLS = 9


def write_frames(folder):
    """Write three frames of 9 by 9 pixels, and return the folder of inputs."""
    (folder / "frames").mkdir()
    for t in range(3):
        picture = np.zeros((9, 9), dtype=np.uint8)
        picture[3:6, 2 + t : 5 + t] = 255
        Image.fromarray(picture).save(folder / "frames" / f"f{t}.png")
    return folder


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_frames(tmp_path_factory.mktemp("inputs"))


BAD = [
    ["track", "frames", "--n-eigenpairs", "0"],
    ["track", "frames", "--n-eigenpairs", "-1"],
    ["track", "frames", "--n-samples", "0"],
    ["track", "frames", "--n-samples", TWENTY_DIGITS],
    ["track", "frames", "--n-chains", "0"],
    ["track", "frames", "--n-warmup", "-1"],
    ["track", "frames", "--random-state", "-1"],
    ["track", "frames", "--random-state", TWENTY_DIGITS],
    ["track", "frames", "--mask", "nowhere"],
    ["track", "nowhere"],
    ["reproduce", "nobody"],
    ["reproduce", "zhu", "nothing"],
    ["reproduce", "zhu"],
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a)[:60])
def test_bad_commands(arguments, inputs, refused):  # noqa: F811
    refused([inputs / word if word == "frames" else word for word in arguments])


@pytest.mark.parametrize("damage", hostile.DAMAGES)
@pytest.mark.parametrize("kind", ["frame", "mask"])
def test_damaged_pictures(kind, damage, inputs, refused, tmp_path):  # noqa: F811
    if damage == "all but ten bytes":
        pytest.skip("these are the end of a picture after all of its pixels")
    folder = tmp_path / "frames"
    shutil.copytree(inputs / "frames", folder)
    path = folder / "f1.png" if kind == "frame" else tmp_path / "mask.png"
    path.write_bytes(hostile.DAMAGES[damage]((inputs / "frames" / "f1.png").read_bytes()))
    refused(["track", folder, "--quiet", *([] if kind == "frame" else ["--mask", path])])


@pytest.mark.parametrize("kind", range(4))
def test_paths_that_are_no_files(kind, inputs, tmp_path):
    path = hostile.damaged_paths(tmp_path, "x.png")[kind]
    with pytest.raises(GraphuqError):
        load_frames(inputs / "frames", path)


@pytest.mark.filterwarnings("ignore")
def test_frames_that_are_damaged_at_random(inputs, tmp_path):
    shutil.copytree(inputs / "frames", tmp_path / "frames")
    path = tmp_path / "frames" / "f1.png"
    sound = path.read_bytes()
    for case in range(12):
        path.write_bytes(damaged(sound, path.name, np.random.default_rng([1, case])))
        try:
            load_frames(path.parent)
        except GraphuqError as error:
            require_short(error)


@pytest.fixture(scope="module")
def own():
    """Put the commands of this package in place of graphuq's own."""
    if not entry_points(group="graphuq.commands"):
        pytest.skip("pip install ./papers, to kill its commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(killed, "COMMANDS", COMMANDS)
        patch.setattr(killed, "CHECKPOINT", re.compile(r"\.track\.npz"))
        patch.setattr(killed, "write_inputs", write_frames)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("number", range(N_KILLS))
def test_kills(number, own, server, whole):  # noqa: F811
    rng = np.random.default_rng([39, number])
    killed.kill(server, list(COMMANDS)[number % len(COMMANDS)], rng, whole)
