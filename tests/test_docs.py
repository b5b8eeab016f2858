"""The guide to extensions shows files of examples/, and they run."""

import doctest
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.posterior.field import LowRankField
from graphuq.posterior.target import Target

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`examples/(\w+)\.py`:\n\n```python\n(.*?)```$", GUIDE, re.M | re.S)
NUMBER = re.compile(r"-?\d+\.\d+")


def own(name):
    """Return the names that an example defines, without running its last part."""
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_the_guide_shows_every_example():
    examples = {path.stem for path in (ROOT / "examples").glob("own_*.py")}
    assert {name for name, _ in SHOWN} == examples
    assert GUIDE.count("```python") == len(SHOWN)


@pytest.mark.parametrize(("name", "code"), SHOWN, ids=[name for name, _ in SHOWN])
def test_the_guide_shows_an_example_as_it_is(name, code):
    assert code == (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", [name for name, _ in SHOWN])
def test_an_example_prints_what_the_guide_says(name, capsys):
    """Text is equal; numbers may differ by what sampling and rounding do to them."""
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip().splitlines()
    shown = GUIDE.split(f"`examples/{name}.py`:")[1].split("```\n")[2].strip().splitlines()
    for line, expected in zip(printed[-len(shown) :], shown, strict=True):
        assert NUMBER.sub("#", line) == NUMBER.sub("#", expected)
        found, said = (np.array(NUMBER.findall(text), float) for text in (line, expected))
        np.testing.assert_allclose(found, said, atol=0.05)


@pytest.mark.parametrize("name", ["ordered.md", "tags.md"])
def test_examples_of_grades_and_tags_run(name):
    tried = doctest.testfile(str(ROOT / "docs" / name), module_relative=False)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_examples_of_scenes_run():
    tried = doctest.testfile(str(ROOT / "docs" / "scenes.md"), module_relative=False)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_the_page_for_programs_runs(tmp_path, monkeypatch):
    pytest.importorskip("typer", reason="pip install graphuq[cli], to test its commands")
    monkeypatch.chdir(tmp_path)
    tried = doctest.testfile(str(ROOT / "docs" / "programs.md"), module_relative=False)
    assert tried.attempted > 10
    assert tried.failed == 0


@pytest.mark.parametrize("name", ["labelling_page.md"])
def test_examples_of_a_page_run(name):
    pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
    tried = doctest.testfile(str(ROOT / "docs" / name), module_relative=False)
    assert tried.attempted > 0
    assert tried.failed == 0


EXCHANGE = (ROOT / "docs" / "exchange.md").read_text(encoding="utf-8")
RECIPES = [
    ("Label Studio", "uvicorn", "graphuq[label]"),
    ("cleanlab", "cleanlab", "cleanlab"),
    ("scikit-learn", "sklearn", "scikit-learn"),
    ("scikit-activeml", "skactiveml", "scikit-activeml"),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("heading", "module", "package"), RECIPES, ids=[r[0] for r in RECIPES])
def test_recipes_for_other_tools_run(heading, module, package):
    """All code of a section, one block after the other."""
    pytest.importorskip(module, reason=f"pip install {package}, to run its recipe")
    section = EXCHANGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"^```python\n(.*?)```$", section, re.M | re.S))
    assert "assert" in code
    exec(code, {})


def test_the_likelihood_of_the_guide_agrees_with_quadrature():
    """One node with one label: E sign(u) by quadrature."""
    likelihood = own("own_likelihood")["Cauchit"](0.3)
    field = LowRankField(np.ones((1, 1)), np.ones((1, 1)), np.ones(1), 0.0)
    target = Target(field, likelihood, np.ones(1))
    answer = gq.inference.ExpectationPropagation().fit(target)
    u = np.linspace(-9, 9, 20_001)
    weight = norm.pdf(u) * (0.5 + np.arctan(u / 0.3) / np.pi)
    truth = (weight * np.sign(u)).sum() / weight.sum()
    assert answer.labelled_label_mean[0] == pytest.approx(truth, abs=1e-3)


def test_the_prior_of_the_guide_is_normalised():
    """``E|u|² = N`` and ``s_j² / s_k² = exp(−t (λ_j − λ_k))``."""
    graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    spectrum = gq.laplacian_spectrum(graph)
    variances = own("own_prior")["HeatKernel"](3.0).spectral_std(spectrum).modes ** 2
    assert variances.sum() == pytest.approx(9)
    ratio = np.exp(-3.0 * (spectrum.eigenvalues[2] - spectrum.eigenvalues[1]))
    assert variances[2] / variances[1] == pytest.approx(ratio)


def test_the_architecture_page_shows_the_house_and_its_floors():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    house = page.split("## The house")[1].split("```")[1]
    shown = {line.split()[0].strip("/") for line in house.splitlines() if re.match(r"\w", line)}
    entries = {
        path.name
        for path in (ROOT / "src" / "graphuq").iterdir()
        if path.name[0] not in "_." and path.name != "py.typed"
    }
    assert shown == entries
    floors = page.split("## Floors")[1].split("```")[1].split()
    rules = (ROOT / ".importlinter").read_text(encoding="utf-8").split("layers =")[1]
    assert floors == rules.split("[")[0].split()


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("papers/*.md")]:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)]*)\)", text):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.M)
                names = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
                assert anchor in names, f"{page.name}: {target}#{anchor}"


