"""The core alone fits and predicts; what needs an extra says so, with the command to install it."""

import json
import pickle
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from graphuq.errors import GraphuqError, MissingPackage
from graphuq.utils.extras import DISTRIBUTIONS, EXTRAS, has_extra, require_extra

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
OPTIONAL = PROJECT["optional-dependencies"]
MAX_CORE = 15  # packages of the core beside those that scikit-learn installs, graphuq included


def names_of(requirements):
    """Return the names of requirements that apply here, those of graphuq's extras included."""
    names = set()
    for text in requirements:
        needed = Requirement(text)
        if needed.name == "graphuq":
            names |= names_of(text for extra in needed.extras for text in OPTIONAL[extra])
        elif needed.marker is None or needed.marker.evaluate({"extra": ""}):
            names.add(canonicalize_name(needed.name))
    return names


def installed_by(names):
    """Return packages and all that they install."""
    found, left = set(), set(names)
    while left:
        name = left.pop()
        found.add(name)
        left |= names_of(requires(name) or []) - found
    return found


CORE = installed_by(names_of(PROJECT["dependencies"]))

BLOCKER = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        blocked = name.partition(".")[0] in BLOCKED
        return None if blocked else super().find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""

FEATURES = """
import json
import numpy as np
import graphuq as gq
from graphuq import *
from sklearn.datasets import make_moons

X, classes = make_moons(60, noise=0.05, random_state=0)
y = np.array([None] * 60, dtype=object)
y[:10] = np.array(["inner", "outer"])[classes[:10]]
by_rows = gq.GraphClassifier(random_state=0).fit(X, y)
graph = gq.graphs.knn_graph(X, n_neighbors=8)
by_graph = gq.GraphClassifier(graph, inference="expectation-propagation").fit(None, y)
numbers = gq.GraphRegressor().fit(X, np.where(np.arange(60) < 20, X[:, 0], np.nan))
wide = np.random.default_rng(0).uniform(size=(4200, 9))
result = by_rows.result_

def accuracy(labels):
    return float((labels == np.array(["inner", "outer"])[classes]).mean())

answers = {
    "accuracy": accuracy(by_rows.predict(X)),
    "accuracy on a graph": accuracy(by_graph.transduction_),
    "probability": by_rows.predict_proba(X).sum(axis=1).tolist(),
    "interval": bool((np.diff(gq.credible_interval(result)) > 0).all()),
    "verdict": str(result),
    "deviation": float(numbers.predict(X[:1], return_std=True)[1][0]),
    "edges": gq.graphs.knn_graph(wide, weights="unweighted").n_edges,
}

features = {
    "anndata": lambda: __import__("graphuq.external.h5ad").external.h5ad.read_h5ad("a.h5ad"),
    "arviz": lambda: gq.to_arviz(result),
    "dask": lambda: __import__("graphuq.engine.cluster").engine.cluster.dask_client(
        2
    ).__enter__(),
    "datasets": lambda: gq.datasets.load_mnist(folder="."),
    "files": lambda: by_rows.save("fit.nc"),
    "jax": lambda: gq.inference.PCN(),
    "jupyter": lambda: __import__("graphuq.labelling.notebook").labelling.notebook.widget(
        "", 400, 0, ""
    ),
    "label": lambda: gq.label(["a", "b"], labels="labels.jsonl"),
    "mcp": lambda: __import__("graphuq.cli.tools").cli.tools.serve(None, {}, None),
    "neighbors": lambda: gq.graphs.knn_graph(wide, search="approximate"),
    "networks": lambda: __import__("graphuq.graphs.graph_files").graphs.graph_files.read_networkx(
        "a.gml"
    ),
    "parquet": lambda: gq.results.write_table(None, "answers.parquet"),
    "plots": lambda: gq.plots.plot_certainty(result),
    "progress": lambda: gq.GraphClassifier(progress=True).fit(X, y),
    "raster": lambda: gq.external.raster.read_scene("scene.tif"),
    "report": lambda: gq.write_report(result, "report.html"),
    "store": lambda: gq.GraphClassifier(store="store").fit("rows.npy", {}),
    "tables": result.to_dataframe,
}
messages = {}
for extra, ask in features.items():
    try:
        ask()
    except ImportError as error:
        messages[extra] = [type(error).__name__, str(error)]
print(json.dumps({"answers": answers, "messages": messages}))
"""


