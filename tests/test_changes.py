"""Files of changes become the changelog, and all places name one version."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import graphuq as gq

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "changes" / "release.py"))


def versions(root):
    """The version by each place that names it."""
    found = {}
    for name, pattern in SCRIPT["PLACES"].items():
        (found[name],) = re.findall(pattern, (root / name).read_text("utf-8"), re.M)
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    return found | {"CHANGELOG.md": re.search(r"^## (\S+)", changelog, re.M)[1]}


def test_all_places_name_one_version():
    assert set(versions(ROOT).values()) == {gq.__version__}
    papers = tomllib.loads((ROOT / "papers/pyproject.toml").read_text("utf-8"))["project"]
    (needed,) = papers["dependencies"]
    assert gq.__version__.startswith(needed.partition(">=")[2])


def test_each_file_of_a_change_has_lines_of_a_list():
    lines = SCRIPT["lines_of"](ROOT / "changes").splitlines()
    assert all(line.startswith(("- ", "  ")) and len(line) <= 100 for line in lines)


@pytest.fixture
def checkout(tmp_path):
    for name in [*SCRIPT["PLACES"], "CHANGELOG.md", "changes/release.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "changes" / "b.md").write_text("- Second.\n")
    (tmp_path / "changes" / "a.md").write_text("- First,\n  with more.\n- And another.\n")
    return tmp_path


def run(checkout, *arguments):
    command = [sys.executable, "changes/release.py", *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True)


@pytest.mark.parametrize("version", ["99.0.0", gq.__version__])
def test_a_release_takes_all_changes_and_names_its_version(checkout, version):
    before = (checkout / "CHANGELOG.md").read_text("utf-8")
    assert run(checkout, version).returncode == 0
    assert set(versions(checkout).values()) == {version}
    after = (checkout / "CHANGELOG.md").read_text("utf-8")
    part = after.partition("### New\n\n")[2]
    assert part.startswith("- First,\n  with more.\n- And another.\n- Second.\n")
    assert [path.name for path in (checkout / "changes").iterdir()] == ["release.py"]
    own = "- First,\n  with more.\n- And another.\n- Second.\n"
    section = f"## {version}\n\n### New\n\n{own}\n"
    if version == gq.__version__:
        assert after.replace(own, "", 1) == before
    else:
        assert after.replace(section, "", 1) == before


@pytest.mark.parametrize(
    ("arguments", "name", "text", "message"),
    [
        (["1.0"], "changes/b.md", "- Second.\n", "'1.0' is no number such as 0.4.0"),
        (["1.0.0"], "changes/b.md", "Second.\n", "b.md: give lines of a list"),
        (["1.0.0"], "CITATION.cff", "title: none\n", "CITATION.cff: 0 lines fit"),
        ([], "changes/b.md", "- Second.\n", "Begin a release"),
    ],
)
def test_nothing_is_written_if_something_is_wrong(checkout, arguments, name, text, message):
    (checkout / name).write_text(text)
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    done = run(checkout, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before
