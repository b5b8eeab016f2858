"""The site names every public name once, and includes the pages of the root."""

import doctest
import importlib
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import graphuq as gq

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = {
    "graphuq": "main",
    "graphuq.acquisition": "acquisition",
    "graphuq.cli": "command_line",
    "graphuq.datasets": "datasets",
    "graphuq.errors": "errors",
    "graphuq.external.raster": "raster",
    "graphuq.external.scanpy": "external",
    "graphuq.graphs": "graphs",
    "graphuq.inference": "inference",
    "graphuq.labelling": "labelling",
    "graphuq.labelling.label_studio": "label_studio",
    "graphuq.likelihoods": "likelihoods",
    "graphuq.models": "models",
    "graphuq.plots": "plots",
    "graphuq.priors": "priors",
    "graphuq.results": "results",
    "graphuq.scores": "scores",
}


def listed(page):
    """Return the names that the tables of a page of the reference have."""
    text = (DOCS / "api" / f"{page}.rst").read_text(encoding="utf-8")
    return re.findall(r"^   ([A-Za-z_][\w.]*)$", text, re.M)


def public_names(module):
    """Return the names that a module exports, without modules and errors that have own pages."""
    names = set(importlib.import_module(module).__all__)
    if module == "graphuq":
        elsewhere = {"GraphuqError", "GraphuqWarning", "__version__", "label_studio"}
        return names - elsewhere - set(gq._MODULES)
    return names - {"main"} if module == "graphuq.cli" else names


@pytest.mark.parametrize(("module", "page"), [*MODULES.items()], ids=[*MODULES])
def test_the_reference_has_every_public_name_once(module, page):
    names = listed(page)
    assert [name for name, n in Counter(names).items() if n > 1] == []
    if module == "graphuq.results":
        for name in names:
            part, _, attribute = f"{module}.{name}".rpartition(".")
            assert hasattr(importlib.import_module(part), attribute), name
        functions = {name for name in names if "." not in name}
        assert functions == public_names(module) - {"Result"}
    else:
        assert set(names) == public_names(module)


def test_the_reference_has_every_page():
    pages = {path.stem for path in (DOCS / "api").glob("*.rst")}
    assert pages == {*MODULES.values(), "index"}


def test_the_index_has_every_page_of_text():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, re.M), page.name


def test_the_reference_of_commands_has_every_option(monkeypatch):
    pytest.importorskip("sphinx", reason="pip install graphuq[docs], to test the site")
    typer = pytest.importorskip("typer")
    from graphuq.cli.app import app

    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    reference = importlib.import_module("command_reference")
    commands = typer.main.get_command(app).commands
    assert len(commands) >= 6
    for name, command in commands.items():
        lines = reference.command_lines(name, command)
        assert lines[0] == f"graphuq {name}"
        text = "\n".join(lines)
        for option in command.params:
            if option.param_type_name != "argument" and not option.hidden:
                assert all(f"``{spelling}``" in text for spelling in option.opts)
    classify = reference.command_lines("classify", commands["classify"])
    assert (
        "    graphuq classify votes.csv --label-column label --scaling standard -o out" in classify
    )


def test_llms_txt_has_every_page_once_and_its_links_lead_somewhere(monkeypatch, tmp_path):
    pytest.importorskip("sphinx", reason="pip install graphuq[docs], to test the site")
    pytest.importorskip("typer")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    text = importlib.import_module("llms").llms_text()
    links = re.findall(r"^- \[(.+)\]\((.+)\.html\)(?:: (.+))?$", text, re.M)
    assert len(links) == text.count("](") > 35
    pages = [page for _, page, _ in links]
    assert len(set(pages)) == len(pages)
    for page in pages:
        sources = [DOCS / f"{page}.md", DOCS / f"{page}.rst"]
        assert page == "gallery/index" or any(source.exists() for source in sources), page
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= set(pages)
    assert sum(bool(sentence) for _, _, sentence in links) >= len(links) - 2
    assert all(sentence[0].isalnum() or sentence[0] == "`" for *_, sentence in links if sentence)
    assert ">>> classifier = gq.GraphClassifier().fit(digits.data, y)" in text
    for command in ("classify", "label", "map", "regress"):
        assert f"- `graphuq {command} --json`: " in text


