"""Random damage to every kind of file, and random expressions: graphuq's own errors, or a result.

A few examples run by default; `fuzz_by_coverage` searches for others. ``GRAPHUQ_FUZZ`` sets the
number of random expressions of the slow tests.
"""

import hashlib
import io
import json
import os
import re
import warnings
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphuq as gq
from graphuq.classifier.search.checkpoint import SearchCheckpoint
from graphuq.classifier.table_encoder import TableEncoder
from graphuq.cli.edges import EdgeKind, read_edges
from graphuq.cli.encoding import read_encoded
from graphuq.cli.frames import as_text, read_frame
from graphuq.cli.items import Columns, read_source
from graphuq.cli.tables import read_table
from graphuq.engine.sources import open_source
from graphuq.errors import MAX_MESSAGE, GraphuqError
from graphuq.results.storage import END, MARK
from graphuq.run.words import method_from, part_from
from graphuq.utils.expressions import built
from graphuq.utils.serialization import from_json
from graphuq.utils.text_numbers import to_numbers
from robustness.damage import INSIDE, damaged
from robustness.readers import FILES, READ_TWICE, read_encoded_table

FEW = 12
MANY = int(os.environ.get("GRAPHUQ_FUZZ", "3000"))
pytestmark = [
    pytest.mark.usefixtures("unchecked_types"),
    pytest.mark.filterwarnings("ignore"),
]


def require_short(error):
    if len(str(error)) > MAX_MESSAGE:
        pytest.fail(f"a message of {len(str(error))} characters")


@pytest.mark.parametrize("name", [name for name in FILES if name not in READ_TWICE])
def test_damaged_files(name, tmp_path):
    make, read = FILES[name]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    sound = path.read_bytes()
    read(path)
    for case in range(FEW):
        path.write_bytes(damaged(sound, name, np.random.default_rng([1, case])))
        try:
            read(path)
        except GraphuqError as error:
            require_short(error)


PARSERS = {
    "table.npz": lambda content: zipfile.ZipFile(io.BytesIO(content)).testzip(),
    "studio.json": json.loads,
    "club.graphml": ElementTree.fromstring,
    "mixed.parquet": lambda content: pq.ParquetFile(io.BytesIO(content)).read(),
    "counts.nc": lambda content: h5py.File(io.BytesIO(content), "r").close(),
}


@pytest.mark.parametrize("name", PARSERS)
def test_damage_inside_leaves_the_form_whole(name, tmp_path):
    FILES[name][0](tmp_path / name)
    sound = (tmp_path / name).read_bytes()
    change = next(change for ends, change in INSIDE.items() if name.endswith(ends))
    found = [change(sound, np.random.default_rng([2, case])) for case in range(FEW)]
    assert sum(content != sound for content in found) > FEW // 2
    for content in found:
        PARSERS[name](content)
        if name.endswith(".nc"):
            digest = hashlib.sha256(content[:-END]).hexdigest()
            assert content[-END:] == MARK + digest.encode()


def test_the_weekly_search_has_each_kind_of_file_once():
    workflow = Path(__file__).parents[2] / ".github" / "workflows" / "tests.yml"
    listed = workflow.read_text().partition("kinds:")[2].partition("steps:")[0]
    patterns = re.findall(r"[*][^ \"]*", listed)
    for name in FILES:
        assert sum(fnmatch(name, pattern) for pattern in patterns) == 1, name


@pytest.mark.parametrize("number", ["1e2147483648", "0.1103e9991267218326901523", "-1E+9999999999"])
def test_huge_exponents_do_not_crash(number, tmp_path):
    """The quick parser of pandas 2 ends the process with a segmentation fault at such numbers."""
    path = tmp_path / "x.csv"
    path.write_text(f"a,label\n1,x\n{number},y\n2,\n")
    with pytest.raises(GraphuqError, match="features"):
        read_table(path, "label")
    values = to_numbers(pd.Series(["1", number, "x"], dtype=object))
    assert values.iloc[0] == 1
    assert not np.isfinite(values.iloc[1])
    assert np.isnan(values.iloc[2])


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_return_before_a_blank_is_the_end_of_a_line(blank, encoding, tmp_path):
    """After it pandas takes older rows again and again, until no memory is left."""
    path = tmp_path / "x.csv"
    path.write_bytes(f"a,b,label\n1,2,x\n\r{blank}3,4,y\n5,6,\n".encode(encoding))
    table = read_table(path, "label")
    np.testing.assert_array_equal(table.features, [[1, 2], [3, 4], [5, 6]])
    assert table.labels.tolist() == ["x", "y", ""]


