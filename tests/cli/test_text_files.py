"""Files of text as other programs write them: the answers are those of the plain file."""

import json

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run
from graphuq.cli.tables import read_table
from graphuq.errors import GraphuqWarning, InvalidInput, StorageError
from graphuq.results.formats import Csv

ONE_MODEL = ["--model", "fixed", "--inference", "expectation-propagation"]  # quick

N = 40
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(1500, 800, (N, 3)).round(2)
TABLE = pd.DataFrame(NUMBERS, columns=["width", "höhe", "c"]).assign(
    label=np.where(np.arange(N) < 6, np.array(["oui", "été"])[np.arange(N) % 2], "")
)


def german(frame):
    """Return numbers as a German spreadsheet writes them: 1.234,50."""
    swap = str.maketrans(".,", ",.")
    return frame.map(lambda v: f"{v:,.2f}".translate(swap) if isinstance(v, float) else v)


def french(frame):
    swap = str.maketrans(".,", ",\u202f")
    return frame.map(lambda v: f"{v:,.2f}".translate(swap) if isinstance(v, float) else v)


def english(frame):
    return frame.map(lambda v: f"{v:,.2f}" if isinstance(v, float) else v)


WRITERS = {
    "plain": lambda t: t.to_csv(index=False).encode(),
    "mark": lambda t: t.to_csv(index=False).encode("utf-8-sig"),
    "utf-16": lambda t: t.to_csv(index=False, sep="\t").encode("utf-16"),
    "utf-16 without mark": lambda t: t.to_csv(index=False).encode("utf-16-be"),
    "cp1252": lambda t: t.to_csv(index=False).encode("cp1252"),
    "semicolons": lambda t: t.to_csv(index=False, sep=";").encode(),
    "tabs": lambda t: t.to_csv(index=False, sep="\t").encode(),
    "pipes": lambda t: t.to_csv(index=False, sep="|").encode(),
    "commas": lambda t: t.to_csv(index=False, sep=";", decimal=",").encode(),
    "German": lambda t: german(t).to_csv(index=False, sep=";").encode("cp1252"),
    "French": lambda t: french(t).to_csv(index=False, sep=";").encode(),
    "quoted commas": lambda t: german(t).to_csv(index=False).encode(),
    "English": lambda t: english(t).to_csv(index=False).encode(),
    "spreadsheet": lambda t: b"sep=;\r\n" + t.to_csv(index=False, sep=";").encode(),
    "comments": lambda t: b"# of 2012\n# by me\n" + t.to_csv(index=False).encode(),
    "apostrophes": lambda t: t.to_csv(index=False, quotechar="'", quoting=2).encode(),
    "separators at the end": lambda t: t.to_csv(index=False).replace("\n", ",\n").encode(),
    "all quoted": lambda t: t.to_csv(index=False, quoting=1).encode(),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_other_programs_are_read(kind, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(WRITERS[kind](TABLE))
    table = read_table(path, "label")
    np.testing.assert_allclose(table.features, NUMBERS, rtol=1e-12)
    assert table.feature_names == ["width", "höhe", "c"]
    assert table.labels.tolist() == TABLE["label"].tolist()


def test_a_file_without_header_and_one_of_blanks(tmp_path):
    TABLE.to_csv(tmp_path / "t.data", index=False, header=False)
    table = read_table(tmp_path / "t.data", "x3")
    np.testing.assert_allclose(table.features, NUMBERS)
    assert "no header" in table.line
    votes = pd.DataFrame(RNG.choice(["y", "n", "?"], (N, 5)))
    votes.to_csv(tmp_path / "votes.data", index=False, header=False)
    assert len(Csv().read(tmp_path / "votes.data")) == N
    aligned = TABLE.drop(columns="label").to_string(index=False)
    (tmp_path / "t.txt").write_text(aligned, encoding="utf-8")
    np.testing.assert_allclose(read_table(tmp_path / "t.txt").features, NUMBERS)
    (tmp_path / "years.csv").write_text("2010,2011\n1,2\n3,4\n5,6\n")
    assert read_table(tmp_path / "years.csv").feature_names == ["2010", "2011"]


WHOLE = np.random.default_rng(3).integers(0, 9, (30, 6))


@pytest.mark.parametrize(
    ("first", "body", "is_header"),
    [
        ("0 1", WHOLE[:, :2], False),  # the first edge of a list
        ("0 1 5", WHOLE[:, :3], False),  # with a weight
        ("7 3 9 1 0 4", WHOLE, False),  # counts
        ("0 1 2 3 4 5", WHOLE, True),  # as pandas numbers columns
        ("0 1", WHOLE[:, :2] + 0.5, True),
        ("2010 2011", WHOLE[:, :2], True),
        ("400 410 420", WHOLE[:, :3] / 10, True),  # wavelengths
    ],
)
def test_a_first_line_of_whole_numbers_is_a_header_only_if_it_is_like_one(
    first, body, is_header, tmp_path
):
    lines = [first, *(" ".join(map(str, row)) for row in body.tolist())]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    table = read_table(tmp_path / "t.txt")
    assert table.features.shape == (30 + (not is_header), body.shape[1])
    assert table.feature_names[0] == (first.split()[0] if is_header else "x0")
    assert ("no header" in table.line) != is_header


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_are_names_of_rows_are_named(suffix, tmp_path):
    """As the names of rows of R, which tell the order of the file, and that often the class."""
    path, shuffled = tmp_path / f"t{suffix}", np.random.default_rng(0).permutation(N)
    numbered = TABLE.assign(number=range(1, N + 1), patient_id=1000 + shuffled // 2)
    numbered.to_csv(path, index=False) if suffix == ".csv" else numbered.to_parquet(path)
    said = (
        r"^X: 'number' numbers the rows, and 'patient_id' is named like an id; .* leave it out "
        r"\(--drop number --drop patient_id\), .*: --id-column number$"
    )
    for encoder in (None, gq.TableEncoder()):
        with pytest.warns(GraphuqWarning, match=said):
            assert read_table(path, "label", encoder=encoder).features.shape[1] == 5
    with pytest.warns(GraphuqWarning, match="'patient_id' is named"):
        gq.GraphClassifier(n_neighbors=5, inference="expectation-propagation").fit(
            numbered[["patient_id"]], shuffled // 2 % 3 - 1
        )


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(np.arange(N) // 4, name="id"),  # few values: codes
        pd.Series(np.linspace(0, 1, N), name="key"),
        pd.Series(np.arange(N)[::-1] ** 2, name="width"),
        pd.Series(np.arange(N)[::-1] ** 2, name="humid"),
    ],
    ids=lambda column: column.name,
)
def test_other_columns_are_no_names_of_rows(column):
    gq.TableEncoder().fit(column.to_frame())


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_labels_by_id_are_not_matched_by_number_beside_a_column_of_ids(tmp_path, capsys):
    """Counted from 1 in the table and from 0 without it, all labels were one row off."""
    table = TABLE.drop(columns="label").assign(Id=np.random.default_rng(0).permutation(N))
    table.to_csv(tmp_path / "t.csv", index=False)
    few = pd.DataFrame({"id": range(1, 7), "label": list("ababab")})
    few.to_csv(tmp_path / "few.csv", index=False)
    command = f"classify {tmp_path / 't.csv'} --labels {tmp_path / 'few.csv'} -o {tmp_path / 'o'}"
    quick = ["--model", "fixed", "--inference", "expectation-propagation", "--n-neighbors", "5"]
    for more in ([], ["--encode"]):
        assert run([*command.split(), *quick, *more]) == 2
        assert (
            "'few.csv' has ids, and column ['Id'] of the table does not name its rows"
            in capsys.readouterr().err
        )
    assert run([*command.split(), *quick, "--id-column", "Id"]) == 0
    answers = pd.read_csv(tmp_path / "o" / "predictions.csv").set_index("id")
    assert answers.loc[range(1, 7), "given"].tolist() == list("ababab")
    TABLE.set_axis(range(1, N + 1)).to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv", "label")
    assert table.ids.tolist() == [str(k) for k in range(1, N + 1)]
    np.testing.assert_allclose(table.features, NUMBERS)


def test_row_names_of_r(tmp_path):
    """`write.table` of R leaves out the name of the names of rows."""
    lines = [" ".join(f'"{name}"' for name in TABLE.columns)]
    lines += [f'"{k}" {" ".join(map(str, row))} "a"' for k, row in enumerate(NUMBERS.tolist(), 1)]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    table = read_table(tmp_path / "t.txt", "label")
    np.testing.assert_allclose(table.features, NUMBERS)
    assert table.ids.tolist() == [str(k) for k in range(1, N + 1)]


REFUSED = {
    "second": (
        "a,b,label\nkg,cm,\n1,2,x\n3,4,y\n",
        "line 2 of 't.csv' looks like a second header line ('kg', 'cm'); delete it, or add --read "
        "header=2 to join the two",
    ),
    "title": (
        "Survey of 2012\n\na,b,label\n1,2,x\n3,4,y\n",
        "another number of cells (1) than most others (3); delete what is above the names of "
        "columns, or add --read skip=2",
    ),
    "twice": ("a,label,label\n1,2,x\n3,4,y\n", "two columns of 't.csv' are named 'label'; rename"),
    "ragged": ("a,label\n1,x\n2,y,3\n4,z\n", "is not a readable csv file"),
    "wide": ("a,label\n" + "1,x,2,3\n" * 9, "another number of cells (2) than most others (4)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_says_what_to_do(kind, tmp_path, capsys):
    text, words = REFUSED[kind]
    (tmp_path / "t.csv").write_text(text)
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label"]
    assert run([*command, "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_remedies_are_options(tmp_path):
    for kind, option in (("second", {"header": "2"}), ("title", {"skip": "2"})):
        (tmp_path / "t.csv").write_text(REFUSED[kind][0])
        table = read_table(tmp_path / "t.csv", "label", options=option)
        np.testing.assert_array_equal(table.features, [[1, 2], [3, 4]])
    (tmp_path / "t.csv").write_text(REFUSED["second"][0])
    joined = read_table(tmp_path / "t.csv", "label", options={"header": "2"}).feature_names
    assert joined == ["a kg", "b cm"]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("sep=;", "--read: 'sep' is unknown; use separator, encoding, decimal, quote, header"),
        ("separator", "--read: 'separator'; write NAME=VALUE, as in separator=';'"),
        ("separator=ab", "--read: separator=ab; give one character, or tab"),
        ("encoding=utf-9", "--read: encoding=utf-9; use utf-8, cp1252"),
        ("decimal=;", "--read: decimal=;; give a point or a comma"),
        ("header=3", "--read: header=3; give 0, 1 or 2 lines"),
        ("encoding=ascii", "is not text in ascii; name its encoding by --read encoding=latin-1"),
    ],
)
def test_wrong_values_of_the_option_are_refused(told, words, tmp_path, capsys):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label", "--read", told]
    assert run([*command, "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


def test_every_part_can_be_said(tmp_path):
    text = "x\n'a''b'%'c'\n'1,234'%'ü'\n'2,345'%'v'\n"
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    told = {"separator": "%", "quote": "'", "skip": "1", "header": "1", "encoding": "latin-1"}
    for decimal, value in ((".", 1234), (",", 1.234)):
        table = read_table(tmp_path / "t.csv", "c", options=told | {"decimal": decimal})
        assert table.features[0, 0] == value
        assert table.labels.tolist() == ["ü", "v"]
        expected = told | {"decimal": decimal, "skip": 1, "header": 1}
        assert {name: table.settings[name] for name in expected} == expected


def test_parquet_has_no_such_parts(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    for encoder in (None, gq.TableEncoder()):
        with pytest.raises(InvalidInput, match=r"--read: given beside 't.parquet'; leave it out"):
            read_table(tmp_path / "t.parquet", "label", encoder=encoder, options={"decimal": ","})


def test_what_was_taken_is_printed_and_stored(tmp_path, capsys):
    german(TABLE).assign(day="5.1.2012").to_csv(
        tmp_path / "t.csv", index=False, sep=";", encoding="cp1252"
    )
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label", "--encode"]
    command += [*ONE_MODEL, "-o", str(tmp_path / "out")]
    assert run(command) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == (
        "t.csv: 40 rows; separator ';', cp1252, decimal commas; 3 numbers, 1 date; written as "
        "day (%d.%m.%Y)"
    )
    with pytest.warns(GraphuqWarning, match="those of a table encoder"):
        settings = gq.load(tmp_path / "out" / "posterior.nc").result_.settings["table"]
    assert settings["separator"] == ";"
    assert settings["columns"]["day"] == "date (%d.%m.%Y)"
    assert json.dumps(settings)
    command = ["predict", str(tmp_path / "out" / "posterior.nc"), str(tmp_path / "t.csv")]
    assert run([*command, "-o", str(tmp_path / "p.csv")]) == 0
    found = pd.read_csv(tmp_path / "p.csv")["label"]
    assert (found == pd.read_csv(tmp_path / "out" / "predictions.csv")["label"]).all()


def test_a_few_new_rows_are_read_with_the_mark_of_the_fit(tmp_path):
    frame = pd.DataFrame({"a": np.arange(9) + 0.25, "label": list("xxxxyyyyy")})
    frame.to_csv(tmp_path / "t.csv", index=False, decimal=",", quoting=1)
    encoder = gq.TableEncoder(scale=False)
    read_table(tmp_path / "t.csv", "label", encoder=encoder)
    (tmp_path / "new.csv").write_text('"a"\n"1,234"\n')
    assert read_table(tmp_path / "new.csv", encoder=encoder).features == [[1.234]]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_one_column_has_no_separator(separator, tmp_path):
    """Its decimal commas, and the commas in its texts, are none."""
    TABLE[["c"]].to_csv(tmp_path / "t.csv", index=False, decimal=",", sep=";")
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_allclose(table.features, NUMBERS[:, 2:])
    texts = pd.DataFrame({"text": ["a, b", "c; d", "e", "f, g"] * 9})
    texts.to_csv(tmp_path / "t.csv", index=False, sep=separator)
    assert Csv().read(tmp_path / "t.csv")["text"].tolist() == texts["text"].tolist()


def test_names_that_repeat_are_numbered_and_said(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,label\n1,2,x\n3,4,y\n")
    table = read_table(tmp_path / "t.csv", "label")
    assert table.feature_names == ["a", "a.1"]
    assert "names that repeat: a" in table.line


@pytest.mark.parametrize("encoder", [None, gq.TableEncoder()])
def test_the_index_of_pandas_has_the_ids(encoder, tmp_path):
    frame = TABLE.set_axis([f"r{k}" for k in range(N)])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "label", encoder=encoder)
    assert table.ids.tolist() == [f"r{k}" for k in range(N)]
    assert table.features.shape == (N, 3)
    frame.rename_axis("key").to_parquet(tmp_path / "t.parquet")
    encoder = None if encoder is None else gq.TableEncoder()
    table = read_table(tmp_path / "t.parquet", "label", "key", encoder=encoder)
    assert table.ids[3] == "r3"
    assert table.features.shape == (N, 3)


@pytest.mark.parametrize("encoder", [None, gq.TableEncoder()])
def test_an_index_that_counts_from_one_has_the_ids(encoder, tmp_path):
    """Pandas writes such a range as metadata alone."""
    TABLE.set_axis(pd.RangeIndex(1, N + 1)).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "label", encoder=encoder)
    assert table.ids.tolist() == [str(k) for k in range(1, N + 1)]
    TABLE.to_parquet(tmp_path / "t.parquet")
    encoder = None if encoder is None else gq.TableEncoder()
    table = read_table(tmp_path / "t.parquet", "label", encoder=encoder)
    assert table.ids.tolist() == [str(k) for k in range(N)]


LABELS = "id;label\n1;yes\n{};no\n3;yes\n"


def labelled(tmp_path, first, last, *options):
    """Classify a table whose rows have names from ``first`` on, or none, by labels of three ids."""
    index = None if first is None else range(first, N + first)
    frame = TABLE[["width", "c"]]
    frame = frame if index is None else frame.set_axis(index)
    frame.to_csv(tmp_path / "t.csv", index=index is not None)
    (tmp_path / "l.csv").write_text(LABELS.format(last), encoding="utf-8")
    words = ["classify", str(tmp_path / "t.csv"), "--labels", str(tmp_path / "l.csv")]
    return run([*words, "-o", str(tmp_path / "out"), "--inference", "laplace", *options])


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (1, 0, "id 0, and its first column, which has no name, counts rows from 1"),
        (None, N, f"id {N}, and it counts rows from 0 to {N - 1}; labels seem to be counted from"),
        (0, N, f"id {N}, and it counts rows from 0"),
        (None, N + 1, "with ids that the table lacks"),
    ],
)
def test_labels_that_are_counted_otherwise_are_refused(first, last, said, tmp_path, capsys):
    assert labelled(tmp_path, first, last) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "predictions.csv").exists()


@pytest.mark.parametrize("first", [1, None])
def test_an_id_is_the_name_of_a_row(first, tmp_path, capsys):
    assert labelled(tmp_path, first, 2) == 0
    named = f"rows named by the first column, 1 to {N}"
    assert (named in capsys.readouterr().out) == (first is not None)
    found = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert found[found["given"].notna()]["id"].tolist() == [1, 2, 3]


def test_how_the_file_of_labels_is_read_can_be_said(tmp_path, capsys):
    told = "--read-labels", "separator=;"
    assert labelled(tmp_path, None, 2, *told) == 0
    assert labelled(tmp_path, None, 2, "--read-labels", "separator=|") == 2
    assert labelled(tmp_path, None, 2, "--read-labels", "x") == 2
    assert "--read-labels: 'x'" in capsys.readouterr().err
    words = ["classify", str(tmp_path / "t.csv"), "--label-column", "c", *told]
    assert run([*words, "-o", str(tmp_path / "o")]) == 2
    assert "without --labels" in capsys.readouterr().err
    labels = pd.DataFrame({"id": [1, 2, 3], "label": ["x", "y", "x"]})
    labels.to_parquet(tmp_path / "l.parquet")
    words = ["classify", str(tmp_path / "t.csv"), "--labels", str(tmp_path / "l.parquet"), *told]
    assert run([*words, "-o", str(tmp_path / "o")]) == 2
    assert "--read-labels: given beside 'l.parquet'" in capsys.readouterr().err


def test_a_cut_file_is_found_whatever_its_separator(tmp_path):
    text = TABLE.to_csv(index=False, sep=";")
    (tmp_path / "t.csv").write_text(text[: text.rindex(";") - 20], encoding="utf-8")
    with pytest.raises(StorageError, match=r"the last row of .* has too few fields"):
        read_table(tmp_path / "t.csv", "label")
