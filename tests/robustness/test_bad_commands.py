"""Bad options and bad files on the command line: one line each, exit code 2, and nothing written.

Each entry of a table is a promise of its own; ``docs/robustness.md`` counts them.
"""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphuq as gq
from graphuq.cli.app import run
from robustness import hostile
from robustness.hostile import LONG, TWENTY_DIGITS

pytestmark = pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")

QUICK = ["--inference", "laplace", "--quiet"]
CODE = "__import__('os').system('touch pwned')"
STRANGE = ("", "foo", LONG, "Foo(1)", CODE, "\x1b[31m", "[/b]", "(", "$\\frac$")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Make a folder with a good file of each kind."""
    folder = tmp_path_factory.mktemp("inputs")
    table = pd.read_csv(hostile.write_csv(folder / "good.csv"), keep_default_na=False)
    table.to_parquet(folder / "good.parquet")
    hostile.write_labels(folder / "labels.csv")
    (folder / "good.npz").write_bytes(hostile.npz_bytes())
    np.save(folder / "good.npy", hostile.MOONS.features)
    hostile.sparse_npz(folder / "sparse.npz")
    classifier = gq.GraphClassifier(model="largest-evidence", inference="laplace", missing_label="")
    classifier.fit(hostile.MOONS.features, hostile.LABELS).save(folder / "good.nc")
    return folder


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """Return a function that runs a command, which must be refused in one line."""
    monkeypatch.chdir(tmp_path)

    def check(arguments, *words):
        out = tmp_path / "out"
        where = [] if arguments[0] in ("datasets",) else ["-o", str(out)]
        code = run([*map(str, arguments), *where])
        printed = capsys.readouterr()
        lines = [line for line in printed.err.splitlines() if "graphuq: error:" in line]
        assert code == 2, printed.err[-500:]
        assert len(lines) == 1
        assert len(lines[0]) <= 300
        assert lines[0].isprintable()
        for word in words:
            assert word in lines[0]
        assert not list(tmp_path.glob("pwned"))
        assert not out.exists() or [p for p in out.rglob("*") if p.is_file()] == []

    return check


def classify(inputs, *more, file="good.csv", method=QUICK):
    given = [] if file.endswith((".npy", "sparse.npz")) else ["--label-column", "label"]
    given = given or ["--labels", inputs / "labels.csv"]
    return ["classify", inputs / file, *given, *method, *more]


WHOLE = {
    "--n-neighbors": ("0", "-1"),
    "--n-eigenpairs": ("0", "-1"),
    "--n-samples": ("0", "-5", "3"),
    "--n-chains": ("0", "-1"),
    "--n-warmup": ("-1",),
    "--thin": ("0", "-1"),
    "--random-state": ("-1",),
    "--pca": ("0", "-1", "3"),
    "--max-classes": ("0", "1", "-1"),
}
NEVER_WHOLE = (TWENTY_DIGITS, "x", "", "1.5", "nan", "inf", "²", "1e3", "0x10", "١.")


@pytest.mark.parametrize(
    ("option", "value"),
    [(option, value) for option, bad in WHOLE.items() for value in (*bad, *NEVER_WHOLE)],
)
def test_counts(option, value, inputs, refused):
    refused(classify(inputs, option, value, method=["--inference", "pcn", "--quiet"]))


REAL = {
    "--tail-eigenvalue": [],
}
NEVER_REAL = ("0", "-1", "nan", "inf", "-inf", "1e300", "1e400", "1e-300", "x", "", "1j", "1,5")


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option in REAL for value in NEVER_REAL]
)
def test_numbers(option, value, inputs, refused):
    refused(classify(inputs, *REAL[option], option, value))


WORDS = {
    "--graph": [],
    "--weights": [],
    "--metric": [],
    "--laplacian": [],
    "--model": [],
    "--prior": [],
    "--likelihood": [],
    "--out-of-sample": [],
    "--inference": [],
    "--precision": ["--inference", "pcn"],
    "--criterion": ["--search", "n_neighbors=2:9"],
    "--scaling": [],
    "--search": [],
    "--class-proportions": [],
    "--positive": [],
    "--id-column": [],
    "--truth-column": [],
    "--drop": [],
    "--edges": [],
    "--neighbors-key": [],
    "--use-rep": [],
}


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option in WORDS for value in STRANGE]
)
def test_words(option, value, inputs, refused):
    method = ["--quiet"] if option in ("--inference", "--precision") else QUICK
    refused(classify(inputs, *WORDS[option], option, value, method=method))


EXPRESSIONS = {
    "--prior": [
        *(f"Matern(tau={v})" for v in ("1e300", "1e400", "1e-300", "True", "None", "'a'", "-1")),
        *(f"Matern(alpha={v})" for v in ("1e300", "1e400", "1e-300", "0", "-1", "[1]", "1j")),
        *(f"RegularizedLaplacian(sigma={v})" for v in ("1e300", "1e-300", "0", "b'x'")),
        *(f"RegularizedLaplacian(beta={v})" for v in ("1e300", "1e-300", "0", "{}")),
        "Matern(tau=LogUniform(1, 1e300))",
        "Matern(tau=LogUniform(2, 1))",
        "Matern(tau=Uniform(0, 1e400))",
        "Matern(tau=Gamma(-1, 1))",
        "Matern(truncation=1)",
        "Matern(truncation=1.5)",
        "Matern(truncation=99999999999999999999)",
        "Matern(0.3, 4, 5, None, 6)",
        "Matern(**{'tau': 1})",
        "Matern(*[1])",
        "Matern(tau=1)(2)",
        "Matern(tau=(lambda: 1)())",
        "Matern(tau=1 if True else 2)",
        "Matern(tau=1).__class__",
        "[Matern() for x in (1,)][0]",
        "Matern(tau=f'{1}')",
        "Matern(tau=9**9**9)",
        "Matern(tau=" + "(" * 300 + "1" + ")" * 300 + ")",
        "Matern(tau=" + "-" * 3000 + "1)",
        "Matern(tau=" + "9" * 5000 + ")",
        "Matern() and " + CODE,
        "Probit()",
        "PCN()",
    ],
    "--model": [
        "Fixed(Matern(tau=-1), Probit(0.1))",
        "Fixed(Matern(), 'auto')",
        "Fixed(Probit(), Matern())",
        "LargestEvidence(prior=3)",
        "LargestEvidence(truncation=1.5)",
        "Average(label_design='foo')",
        "Likeliest(of=PCN())",
        "Likeliest(of=Fixed())",
        "Mixture([Term(-1, Matern())])",
        "Matern()",
    ],
    "--likelihood": [
        *(f"Probit(noise_std={v})" for v in ("1e300", "1e400", "1e-300", "0", "-1", "'a'")),
        "Probit(n_classes=1)",
        "Probit(n_classes=1001)",
        "Probit(random_labels=1)",
        "AtomicNoise(1, 2)",
        "Matern()",
    ],
    "--inference": [
        "MetropolisWithinGibbs(1)",
        "MetropolisWithinGibbs(None)",
        "MetropolisWithinGibbs(Matern())",
        "ParallelTempering('pcn')",
        *(f"PCN(step_size={v})" for v in ("0", "2", "'a'", "1e400", "True", "[1]")),
        *(f"Hamiltonian(n_steps={v})" for v in ("0", "1.5", "99999999999999999999", "None")),
        "EllipticalSlice(max_trials='a')",
        "Laplace(tolerance=0)",
        "ExpectationPropagation(max_sweeps=1j)",
        "SequentialIndependence(reference=1)",
        "Matern()",
    ],
}


@pytest.mark.parametrize(
    ("option", "text"), [(option, text) for option in EXPRESSIONS for text in EXPRESSIONS[option]]
)
def test_expressions(option, text, inputs, refused):
    method = ["--quiet"] if option == "--inference" else QUICK
    refused(classify(inputs, option, text, method=method))


UNUSED = [
    ["--n-samples", "100"],
    ["--n-chains", "2"],
    ["--n-warmup", "5"],
    ["--thin", "2"],
    ["--precision", "float64"],
    ["--stop", "none"],
    ["--criterion", "laplace"],
    ["--positive", "neither"],
    ["--model", "average", "--likelihood", "Probit()"],
    ["--max-classes", "1"],
    ["--labels", "labels.csv"],
    ["--use-rep", "X_pca"],
    ["--neighbors-key", "neighbors"],
    ["--n-neighbors", "0", "--edges", "c0,c1"],
    ["--label-column", "c9"],
    ["--metric", "precomputed", "--weights", "cosine"],
]


@pytest.mark.parametrize("options", UNUSED, ids=" ".join)
def test_options_without_effect(options, inputs, refused):
    refused(classify(inputs, *options))


@pytest.mark.parametrize("lie", hostile.SPARSE_LIES)
def test_sparse_files(lie, inputs, refused, tmp_path):
    path = hostile.sparse_npz(tmp_path / "lie.npz", **hostile.SPARSE_LIES[lie])
    more = ["--labels", inputs / "labels.csv", "--graph", "precomputed"]
    refused(["classify", path, *more, *QUICK])


@pytest.mark.parametrize("lie", hostile.NPZ_LIES)
def test_npz_files(lie, refused, tmp_path):
    path = tmp_path / "lie.npz"
    path.write_bytes(hostile.NPZ_LIES[lie]())
    refused(["classify", path, "--label-column", "label", *QUICK])


GOOD = ("good.csv", "good.parquet", "good.npz", "good.npy", "sparse.npz")


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("damage", hostile.DAMAGES)
def test_damaged_tables(name, damage, inputs, refused, tmp_path):
    path = tmp_path / f"damaged{os.path.splitext(name)[1]}"
    path.write_bytes(hostile.DAMAGES[damage]((inputs / name).read_bytes()))
    if name == "good.csv" and damage in ("half", "all but ten bytes"):
        path.write_bytes(path.read_bytes()[:-8])  # within a row, and not between two
    more = ["--graph", "precomputed"] if name == "sparse.npz" else []
    refused(["classify", path, *classify(inputs, *more, file=name)[2:]])


@pytest.mark.parametrize("damage", hostile.DAMAGES)
@pytest.mark.parametrize("kind", ["labels", "posterior"])
def test_other_damaged_files(kind, damage, inputs, refused, tmp_path):
    name = {"labels": "labels.csv", "posterior": "good.nc"}[kind]
    path = tmp_path / name
    path.write_bytes(hostile.DAMAGES[damage]((inputs / name).read_bytes()))
    if kind == "labels":
        if damage in ("half", "all but ten bytes"):
            path.write_bytes(path.read_bytes() + b"\n999,left\n")
        refused(["classify", inputs / "good.npy", "--labels", path, *QUICK])
    else:
        refused(["predict", path, inputs / "good.csv"])


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes in folders")
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npz", "x.npy", "x.h5ad", "x.nc"])
def test_paths_that_are_no_files(name, kind, inputs, refused, tmp_path):
    path = hostile.damaged_paths(tmp_path, name)[kind]
    if name == "x.nc":
        refused(["predict", path, inputs / "good.csv"])
    else:
        refused(["classify", path, "--label-column", "label", *QUICK])
        refused(["classify", inputs / "good.npy", "--labels", path, *QUICK])


def nested(names, *columns):
    return pa.Table.from_arrays([pa.array(column) for column in columns], names=names)


X0, X1 = hostile.MOONS.features.T
TABLES = {
    "two columns of one name": lambda: nested(["a", "a", "label"], X0, X1, hostile.LABELS),
    "two label columns": lambda: nested(["a", "label", "label"], X0, X1, hostile.LABELS),
    "dates": lambda: nested(
        ["a", "b", "label"], X0, pd.date_range("2020", periods=40), hostile.LABELS
    ),
    "lists": lambda: nested(["a", "b", "label"], X0, [[x] for x in X1], hostile.LABELS),
    "records": lambda: nested(["a", "b", "label"], X0, [{"x": x} for x in X1], hostile.LABELS),
    "bytes": lambda: nested(["a", "b", "label"], X0, [b"1"] * 40, hostile.LABELS),
    "gaps": lambda: nested(["a", "b", "label"], X0, [None, *X1[1:]], hostile.LABELS),
    "no rows": lambda: nested(["a", "label"], X0[:0], hostile.LABELS[:0]),
    "no features": lambda: nested(["label"], hostile.LABELS),
    "too large": lambda: nested(["a", "label"], X0 * 1e200, hostile.LABELS),
    "labels are records": lambda: nested(["a", "label"], X0, [{"x": 1}] * 40),
    "one class": lambda: nested(["a", "label"], X0, ["left"] * 40),
    "no label": lambda: nested(["a", "label"], X0, [""] * 40),
}


@pytest.mark.parametrize("kind", TABLES)
def test_parquet_files(kind, refused, tmp_path):
    pq.write_table(TABLES[kind](), tmp_path / "x.parquet")
    refused(["classify", tmp_path / "x.parquet", "--label-column", "label", *QUICK])


CSV_TEXTS = {
    "empty": "",
    "only a header": "a,label\n",
    "one row": "a,label\n1,left\n",
    "more cells than columns": "a,label\n1,left\n2,right,3,4,5\n3,left\n",
    "an open quote": 'a,label\n1,left\n2,"right\n3,left\n',
    "text among numbers": "a,label\n1,left\nhello,right\n3,\n",
    "empty cell": "a,label\n1,left\n,right\n3,\n",
    "NaN": "a,label\n1,left\nnan,right\n3,\n",
    "infinite": "a,label\n1,left\ninf,right\n3,\n",
    "huge": "a,label\n1,left\n1e400,right\n3,\n",
    "squares overflow": "a,label\n1,left\n1e200,right\n3,\n",
    "complex": "a,label\n1,left\n1+2j,right\n3,\n",
    "date": "a,label\n1,left\n2020-01-01,right\n3,\n",
    "hexadecimal": "a,label\n1,left\n0x10,right\n3,\n",
    "a formula": "a,label\n1,left\n=1+1,right\n3,\n",
    "zero byte": "a,label\n1,left\n\x00,right\n3,\n",
    "no label column": "a,b\n1,2\n3,4\n",
    "all the same class": "a,label\n1,left\n2,left\n3,\n",
    "nobody is labelled": "a,label\n1,\n2,\n3,\n",
    "only labels": "label\nleft\nright\n\n",
}


@pytest.mark.parametrize("kind", CSV_TEXTS)
def test_csv_files(kind, refused, tmp_path):
    (tmp_path / "x.csv").write_text(CSV_TEXTS[kind])
    refused(["classify", tmp_path / "x.csv", "--label-column", "label", *QUICK])


LABEL_TEXTS = {
    "no id": "name,label\n0,left\n1,right\n",
    "no label": "id,class\n0,left\n1,right\n",
    "unknown id": "id,label\n0,left\n99,right\n",
    "id twice": "id,label\n0,left\n0,right\n",
    "no rows": "id,label\n",
    "one class": "id,label\n0,left\n1,left\n",
    "long id": f"id,label\n{LONG},left\n1,right\n",
    "terminal codes": "id,label\n\x1b[31m,left\n1,right\n",
}


@pytest.mark.parametrize("kind", LABEL_TEXTS)
def test_files_of_labels(kind, inputs, refused, tmp_path):
    (tmp_path / "labels.csv").write_text(LABEL_TEXTS[kind])
    labels = ["--labels", tmp_path / "labels.csv"]
    refused(["classify", inputs / "good.npy", *labels, *QUICK])


D = np.linalg.norm(hostile.MOONS.features[:, None] - hostile.MOONS.features[None], axis=2)
MATRICES = {
    "negative": -D,
    "asymmetric": D * np.random.default_rng(0).uniform(0.5, 1, D.shape),
    "NaN": D * np.nan,
    "infinite": np.where(D > 0, np.inf, 0.0),
    "not square": D[:, :-1],
    "zero": 0 * D,
    "too large": D * 1e200,
    "too small": D * 1e-200,
    "three axes": D[..., None],
    "complex": D * 1j,
    "one node": D[:1, :1],
}


@pytest.mark.parametrize("as_what", ["--graph", "--metric"])
@pytest.mark.parametrize("kind", MATRICES)
def test_ready_made_matrices(kind, as_what, inputs, refused, tmp_path):
    if (kind, as_what) == ("zero", "--metric"):
        pytest.skip("all nodes at one place are a graph")
    np.save(tmp_path / "x.npy", MATRICES[kind])
    more = ["--labels", inputs / "labels.csv", as_what, "precomputed"]
    refused(["classify", tmp_path / "x.npy", *more, *QUICK])


@pytest.mark.parametrize("name", ["distances.npy", "sparse.npz"])
def test_a_graph_is_not_taken_for_features(name, inputs, refused, tmp_path):
    path = inputs / name
    if name == "distances.npy":
        path = tmp_path / name
        np.save(path, D)
    refused(["classify", path, "--labels", inputs / "labels.csv", *QUICK], "--graph precomputed")


OTHERS = [
    ["predict", "good.nc", "nowhere.csv"],
    ["predict", "good.nc", "labels.csv"],
    ["predict", "good.nc", "good.csv", "--id-column", "label"],
    ["predict", "good.nc", "good.csv", "--id-column", LONG],
    ["predict", "good.nc", "good.csv", "--drop", "zz"],
    ["predict", "good.npz", "good.csv"],
    ["predict", "good.csv", "good.csv"],
    ["predict", "nowhere.nc", "good.csv"],
    ["demo", "--random-state", "-1"],
    ["demo", "--random-state", TWENTY_DIGITS],
    ["demo", "--random-state", "x"],
    ["label", "nowhere.csv"],
    ["label", "good.csv", "--text-column", "zz"],
    ["label", "good.csv", "--image-column", "c0"],
    ["label", "good.csv", "--text-column", "c0", "--image-column", "c1"],
    ["label", "good.csv", "--label-column", "label", "--labels", "labels.csv"],
    ["label", "good.csv", "--features", "nowhere.npy", "--drop", "label"],
    ["label", "good.csv", "--port", TWENTY_DIGITS, "--drop", "label"],
    ["label", "good.csv", "--port", "-1", "--drop", "label"],
    ["label", "--images", "nowhere"],
    ["label"],
    ["datasets", "nothing"],
    ["datasets", "two-moons", "--csv", "x.csv", "--label", "0"],
    ["datasets", "two-moons", "--csv", "x.csv", "--label", "0=²"],
    ["datasets", "two-moons", "--csv", "x.csv", "--label", "9=1"],
    ["datasets", "two-moons", "--csv", "x.csv", "--label", "0=99999"],
    ["datasets", "two-moons", "--csv", "x.csv", "--random-state", "-1", "--label", "0=1"],
    ["datasets", "two-moons", "--classes", "0"],
    ["datasets", "two-moons", "--classes", "0,zz"],
    ["datasets", "digits", "--n-each", "-1", "--classes", "1,2"],
    ["datasets", "digits", "--n-each", "0"],
    ["datasets", "two-moons", "--label", "0=1"],
    ["label", "good.csv", "--drop", "label", "--model", "foo", "--no-browser"],
    ["label", "good.csv", "--drop", "label", "--n-neighbors", "0", "--no-browser"],
    ["nothing"],
]


@pytest.mark.parametrize("arguments", OTHERS, ids=lambda a: " ".join(a)[:60])
def test_other_commands(arguments, inputs, refused):
    files = {path.name for path in inputs.iterdir()}
    refused([inputs / word if word in files else word for word in arguments])