def test_texts_that_are_no_text_are_refused(tmp_path):
    """Found by ten minutes of fuzzing: pandas decodes the texts of a Parquet file late."""
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xec\xff")])
    table = pa.table({"a": [1.0, 2.0], "name": broken, "label": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(GraphuqError, match="parquet file"):
        read_frame(tmp_path / "t.parquet", [])
    with pytest.raises(GraphuqError, match="parquet file"):
        read_encoded_table(tmp_path / "t.parquet")
    with pytest.raises(GraphuqError, match="parquet file"):
        open_source(tmp_path / "t.parquet", ["name", "label"]).blocks[0].texts("name")
    np.savez(tmp_path / "t.npz", X=np.eye(2), label=np.array(["a\udb00", "b"]))
    with pytest.raises(GraphuqError, match="npz file"):
        read_table(tmp_path / "t.npz", "label")


CLASSES_OF_ROWS = {"names": ["x", "y"], "_type": "ClassLabel"}


@pytest.mark.parametrize(
    ("columns", "features"),
    [
        ({"text": ["a", "b"], "label": ["x", "y"]}, {"label": CLASSES_OF_ROWS}),
        ({"text": ["a", "b"], "label": [[0], [1]]}, {"label": CLASSES_OF_ROWS}),
        ({"text": ["a", "b"], "label": [0, 10**12]}, {"label": CLASSES_OF_ROWS}),
        ({"text": ["a", "b"], "label": [0, 1]}, {"label": CLASSES_OF_ROWS | {"names": 5}}),
    ],
)
def test_class_codes_without_names_are_refused(columns, features, tmp_path):
    """Found by coverage, as all that follows here: files of other tools are not as they say."""
    info = json.dumps({"info": {"features": features}})
    table = pa.table(columns).replace_schema_metadata({"huggingface": info})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(GraphuqError, match="a code without a name"):
        read_source(tmp_path / "t.parquet", Columns(), None)


def test_cells_of_any_type_are_shown_as_text(tmp_path):
    columns = {"text": [["a", "b"], None], "id": [b"\xff", b"\xfe"]}
    for metadata in ("[]", json.dumps({"info": {"features": 5}}), "[" * 10**5):
        table = pa.table(columns).replace_schema_metadata({"huggingface": metadata})
        pq.write_table(table, tmp_path / "t.parquet")
        items = read_source(tmp_path / "t.parquet", Columns(), None).items
        assert items.texts == ["['a' 'b']", ""]
        assert items.ids == ["b'\\xff'", "b'\\xfe'"]


@pytest.mark.parametrize("text", ["1", '"a"', "null", "[1]", '{"id": 1}'])
def test_exports_that_are_no_list_of_tasks_are_refused(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(GraphuqError, match="a list of tasks"):
        read_source(tmp_path / "x.json", Columns(), None)


@pytest.mark.parametrize(
    ("numbers", "ids"), [([1, 2], ["1", "2"]), ([[], 2], ["0", "1"]), ([1, "1"], ["0", "1"])]
)
def test_numbers_of_tasks_that_name_none_are_not_used(numbers, ids, tmp_path):
    tasks = [{"id": number, "text": "a", "label": "x"} for number in numbers]
    (tmp_path / "x.json").write_text(json.dumps(tasks))
    assert list(read_source(tmp_path / "x.json", Columns(), None).items.ids) == ids


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.0, np.nan, -3.0], ["1", "", "-3"]),
        ([1.0, 1.5], ["1.0", "1.5"]),
        ([1.0, 1e300, np.inf], ["1", "1e+300", "inf"]),
        ([[1, 2], None, "a "], ["[1, 2]", "", "a"]),
        ([2**62 + 1, None, True], [str(2**62 + 1), "", "True"]),
    ],
)
def test_cells_as_text(values, texts):
    assert as_text(pd.Series(values)).tolist() == texts


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_table(path, "label"),
        lambda path: read_encoded(path, ["label"], [], TableEncoder()),
    ],
)
def test_an_index_of_objects_names_rows_by_their_text(read, tmp_path):
    frame = pd.DataFrame({"b": [1.0, 2, 3, 4], "label": ["x", "y", "", ""]}, index=list("wxyz"))
    table = pa.Table.from_pandas(frame.rename_axis("i"))
    place = table.schema.names.index("i")
    for cells, ids in (
        ([{"a": k // 2} for k in range(4)], ["0", "1"]),
        ([[1], [2], [3], [4]], ["[1]", "[2]"]),
    ):
        pq.write_table(table.set_column(place, "i", pa.array(cells)), tmp_path / "t.parquet")
        found = read(tmp_path / "t.parquet").ids
        assert (["0", "1"] if found is None else found[:2].tolist()) == ids


@pytest.mark.parametrize("cells", [[b"\xff", b"1"], [[1], [2]], [None, True]])
def test_weights_of_edges_that_are_no_numbers_are_refused(cells, tmp_path):
    edges = {"source": ["a", "b"], "target": ["b", "c"], "weight": pa.array(cells)}
    pq.write_table(pa.table(edges), tmp_path / "e.parquet")
    with pytest.raises(GraphuqError, match="in row 0; give a number in every row"):
        read_edges(tmp_path / "e.parquet", "source,target,weight", {}, EdgeKind())
    edges["weight"] = pa.array(["1", "2.5"]).dictionary_encode()
    pq.write_table(pa.table(edges), tmp_path / "e.parquet")
    found = read_edges(tmp_path / "e.parquet", "source,target,weight", {}, EdgeKind()).features
    assert sorted(found.data) == [1, 1, 2.5, 2.5]


def test_an_index_beyond_64_bits_is_refused(tmp_path):
    frame = pd.DataFrame({"source": ["a"], "target": ["b"]}, index=pd.RangeIndex(1, 2))
    table = pa.Table.from_pandas(frame)[:0]
    about = table.schema.metadata[b"pandas"].replace(b'"start": 1', b'"start": 1' + 30 * b"0")
    pq.write_table(table.replace_schema_metadata({b"pandas": about}), tmp_path / "e.parquet")
    with pytest.raises(GraphuqError, match="is not a readable parquet file"):
        read_edges(tmp_path / "e.parquet", "source,target", {}, EdgeKind())


@pytest.mark.parametrize("rows", [[], {"a": 5}, {"a": ["x"]}, {"a": [{"b": [1, [2]]}]}, "a"])
def test_rows_of_a_search_that_are_no_rows_are_refused(rows, tmp_path):
    """The search forged the checksum: it sees both sides of a comparison."""
    digest = hashlib.sha256(json.dumps(["this", rows], sort_keys=True).encode()).hexdigest()
    content = {"search": "this", "rows": rows, "checksum": digest}
    (tmp_path / "search.json").write_text(json.dumps(content))
    with pytest.raises(GraphuqError, match="is not a readable checkpoint of a search"):
        SearchCheckpoint(tmp_path / "search.json", "this")


def test_names_of_columns_that_are_lost_elsewhere_are_refused(tmp_path):
    pd.DataFrame({"a": [1.5, 2], "c\0": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(GraphuqError, match="zero bytes in the name"):
        read_encoded(tmp_path / "t.parquet", [], [], TableEncoder())
    table = pa.table([pa.array([1.0]), pa.array(["x"]), pa.array(["y"])], ["a", "label", "label"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(GraphuqError, match="two columns named 'label'"):
        open_source(tmp_path / "t.parquet", ["label"])


@pytest.mark.parametrize("depth", [300, 900, 3000])  # for `ast`, for Python, for its parser
def test_a_deep_expression_is_refused(depth):
    for text in (f"Matern({'-' * depth}x)", f"Matern({'-' * depth}1{'.a' * depth})"):
        with pytest.raises(GraphuqError):
            built(text, {"Matern": gq.priors.Matern}, "x")


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
                from_json(text, gq.priors.Prior)
            except GraphuqError as error:
                require_short(error)

    check()


def test_parts_in_files():
    check_parts(10 * FEW)


@pytest.mark.slow
def test_many_parts_in_files():
    check_parts(MANY)
