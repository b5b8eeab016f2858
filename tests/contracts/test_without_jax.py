"""The default path needs no JAX: it runs where JAX cannot be imported, and imports it nowhere."""

import json
import subprocess
import sys

import numpy as np
import pytest

import graphuq as gq

BLOCKED = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        blocked = name.partition(".")[0] in {"jax", "jaxlib", "equinox"}
        return None if blocked else super().find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""
START = """
import json, sys, warnings
import numpy as np
import graphuq as gq
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
truth = np.repeat([0, 1, 2], 40)
X = rng.normal(size=(120, 2)) + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[truth]
def labels(n_each, n_classes=3):
    y = np.full(120, -1)
    for k in range(n_classes):
        y[40 * k : 40 * k + n_each] = k
    return y
def accuracy(found, n_classes=3):
    return float((found == truth)[: 40 * n_classes].mean())
answers = {}
"""
FIRST_FIT = """
fitted = gq.GraphClassifier(random_state=0).fit(X, labels(2, 2))
answers["two classes"] = accuracy(fitted.predict(X), 2)
"""
AFTER_IT = """
answers["verdict"] = str(fitted.result_).partition(":")[0]
answers["summary"] = "Log evidence" in str(fitted.result_)
fitted.add_labels([85, 90, 30], [2, 2, 0])
answers["labels added"] = accuracy(fitted.predict(X))
answers["suggested"] = len(fitted.query(3))
answers["suspects"] = len(fitted.suspect_labels(2))
answers["table"] = len(fitted.predict_table(X + 0.01))
answers["intervals"] = fitted.predict_interval(X).shape[0]
answers["sets"] = len(fitted.predict_set(X))
answers["checks"] = gq.leave_one_out(fitted.result_).of_class.shape[0]
gq.write_report(fitted.result_, "report.html")
fitted.save("fit.nc")
answers["file"] = float(np.abs(gq.load("fit.nc").predict_proba(X) - fitted.predict_proba(X)).max())
numbers = gq.GraphRegressor().fit(X, np.where(np.arange(120) % 4 == 0, X[:, 0], np.nan))
answers["numbers"] = float(np.corrcoef(numbers.predict(X), X[:, 0])[0, 1])
"""
ROADS = """
for name, y, options in [
    ("one label each", labels(1), {}),
    ("five labels each", labels(5), {}),
    ("many labels", labels(38), {}),
    ("a tail", labels(3), {"tail_eigenvalue": "mean", "n_eigenpairs": 30}),
    ("expectation propagation", labels(3), {"inference": "expectation-propagation"}),
    ("all eigenpairs", labels(3), {"n_eigenpairs": "all"}),
    ("likeliest", labels(3), {"model": "likeliest"}),
    ("evidence", labels(3), {"model": "largest-evidence"}),
]:
    answers[name] = accuracy(gq.GraphClassifier(**options).fit(X, y).predict(X))
two = gq.GraphClassifier(model="largest-evidence").fit(X, labels(3, 2))
answers["evidence of two classes"] = accuracy(two.predict(X), 2)
many = np.where(truth < 2, truth, -1)
many[:20] = -1
answers["60 labels of two classes"] = accuracy(gq.GraphClassifier().fit(X, many).predict(X), 2)
weights = np.where(labels(3) >= 0, 2.0, 1.0)
weighted = gq.GraphClassifier().fit(X, labels(3), sample_weight=weights)
answers["weights"] = accuracy(weighted.predict(X))
soft = np.full((120, 3), np.nan)
soft[labels(4) >= 0] = 0.8 * np.eye(3)[labels(4)[labels(4) >= 0]] + 0.2 / 3
answers["soft labels"] = accuracy(gq.GraphClassifier().fit(X, soft).predict(X))
graph = gq.graphs.knn_graph(X, n_neighbors=8)
answers["a given graph"] = accuracy(gq.GraphClassifier(graph).fit(None, labels(3)).transduction_)
voters = np.stack([labels(6), labels(6), np.roll(labels(6), 1)], axis=1)
answers["annotators"] = accuracy(gq.AnnotatorClassifier().fit(X, voters).predict(X))
with gq.label(X, y=labels(2), labels="labels.jsonl", open_browser=False) as page:
    answers["page"] = page.address.startswith("http://127.0.0.1:")
"""
COMMANDS = """
np.savetxt("rows.csv", X, delimiter=",", header="a,b", comments="")
rows = np.flatnonzero(labels(3) >= 0)
np.savetxt("labels.csv", np.column_stack([rows, truth[rows]]), "%d", ",", header="id,label",
           comments="")
from graphuq.cli import main
for command in [["classify", "rows.csv", "--labels", "labels.csv"], ["demo"]]:
    try:
        main([*command, "--quiet", "--output", command[0]])
    except SystemExit as end:
        answers[command[0]] = end.code or 0
"""
END = """
print(json.dumps(answers | {"imported": [m for m in ("jax", "equinox") if m in sys.modules]}))
"""