# What each extra is for. h5netcdf no longer installs h5py by itself, for instance: each line runs
# with no other package than those that the metadata of the extra's packages name.
USES = {
    "anndata": """
import anndata
from graphuq.external.h5ad import read_h5ad
anndata.AnnData(X).write_h5ad("a.h5ad")
assert read_h5ad("a.h5ad").n_obs == 60
""",
    "arviz": "gq.to_arviz(result)",
    "cli": """
np.savetxt("rows.csv", X, delimiter=",", header="a,b", comments="")
np.savetxt("labels.csv", np.column_stack([range(10), classes[:10]]), "%d", ",",
           header="id,label", comments="")
from graphuq.cli import main
try:
    main(["classify", "rows.csv", "--labels", "labels.csv", "--inference",
          "expectation-propagation", "--output", "out"])
except SystemExit as end:
    assert not end.code, end.code
assert (Path("out") / "report.html").exists()
""",
    "files": """
by_rows.save("fit.nc")
assert (gq.load("fit.nc").predict(X) == by_rows.predict(X)).all()
""",
    "parquet": """gq.results.write_table(result.to_dataframe(), "answers.parquet")""",
    "plots": "gq.plots.plot_certainty(result)",
    "report": """gq.write_report(result, "report.html")""",
    "store": """
np.save("rows.npy", np.random.default_rng(0).normal(size=(600, 3)))
few = gq.GraphClassifier(store="store", n_eigenpairs=20)
few.fit("rows.npy", {0: "a", 1: "b", 2: "a"})
assert any(Path("store").iterdir())
""",
    "tables": "assert len(result.to_dataframe()) == 60",
}
FITTED = """
from pathlib import Path
import numpy as np
import graphuq as gq
from sklearn.datasets import make_moons

X, classes = make_moons(60, noise=0.05, random_state=0)
y = np.array([None] * 60, dtype=object)
y[:10] = np.array(["inner", "outer"])[classes[:10]]
by_rows = gq.GraphClassifier(inference="expectation-propagation").fit(X, y)
result = by_rows.result_
"""


def run_with_core(code, folder, extra=None):
    """Run code in a process that can import the core, an extra and the standard library only."""
    allowed = CORE if extra is None else CORE | installed_by(names_of(OPTIONAL[extra]))
    blocked = {
        module
        for module, packages in packages_distributions().items()
        if not allowed & {canonicalize_name(package) for package in packages}
    } - {"graphuq"}
    program = f"BLOCKED = {blocked!r}\n{BLOCKER}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Return what a process with the core alone computes, and what it refuses."""
    done = run_with_core(FEATURES, tmp_path_factory.mktemp("core"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_core_has_few_packages():
    own = CORE - installed_by({"scikit-learn"}) | {"graphuq"}
    assert len(own) <= MAX_CORE, sorted(own)
    assert CORE & {"jax", "jaxlib", "equinox", "numba"} == {"numba"}


def test_the_core_alone_fits_and_predicts(core):
    answers = core["answers"]
    assert answers["accuracy"] > 0.9
    assert answers["accuracy on a graph"] > 0.9
    assert answers["probability"] == pytest.approx([1.0] * 60)
    assert answers["interval"]
    assert answers["verdict"].startswith("Verdict: ")
    assert answers["deviation"] > 0
    assert answers["edges"] > 4200


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"cli"}))
def test_a_feature_names_the_extra_that_it_needs(core, extra):
    kind, message = core["messages"][extra]
    assert kind == "MissingPackage"
    package = re.fullmatch(
        rf"the package (\S+) is not installed; run pip install 'graphuq\[{extra}\]'", message
    )
    assert package[1] in names_of(OPTIONAL[extra])


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", ["cli", *(pytest.param(e, marks=pytest.mark.slow) for e in USES if e != "cli")]
)
def test_an_extra_installs_all_that_it_needs(extra, tmp_path):
    done = run_with_core(FITTED + USES[extra], tmp_path, extra)
    assert done.returncode == 0, done.stderr


def test_the_command_without_its_extra_says_what_to_install(tmp_path):
    done = run_with_core("from graphuq.cli import main\nmain(['demo'])", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(
        r"graphuq: error: the package \w+ is not installed; run pip install 'graphuq\[cli\]'\n",
        done.stderr,
    )


def test_extras_are_those_that_are_installed():
    assert set(EXTRAS) == set(OPTIONAL) - {"all", "dev", "docs", "gpu"}
    for extra, modules in EXTRAS.items():
        needed = {DISTRIBUTIONS.get(module, module) for module in modules}
        direct = names_of(text for text in OPTIONAL[extra] if not text.startswith("graphuq"))
        assert direct <= needed <= names_of(OPTIONAL[extra]), extra
    everything = set().union(*(names_of(OPTIONAL[extra]) for extra in EXTRAS))
    assert names_of(OPTIONAL["all"]) == everything


def test_a_missing_package_is_an_import_error_of_graphuq():
    error = MissingPackage("matplotlib", "plots")
    assert isinstance(error, ImportError)
    assert isinstance(error, GraphuqError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.package, again.extra) == (str(error), "matplotlib", "plots")


def test_a_blocked_package_is_missing(monkeypatch):
    require_extra("plots")
    assert has_extra("plots")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(EXTRAS, "blocked", ("matplotlib",))
    assert not has_extra("plots")
    with pytest.raises(MissingPackage, match=r"pip install 'graphuq\[blocked\]'"):
        require_extra("blocked")
