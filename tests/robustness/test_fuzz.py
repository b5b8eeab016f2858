"""Random damage to every kind of file, and random expressions: graphuq's own errors, or a result.

A few examples run by default. The slow ones run for minutes; set ``GRAPHUQ_FUZZ`` to change
their number.
"""

import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import graphuq as gq
from graphuq.classifier.search.checkpoint import SearchCheckpoint
from graphuq.cli.tables import read_labels, read_table
from graphuq.datasets import load_frames
from graphuq.errors import MAX_MESSAGE, GraphuqError
from graphuq.inference.checkpoint import Checkpoint
from graphuq.labelling.items import TextItems
from graphuq.labelling.store import LabelStore
from graphuq.results.storage import END
from graphuq.run.words import method_from, part_from
from graphuq.spectrum import load_spectrum
from graphuq.utils.expressions import built
from graphuq.utils.serialization import from_json
from robustness import hostile

FEW, MANY = 12, int(os.environ.get("GRAPHUQ_FUZZ", "3000"))
ITEMS = TextItems(["a", "b", "c"])
pytestmark = [
    pytest.mark.usefixtures("unchecked_types"),
    pytest.mark.filterwarnings("ignore"),
]


def labels_file(path):
    LabelStore(path, ITEMS).append("me", {0: "x", 2: "y"})


def read_label_store(path):
    store = LabelStore(path, ITEMS)
    store.close()
    return store.labels()


def saved_classifier(path):
    classifier = gq.GraphClassifier(inference="laplace", missing_label="")
    classifier.fit(hostile.MOONS.features, hostile.LABELS).save(path)


def without_checksum(path):
    saved_classifier(path)
    path.write_bytes(path.read_bytes()[:-END])


def frames(path):
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(np.eye(12, dtype=np.uint8) * 255).save(path)
    Image.fromarray(np.eye(12, dtype=np.uint8) * 255).save(path.parent / "z.png")


def search(path):
    SearchCheckpoint(path, "this").add({"a": 1}, [{"a": 1, "objective": 0.5}])


TABLE = pd.DataFrame(hostile.MOONS.features, columns=["a", "b"]).assign(label=hostile.LABELS)
IDS = np.arange(hostile.N).astype(str)
FILES = {
    "table.csv": (lambda path: TABLE.to_csv(path, index=False), lambda p: read_table(p, "label")),
    "table.parquet": (TABLE.to_parquet, lambda p: read_table(p, "label")),
    "table.npz": (
        lambda path: path.write_bytes(hostile.npz_bytes()),
        lambda path: read_table(path, "label"),
    ),
    "plain.npz": (lambda path: np.savez(path, X=hostile.MOONS.features), read_table),
    "sparse.npz": (
        hostile.sparse_npz,
        lambda path: gq.graphs.from_adjacency(read_table(path).features),
    ),
    "array.npy": (lambda path: np.save(path, hostile.MOONS.features), read_table),
    "labels.csv": (hostile.write_labels, lambda path: read_labels(path, IDS)),
    "labels.jsonl": (labels_file, read_label_store),
    "result.nc": (saved_classifier, gq.load),
    "old.nc": (without_checksum, gq.load),
    "chains.npz": (
        lambda path: Checkpoint(path, (), "a").save({"x": np.arange(9.0)}),
        lambda path: Checkpoint(path, (), "a").load(),
    ),
    "search.json": (search, lambda path: SearchCheckpoint(path, "this").rows({"a": 1})),
    "spectrum.npz": (
        lambda path: gq.laplacian_spectrum(gq.graphs.ring_graph(12)).save(path),
        load_spectrum,
    ),
    "frames/a.png": (frames, lambda path: load_frames(path.parent)),
}
DANGEROUS = {"old.nc": "HDF5, a library in C, reads it before any check of ours can"}


