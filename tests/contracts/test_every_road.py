"""A part of a stranger's own, one file of ``examples/``, works on every road of the library.

Fit, learn, query, save, load in another process, search, both commands, report and page.
"""

import gc
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run
from graphuq.errors import InvalidInput
from graphuq.utils.part import Part

EXAMPLES = Path(__file__).parents[2] / "examples"
MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.1, rng=1)
NAMES = np.array(["left", "right"])[MOONS.codes()]
GIVEN = np.where(np.arange(120) < 12, NAMES, "")
GRAPH = "MutualNeighbors(n_neighbors=12)"
MODEL = "LargestEvidence(HeatKernel(time=3.0), Cauchit(scale=0.3))"
PARTS = [word for name in ("format", "graph", "prior", "likelihood", "rule")
         for word in ("--parts", str(EXAMPLES / f"own_{name}.py"))]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def _subclasses(base):
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)


@pytest.fixture(scope="module")
def own():
    """Return the modules of the examples, imported under their names as by ``--parts``."""
    sys.path.insert(0, str(EXAMPLES))
    gc.collect()
    for one in _subclasses(Part):  # of the same examples, which other tests ran; JAX keeps them
        if one.__module__ in ("__main__", "<run_path>"):
            one.__name__ = f"Earlier{one.__name__}"
    names = ("own_format", "own_graph", "own_prior", "own_likelihood", "own_rule")
    yield {name: importlib.import_module(name) for name in names}
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def fitted(own):
    return gq.GraphClassifier(GRAPH, model=MODEL, inference="laplace").fit(MOONS.features, GIVEN)


def test_fit_query_and_update(own, fitted):
    assert isinstance(fitted.result_.posterior.prior, own["own_prior"].HeatKernel)
    assert isinstance(fitted.result_.posterior.likelihood, own["own_likelihood"].Cauchit)
    assert (fitted.transduction_ == NAMES).mean() > 0.8
    by_text = fitted.query(5, "Doubt(power=2.0)")
    np.testing.assert_array_equal(by_text, fitted.query(5, own["own_rule"].Doubt(2.0)))
    doubtful = 1 - fitted.label_distributions_.max(axis=1)
    assert doubtful[by_text[0]] == pytest.approx(doubtful[GIVEN == ""].max())
    with pytest.raises(InvalidInput, match=r"rule: 'Doubts' in .* is unknown; use"):
        fitted.query(5, "Doubts()")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_hyperparameters_of_own_parts_are_learnt(own):
    model = "Fixed(HeatKernel(time=LogUniform(1, 10)), Cauchit(scale=0.3))"
    short = gq.inference.MCMC("MetropolisWithinGibbs(PCN())", n_samples=50, n_chains=2, stop=None)
    learnt = gq.GraphClassifier(GRAPH, model=model, inference=short).fit(MOONS.features, GIVEN)
    drawn = learnt.result_.answer.hyperparameters["time"]
    assert drawn.std() > 0
    assert 1 <= drawn.min() <= drawn.max() <= 10


def test_search(own):
    start = gq.GraphClassifier("MutualNeighbors()", model=MODEL, inference="laplace")
    lists = {"graph__n_neighbors": [6, 12], "prior__time": [1.0, 4.0]}
    search = gq.EvidenceSearch(start, lists).fit(MOONS.features, GIVEN)
    assert len(search.results_) == 4
    best = search.best_estimator_
    assert best.graph == own["own_graph"].MutualNeighbors(search.best_params_["graph__n_neighbors"])
    assert best.result_.posterior.prior.time == search.best_params_["prior__time"]
    smooth = gq.EvidenceSearch(start, {"prior__time": (0.5, 8.0)}, n_starts=1)
    assert 0.5 < smooth.fit(MOONS.features, GIVEN).best_params_["prior__time"] < 8


def test_save_load_and_predict(fitted, tmp_path):
    fitted.save(tmp_path / "own.nc")
    loaded = gq.load(tmp_path / "own.nc")
    new = MOONS.features[:7] + 0.01
    # Sums of arrays round as their places in memory are aligned.
    np.testing.assert_allclose(loaded.predict_proba(new), fitted.predict_proba(new), atol=1e-12)
    assert (fitted.predict(new) == NAMES[:7]).mean() > 0.8
    script = (
        f"import sys; sys.path.insert(0, {str(EXAMPLES)!r}); import graphuq as gq;"
        f"own = ['own_graph', 'own_prior', 'own_likelihood'];"
        f"print(gq.load({str(tmp_path / 'own.nc')!r}, own).result_.posterior.prior)"
    )
    run_alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run_alone.stdout.strip() == repr(fitted.result_.posterior.prior), run_alone.stderr


