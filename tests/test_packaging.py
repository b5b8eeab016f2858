"""Wheels and source archives: complete, installable into a clean environment, working there."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import graphuq as gq

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def run(*command, folder, **variables):
    """Run a command outside of the checkout, and return what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of the files that git knows, as a build writes beside those of its project."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def built(project, folder):
    """Return the source archive of a project, and the wheel that is built from it."""
    run(sys.executable, "-m", "build", "--outdir", folder, project, folder=folder)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def archives(checkout, tmp_path_factory):
    """Return the two archives of graphuq."""
    return built(checkout, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def archives_of_papers(checkout, tmp_path_factory):
    """Return the two archives of graphuq-papers."""
    return built(checkout / "papers", tmp_path_factory.mktemp("dist_of_papers"))


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory):
    """Return the programs of a new environment, into which the wheel is installed with ``all``."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "pip", "install", "--quiet", f"{archives[1]}[all]", folder=folder)
    return programs


def tracked_files(*folders):
    """Return the names of the files that git knows."""
    command = ["git", "ls-files", *folders]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


@pytest.mark.parametrize(
    ("fixture", "folder", "at_least"),
    [("archives", "src", 200), ("archives_of_papers", "papers/src", 40)],
)
def test_both_archives_have_every_file_of_the_package(fixture, folder, at_least, request):
    source, wheel = request.getfixturevalue(fixture)
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
        metadata = archive.read(next(n for n in in_wheel if n.endswith("/METADATA"))).decode()
    with tarfile.open(source) as archive:
        in_source = {name.partition("/src/")[2] for name in archive.getnames()}
    expected = {name.removeprefix(f"{folder}/") for name in tracked_files(folder)}
    assert len(expected) > at_least
    assert expected <= in_wheel
    assert expected <= in_source
    assert {name for name in in_wheel if ".dist-info/" not in name} == expected
    assert re.search(r"^Author: the graphuq developers$", metadata, re.M)
    assert re.search(r"^License-Expression: MIT$", metadata, re.M)


def test_the_readme_runs_with_what_is_installed(installed, tmp_path):
    """The code of the README, run by an environment that has no checkout and no tools of tests."""
    script = (
        "import doctest, sys, graphuq\n"
        f"assert not graphuq.__file__.startswith({str(ROOT / 'src')!r})\n"
        "flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE\n"
        "failed, tried = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags)\n"
        "assert tried > 10 and not failed\n"
    )
    run(installed / "python", "-c", script, ROOT / "README.md", folder=tmp_path)


def test_the_commands_of_the_readme_run_with_what_is_installed(installed, tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [f"{k},{k % 2 + 0.01 * k},{'' if k > 9 else 'ab'[k % 2]}" for k in range(40)]
    (tmp_path / "votes.csv").write_text("\n".join(["name,x,party", *rows]) + "\n")
    shown = "graphuq classify votes.csv --label-column party --output out"
    assert shown in readme
    graphuq, *arguments = shown.split()
    run(installed / graphuq, *arguments, "--id-column", "name", folder=tmp_path)
    assert {"predictions.csv", "posterior.nc", "report.html"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    run(installed / graphuq, "predict", "out/posterior.nc", "votes.csv", folder=tmp_path)
    run(installed / graphuq, "demo", "--output", "demo", folder=tmp_path)
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
    for command in re.findall(r"`graphuq (\w+)", readme):
        assert "Usage" in run(installed / graphuq, command, "--help", folder=tmp_path)
    version = run(installed / graphuq, "--version", folder=tmp_path)
    assert version.split()[1] == gq.__version__


def test_the_papers_are_found_once_they_are_installed(installed, archives_of_papers, tmp_path):
    asked = subprocess.run(
        [installed / "graphuq", "reproduce", "--all"], cwd=tmp_path, capture_output=True, text=True
    )
    assert asked.returncode == 2
    assert "run pip install ./papers" in asked.stderr
    run(
        installed / "pip", "install", "--quiet", "--no-deps", archives_of_papers[1], folder=tmp_path
    )
    arguments = ["reproduce", "hartog", "figure1", "--quick", "--output", "out"]
    run(installed / "graphuq", *arguments, folder=tmp_path)
    assert (tmp_path / "out" / "figure1.png").stat().st_size > 10_000


def test_the_source_archive_is_installed_in_place_of_the_wheel(archives, installed, tmp_path):
    """The last test: it replaces what the others run."""
    again = ["install", "--quiet", "--no-deps", "--force-reinstall", archives[0]]
    run(installed / "pip", *again, folder=tmp_path)
    run(installed / "graphuq", "demo", "--output", "demo", folder=tmp_path)
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