@st.composite
def damages(draw):
    """Return a function that damages the content of a file in one to four places."""
    kinds = st.sampled_from(["replace", "insert", "delete", "cut", "repeat"])
    one = st.tuples(kinds, st.floats(0, 1), st.binary(min_size=1, max_size=12), st.integers(1, 64))
    changes = draw(st.lists(one, min_size=1, max_size=4))

    def damage(content):
        for kind, place, new, length in changes:
            at = int(place * len(content))
            if kind == "replace":
                content = content[:at] + new + content[at + len(new) :]
            elif kind == "insert":
                content = content[:at] + new + content[at:]
            elif kind == "delete":
                content = content[:at] + content[at + length :]
            elif kind == "cut":
                content = content[:at]
            else:
                content = content[:at] + content[at : at + length] * 3 + content[at + length :]
        return content

    return damage


def require_short(error):
    if len(str(error)) > MAX_MESSAGE:
        pytest.fail(f"a message of {len(str(error))} characters")


def survives(read, path):
    """Call a reader, which may return, or raise an error of graphuq of one line."""
    try:
        read(path)
    except GraphuqError as error:
        require_short(error)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"foreign {type(error).__name__}: {error}") from error


def fuzz(name, folder, n_examples):
    make, read = FILES[name]
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    content = path.read_bytes()
    read(path)  # the sound file

    @settings(max_examples=n_examples, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(damages())
    def check(damage):
        path.write_bytes(damage(content))
        survives(read, path)

    check()


@pytest.mark.parametrize("name", [name for name in FILES if name not in DANGEROUS])
def test_damaged_files(name, tmp_path):
    fuzz(name, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_files(name, tmp_path):
    fuzz(name, tmp_path, MANY)


NAMES = st.sampled_from(["Matern", "LogUniform", "Probit", "PCN", "Distribution", "Foo", "eval",
                         "__import__", "MetropolisWithinGibbs", "Categorical"])  # fmt: skip
ATOMS = st.one_of(
    st.floats().map(repr),
    st.integers().map(repr),
    st.sampled_from(["None", "True", "'a'", "b'x'", "1j", "[1, 2]", "{}", "1e400", "x", "lambda: 1",
                     "9**9**9", "f'{1}'", "...", "*a", "**{}", "a.b", "a[0]", "(yield)", "a := 1"]),
)  # fmt: skip


def calls(arguments):
    keyword = st.tuples(st.sampled_from(["tau=", "alpha=", "low=", "kernel=", "", ""]), arguments)
    inside = st.lists(keyword.map("".join), max_size=4).map(", ".join)
    return st.tuples(NAMES, inside).map(lambda pair: f"{pair[0]}({pair[1]})")


EXPRESSIONS = st.one_of(
    st.text(max_size=60).map(lambda text: f"Matern({text})"),
    st.text(alphabet="()[]{}=,.'\"1e-*lambdx \n\\\0", max_size=60),
    st.recursive(ATOMS, lambda inner: st.one_of(calls(inner), inner.map(lambda t: f"({t})"))),
)


def check_expressions(n_examples):
    @settings(max_examples=n_examples, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(EXPRESSIONS)
    def check(text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for use in (
                lambda: built(text, {"Matern": gq.priors.Matern, "dict": dict}, "x"),
                lambda: part_from(text, {}, (gq.priors.Prior,), "prior"),
                lambda: method_from(text),
            ):
                try:
                    use()
                except GraphuqError as error:
                    require_short(error)

    check()


def test_expressions():
    check_expressions(10 * FEW)


@pytest.mark.slow
def test_many_expressions():
    check_expressions(3 * MANY)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["class", "array", "dtype", "shape", "list", "tuple", "mapping",
                             "distribution", "parameters", "tau", "x"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)  # fmt: skip
CLASSES = st.sampled_from(
    ["graphuq.priors:Matern", "os:system", "builtins:eval", "antigravity:x", "Matern", "", ":"]
)


def check_parts(n_examples):
    @settings(max_examples=n_examples, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(JSON, CLASSES)
    def check(value, name):
        fields = value if isinstance(value, dict) else {"tau": value}
        for text in (json.dumps({**fields, "class": name}), json.dumps(value)):
            try:
                from_json(text, gq.priors.Prior, "graphuq.priors")
            except GraphuqError as error:
                require_short(error)

    check()


def test_parts_in_files():
    check_parts(10 * FEW)


@pytest.mark.slow
def test_many_parts_in_files():
    check_parts(MANY)