@pytest.mark.slow  # builds a site of one page
def test_the_site_has_llms_txt_and_a_link_that_leads_nowhere_fails_it(tmp_path):
    pytest.importorskip("sphinx", reason="pip install graphuq[docs], to build the site")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\nextensions = ['llms']\n"
    )
    (tmp_path / "index.rst").write_text("Title\n=====\n\nText.\n")
    command = [sys.executable, "-m", "sphinx", tmp_path, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "llms.txt: there is no page start.html" in done.stderr
    assert (tmp_path / "out" / "llms.txt").read_text(encoding="utf-8").startswith("# graphuq\n")


def test_the_page_to_start_with_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = doctest.testfile(str(DOCS / "start.md"), module_relative=False)
    assert tried.attempted > 5
    assert tried.failed == 0
    assert (tmp_path / "votes.csv").exists()


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_the_first_code_prints_what_readme_and_start_say(tmp_path, monkeypatch, capsys):
    """All outputs of the README are exact, without dots; those of Start may differ in rounding."""
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_examples(readme)
    assert 12 < len(examples) < 20
    first = readme.split("```python\n")[1].split("```")[0]
    assert len(doctest.DocTestParser().get_examples(first)) == 6  # "Six lines"
    names: dict = {}
    for example in examples:
        exec(compile(example.source, "README.md", "single"), names)
        assert capsys.readouterr().out == example.want
    shown = (DOCS / "start.md").read_text(encoding="utf-8").split("says more:\n\n```\n")[1]
    shown = shown.split("```")[0]
    printed = str(names["classifier"].result_).split("Class shares")[0]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    found, said = (np.array(NUMBER.findall(text), float) for text in (printed, shown))
    np.testing.assert_allclose(found, said, rtol=0.02, atol=0.011)


def test_outputs_on_the_first_pages_have_no_dots():
    for page in (ROOT / "README.md", DOCS / "start.md", DOCS / "index.md"):
        for example in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8")):
            assert "..." not in example.want, page.name


def test_the_readme_names_the_two_commands_of_a_new_machine():
    install = (ROOT / "README.md").read_text(encoding="utf-8").split("## Install")[1]
    targets = set(re.findall(r"`make (\w+)`", install.split("\n## ")[0]))
    assert targets == {"demo", "test"}
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}: .venv/ready" in rules for target in targets)


def test_figures_of_the_readme_are_those_of_the_measurements():
    """Accuracy and log score with 5 labels, and calibration error of all sets together."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (DOCS / "measurements" / "corpus.md").read_text(encoding="utf-8")
    for name, best, words in (
        ("Mean accuracy:", max, "the best of fourteen others"),
        ("Mean log score, less is better:", min, "the best of the others"),
    ):
        rows = page.split(name)[1].strip().split("\n\n")[0].splitlines()[2:]
        cells = [row.strip("|").replace("*", "").split("|") for row in rows]
        assert cells[0][0].strip() == "graphuq"
        own, *others = (float(row[3]) for row in cells)  # 5 labels a class
        assert len(others) > 9
        assert f"{own:.3f}, {words} {best(others):.3f}." in readme
    errors = re.search(r"Calibration error\*\*, all sets together: ([\d., and]+) for", page)[1]
    numbers = [f"0{error}" for error in re.findall(r"\.\d+", errors)]
    assert len(numbers) == 5
    said = readme.split("**Calibrated probabilities.**")[1].split(" labels a class")[0]
    assert re.findall(r"0\.\d+", said) == numbers
    alone = re.search(r"one draw of one set\*\*[^:]*: the error is ([\d.,\s]+)", page)[1]
    assert f"on one set alone by {float(alone.split(',')[2]):.2f} with 5" in readme


def test_the_site_shows_the_history_of_benchmarks_where_there_is_one(tmp_path, monkeypatch):
    pytest.importorskip("furo", reason="pip install graphuq[docs], to test the site")
    monkeypatch.setenv("GRAPHUQ_BENCH_HISTORY", str(tmp_path / "mine.json"))
    page = tmp_path / "mine.html"  # the name that benchmarks/history.py gives it
    for shown in (False, True):
        if shown:
            page.write_text("<p>seconds</p>")
        settings = runpy.run_path(str(DOCS / "conf.py"))
        text = [(DOCS / "measurements.md").read_text(encoding="utf-8")]
        settings["adapt_to_the_site"](None, "measurements", text)
        assert settings["html_extra_path"] == [str(page)] * shown
        assert text[0].count('<a href="mine.html">') == shown


@pytest.mark.slow  # four commands
def test_the_commands_of_the_page_to_start_with_run(tmp_path, monkeypatch, capsys):
    """The table that the page writes, classified and predicted by the page's own commands."""
    pytest.importorskip("typer")
    from graphuq.cli import main

    monkeypatch.chdir(tmp_path)
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    table = page.split("No table at hand?")[1].split("```")[1].removeprefix("python\n")
    names: dict = {}
    for example in doctest.DocTestParser().get_examples(table):
        exec(example.source, names)
    names["votes"].drop(columns="party").to_csv("new_votes.csv", index=False)
    for command in re.findall(r"graphuq (?:classify|predict) [\w./ -]+", page):
        with pytest.raises(SystemExit) as ended:
            main(command.split()[1:])
        assert not ended.value.code, command
    assert (tmp_path / "new_predictions.csv").exists()
    assert "Verdict" in capsys.readouterr().out