@pytest.mark.slow
def test_report(fitted, tmp_path):
    gq.write_report(fitted.result_, tmp_path / "own.html")
    page = (tmp_path / "own.html").read_text()
    assert "HeatKernel" in page
    assert "Cauchit" in page


def test_commands(own, fitted, tmp_path):
    """Both commands read and write a format of the user's own, with all other parts."""
    table = pd.DataFrame(MOONS.features, columns=["a", "b"]).assign(y=GIVEN)
    own["own_format"].JsonLines().write(table, tmp_path / "moons.ndjson")
    options = ["--graph", GRAPH, "--model", MODEL, "--inference", "laplace", "--quiet"]
    ours = ["--format", "jsonl", "-o", str(tmp_path / "out"), *options]
    file = str(tmp_path / "moons.ndjson")
    assert run([*PARTS, "classify", file, "--label-column", "y", *ours]) == 0
    answers = pd.read_json(tmp_path / "out" / "predictions.jsonl", lines=True)
    assert answers["label"].tolist() == fitted.transduction_.tolist()
    right = answers["probability_right"].to_numpy()
    np.testing.assert_allclose(right, fitted.label_distributions_[:, 1], atol=1e-6)
    stored, new = str(tmp_path / "out" / "posterior.nc"), str(tmp_path / "new.jsonl")
    assert run([*PARTS, "predict", stored, file, "-o", new]) == 0
    assert len(pd.read_json(new, lines=True)) == 120


def test_page(own, tmp_path):
    settings = gq.GraphClassifier(GRAPH, model=MODEL, inference="laplace")
    options = {"classifier": settings, "rule": "Doubt()", "open_browser": False}
    with gq.label(MOONS.features, y=GIVEN, labels=tmp_path / "l.jsonl", **options) as page:
        snapshot = page.session.wait_until_current()
        first = page.session.queue("me", 1)[0]
        table = page.predictions()
    doubt = np.where(GIVEN == "", 1 - snapshot.probabilities.max(axis=1), 0.0)
    assert doubt[first["row"]] == doubt.max()
    assert (table["label"] == NAMES).mean() > 0.8


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("own.txt", "", "give a Python file"),
        ("numpy.py", "", "has the name of another module"),
        ("own_broken.py", "1 / 0", "'own_broken.py' raises ZeroDivisionError"),
    ],
)
def test_files_that_are_no_parts(name, text, words, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    before = sys.path.copy()
    assert run(["--parts", str(tmp_path / name), "datasets", "voting"]) == 2
    assert words in capsys.readouterr().err
    assert sys.path == before  # processes that are started later find no numpy.py there
    assert run(["--parts", str(tmp_path / "missing.py"), "datasets", "voting"]) == 2


@pytest.mark.parametrize("name", ["Other", "Csv"])
def test_two_formats_of_one_suffix_are_refused(name):
    """Also if the other one has the name of graphuq's: it is no class that was defined again."""

    class Other(gq.results.TableFormat):
        __qualname__ = name
        suffix = ".csv"

        def read(self, path, text_columns=()):
            raise AssertionError("nobody calls it")

        def write(self, table, path):
            raise AssertionError("nobody calls it")

    try:
        with pytest.raises(InvalidInput, match=r"suffix: '.csv' of Other is that of Csv"):
            gq.results.write_table(pd.DataFrame(), "t.csv")
    finally:
        Other.suffix = ".other"


@pytest.mark.parametrize(
    ("kind", "options"),
    [(gq.acquisition.Margin, {"rule": "Margin()"}), (gq.graphs.Cosine, {"weights": "Cosine()"})],
)
def test_no_class_takes_the_place_of_another_one_by_its_name(kind, options, tmp_path):
    """Rules and weights that are written as text; ``gq.label`` takes both, so does the command."""
    other = type(kind.__name__, (kind,), {"__module__": "mine"})

    def asked():
        settings = gq.GraphClassifier(weights=options.get("weights", "auto"))
        path = tmp_path / "l.jsonl"
        rule = options.get("rule", "auto")
        with gq.label(
            MOONS.features, classifier=settings, rule=rule, labels=path, open_browser=False
        ) as page:
            page.session.wait_until_current()

    words = rf"'{kind.__name__}' is the name of 2 classes, of graphuq\..* and mine"
    with pytest.raises(InvalidInput, match=words):
        asked()
    other.__name__ = other.__qualname__ = "Other"
    asked()