def run(code, folder):
    """Return what a new process prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_default_runs_where_jax_cannot_be_imported(tmp_path):
    answers = run(BLOCKED + START + FIRST_FIT + AFTER_IT + END, tmp_path)
    assert answers.pop("imported") == []
    assert answers.pop("verdict") == "Verdict"
    assert answers.pop("file") == 0
    sizes = {"suggested": 3, "suspects": 2, "table": 120, "intervals": 120, "sets": 120}
    for name, expected in sizes.items():
        assert answers.pop(name) == expected, name
    assert answers.pop("checks") == 7
    for name, value in answers.items():
        assert value > 0.8, name


@pytest.mark.slow
def test_every_default_road_runs_where_jax_cannot_be_imported(tmp_path):
    answers = run(BLOCKED + START + ROADS + END, tmp_path)
    assert answers.pop("imported") == []
    assert len(answers) == 15
    for name, value in answers.items():
        assert value > 0.8, name


@pytest.mark.slow
def test_commands_run_where_jax_cannot_be_imported(tmp_path):
    answers = run(BLOCKED + START + COMMANDS + END, tmp_path)
    assert answers == {"classify": 0, "demo": 0, "imported": []}
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


def test_a_default_fit_does_not_import_jax(tmp_path):
    answers = run(START + FIRST_FIT + END, tmp_path)
    assert answers["imported"] == []
    assert answers["two classes"] > 0.8


def test_what_needs_jax_names_its_extra(tmp_path):
    code = """
messages = {}
def try_it(name, call):
    try:
        call()
    except ImportError as error:
        messages[name] = [type(error).__name__, str(error)]
for name in gq.inference.WITH_JAX:
    try_it(name, lambda: getattr(gq.inference, name))
graph = gq.graphs.knn_graph(X, n_neighbors=8)
def posterior(likelihood):
    return gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.Matern(), likelihood, [0, 50],
                        [-1, 1])
try_it("word", lambda: gq.GraphClassifier(inference="pcn").fit(X, labels(2)))
try_it("text", lambda: gq.GraphClassifier(inference="Laplace()").fit(X, labels(2)))
try_it("derivatives", lambda: gq.infer(posterior(gq.likelihoods.Logistic()),
                                       "expectation-propagation"))
answers = messages
"""
    messages = run(BLOCKED + START + code + END, tmp_path)
    assert messages.pop("imported") == []
    assert messages.keys() == {*gq.inference.WITH_JAX, "word", "text", "derivatives"}
    for name, (kind, message) in messages.items():
        assert kind == "MissingPackage", name
        assert message == "the package jax is not installed; run pip install 'graphuq[jax]'"


def test_own_parts_in_numpy_run_without_jax(tmp_path):
    """A prior and a likelihood with `array_namespace`; with JAX they give the same numbers."""
    code = """
from graphuq.utils.arrays import array_namespace, special_functions
class Own(gq.likelihoods.Likelihood):
    noise_std: float = 0.3
    def log_prob(self, u, y):
        return special_functions(u).log_ndtr(y * u / self.noise_std)
    def tilt(self, mean, variance, y):
        return gq.likelihoods.Probit(self.noise_std).tilt(mean, variance, y)
    def tilted_label_mean(self, mean, variance, y):
        return gq.likelihoods.Probit(self.noise_std).tilted_label_mean(mean, variance, y)
class Bell(gq.priors.Prior):
    def log_variances(self, eigenvalues):
        return -array_namespace(eigenvalues).exp(eigenvalues)
graph = gq.graphs.knn_graph(X, n_neighbors=8)
posterior = gq.Posterior(gq.laplacian_spectrum(graph), Bell(), Own(), [0, 1, 50, 51],
                         [-1, -1, 1, 1])
found = gq.infer(posterior, "expectation-propagation").probabilities
answers["probabilities"] = found[:, 1].tolist()
"""
    without = run(BLOCKED + START + code + END, tmp_path)
    with_jax = run(START + code + END, tmp_path)
    assert without["imported"] == []
    assert with_jax["imported"] == ["jax", "equinox"]  # it traces the likelihood, to check it
    np.testing.assert_allclose(without["probabilities"], with_jax["probabilities"], atol=1e-12)