def test_pages_name_scripts_that_exist():
    for page in (ROOT / "docs").rglob("*.md"):
        for script in re.findall(
            r"(?:papers/)?(?:benchmarks|tests|examples)/[\w/]+\.py", page.read_text("utf-8")
        ):
            assert (ROOT / script).exists(), f"{page.name}: {script}"


MEASURED = sorted((ROOT / "docs" / "measurements").glob("*.md"))
ARCHIVED = sorted({*(ROOT / "docs" / "archive").glob("*.md")} - {ROOT / "docs/archive/index.md"})


def is_a_question_with_a_command_and_a_table(text):
    return (
        text.splitlines()[0].endswith("?")
        and re.search(r"^Commands?: `", text, re.M)
        and "\n|---|" in text
    )


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_a_page_of_measurements_is_a_question_with_a_command_and_a_table(page):
    assert is_a_question_with_a_command_and_a_table(page.read_text(encoding="utf-8"))
    index = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert f"(measurements/{page.name})" in index


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_a_page_of_measurements_is_short_and_answers_first(page):
    """An answer with a figure before anything else, and no more than 100 lines."""
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    answer = text.split("\n\n")[1]
    assert re.search(r"\d", answer)
    assert not re.match(r"[#|`-]|Commands?:", answer)


@pytest.mark.parametrize("page", ARCHIVED, ids=lambda page: page.stem)
def test_a_page_of_the_archive_is_a_question_with_a_command_and_a_table(page):
    assert is_a_question_with_a_command_and_a_table(page.read_text(encoding="utf-8"))
    index = (ROOT / "docs" / "archive" / "index.md").read_text(encoding="utf-8")
    assert f"({page.name})" in index


THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_a_page_of_theory_says_what_it_is_for_and_is_listed(page):
    title, purpose, first = page.read_text(encoding="utf-8").split("\n\n")[:3]
    assert title.startswith("# Theory: ")
    assert purpose[0].isupper()
    assert len(purpose.splitlines()) <= 3
    assert first.startswith("## ")
    assert len(page.read_text(encoding="utf-8").splitlines()) < 300
    assert f"(theory/{page.name})" in (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def test_docstrings_and_comments_name_pages_and_sections_that_exist():
    """Such as docs/theory/labels.md, "Soft labels"."""
    named = 0
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        text = re.sub(r"\s+#?\s*", " ", path.read_text(encoding="utf-8"))
        for page, section in re.findall(r'(docs/[\w/]+\.md)`?(?:, "([^"]+)")?', text):
            assert (ROOT / page).exists(), f"{path.name}: {page}"
            if section:
                headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text("utf-8"), re.M)
                assert section in headings, f"{path.name}: {page}, {section}"
                named += 1
    assert named > 10


def test_the_page_on_labelling_runs():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    page = str(ROOT / "docs" / "labelling.md")
    failed, tried = doctest.testfile(page, module_relative=False, optionflags=flags)
    assert failed == 0
    assert tried > 20


@pytest.mark.parametrize("name", ["graphs", "experts"])
def test_a_page_of_examples_runs(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    page = str(ROOT / "docs" / f"{name}.md")
    failed, tried = doctest.testfile(page, module_relative=False, optionflags=flags)
    assert failed == 0
    assert tried > 5


@pytest.mark.parametrize(
    "end", ["**Labelling functions**", pytest.param(None, marks=pytest.mark.slow)]
)
def test_the_page_on_tables_runs(end, tmp_path, monkeypatch):
    """The fit of labelling functions, at its end, takes longer than all others together."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8").split(end or "\0")[0]
    examples = doctest.DocTestParser().get_doctest(text, {}, "tables.md", None, 0)
    failed, tried = doctest.DocTestRunner().run(examples)
    assert failed == 0
    assert tried > 30


def test_sentences_of_the_guide_on_own_parts_hold():
    """A learnt hyperparameter of an own likelihood, and an own prior by its name in text."""
    assert "`Cauchit(gq.LogUniform(0.1, 1.0))`" in GUIDE
    assert 'model="LargestEvidence(prior=HeatKernel(time=2))"' in GUIDE.replace("`", "")
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.1, rng=1)
    y = np.where(np.arange(60) < 10, moons.classes, -1)
    learnt = gq.models.Fixed(
        gq.priors.Matern(), own("own_likelihood")["Cauchit"](gq.LogUniform(0.1, 1.0))
    )
    sampling = gq.inference.MCMC(n_samples=50)
    with pytest.warns(gq.GraphuqWarning):
        fitted = gq.GraphClassifier(model=learnt, inference=sampling).fit(moons.features, y)
    scale = fitted.result_.hyperparameters["scale"]
    assert 0.1 <= scale.min() < scale.max() <= 1.0
    examples = str(ROOT / "examples")  # in a process of its own, where one class has the name
    script = (
        f"import sys; sys.path.insert(0, {examples!r}); import numpy as np; import own_prior;"
        "import graphuq as gq; moons = gq.datasets.two_moons(60, n_features=2, rng=1);"
        "y = np.where(np.arange(60) < 10, moons.classes, -1);"
        "model = 'LargestEvidence(prior=HeatKernel(time=2))';"
        "named = gq.GraphClassifier(model=model, inference='expectation-propagation');"
        "print(type(named.fit(moons.features, y).model_.prior).__module__)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "own_prior", found.stderr