PICTURE = re.compile(
    r"<details open>\n<summary>.*hide.*</summary>\n<picture>\n"
    r'<source media="\(prefers-reduced-motion: reduce\)" srcset="(?:\.\./)?_static/(\w+)\.png">\n'
    r'<img src="(?:\.\./)?_static/(\w+)\.gif" alt="[^"]{40,}">\n'
)


def test_animations_are_small_can_be_hidden_and_have_a_still_and_words():
    found = {}
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        shown = PICTURE.findall(text)
        assert len(shown) == text.count(".gif"), page.name
        found |= dict(shown)
    files = {path.stem for path in (DOCS / "_static").glob("*.gif")}
    assert set(found) == set(found.values()) == files
    assert len(files) >= 2
    for name in files:
        assert (DOCS / "_static" / f"{name}.gif").stat().st_size < 300_000
        assert (DOCS / "_static" / f"{name}.png").exists()


@pytest.mark.slow  # some hundred pictures
def test_the_animations_are_made_by_their_script(tmp_path):
    image = pytest.importorskip("PIL.Image")
    script = ROOT / "examples" / "animations.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    for kept in (DOCS / "_static").glob("*.gif"):
        with image.open(kept) as old, image.open(tmp_path / kept.name) as new:
            assert (old.n_frames, old.size) == (new.n_frames, new.size)


@pytest.mark.slow  # compiles the chain
def test_the_chain_of_the_animation_stays_between_its_walls():
    """The positions on the way have the signs of the labels, and are exact: they keep energy."""
    pytest.importorskip("PIL")
    names = runpy.run_path(str(ROOT / "examples" / "animations.py"))
    walls, chain = names["cone"](), names["trajectories"]
    for path, momentum in chain(walls, n_trajectories=3, n_positions=9):
        assert (path @ walls.factor.T * walls.labels > -1e-9).all()
        angles = np.linspace(0, np.pi / 2, 9)
        # Without reflections x cos t + p sin t would be the position; with them, its image.
        free = np.outer(np.cos(angles), path[0]) + np.outer(np.sin(angles), momentum)
        assert np.linalg.norm(path, axis=1) == pytest.approx(np.linalg.norm(free, axis=1))


@pytest.mark.slow  # builds a site of one page
def test_projects_that_are_not_reached_do_not_fail_the_site(tmp_path, monkeypatch):
    """The settings of docs/conf.py for other projects, at an address where nobody answers."""
    pytest.importorskip("furo", reason="pip install graphuq[docs], to build the site")
    monkeypatch.setenv("GRAPHUQ_DOCS_ONLINE", "1")
    monkeypatch.delenv("GRAPHUQ_INVENTORIES", raising=False)
    settings = runpy.run_path(str(DOCS / "conf.py"))["intersphinx_mapping"]
    assert {"numpy", "scipy", "sklearn", "pandas", "matplotlib"} < set(settings)
    empty = settings["numpy"][1]
    mapping = {"numpy": ("http://127.0.0.1:9/", empty)}
    (tmp_path / "conf.py").write_text(
        f"extensions = ['sphinx.ext.intersphinx']\nintersphinx_mapping = {mapping!r}\n"
    )
    (tmp_path / "index.rst").write_text("Title\n=====\n\n:py:func:`numpy.linspace`\n")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", tmp_path, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "working alternatives" in done.stdout
    assert "numpy.linspace" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
