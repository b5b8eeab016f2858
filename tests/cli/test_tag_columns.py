"""``graphuq classify --tag-columns``: rows with several tags in a file."""

import json

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run
from graphuq.cli.tags import tags_of_texts
from graphuq.labelling.tag_text import names_in, text_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
TRUE = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.2])
FAST = ["--model", "fixed", "--inference", "expectation-propagation"]


@pytest.fixture
def csv(tmp_path):
    known = np.arange(90) < 30
    frame = pd.DataFrame({"id": [f"f{i}" for i in range(90)], "x": X[:, 0], "z": X[:, 1]})
    frame["comedy"] = np.where(known, np.where(TRUE[:, 0], "yes", "No"), "")
    frame["drama"] = np.where(known & (np.arange(90) > 4), TRUE[:, 1].astype(int).astype(str), "?")
    names = [";".join(np.array(["comedy", "drama"])[row]) or ";" for row in TRUE]
    frame["genres"] = np.where(known, names, "")
    frame.to_csv(tmp_path / "films.csv", index=False)
    return tmp_path / "films.csv"


def classify(csv, columns, *more):
    every = {"comedy", "drama", "genres"} - set(columns.split(","))
    drop = [word for name in sorted(every) for word in ("--drop", name)]
    command = ["classify", str(csv), "--tag-columns", columns, "--id-column", "id", *drop]
    return run([*command, "-o", str(csv.parent / "out"), *FAST, *more])


@pytest.mark.filterwarnings("ignore::graphuq.errors.MissingLabelWarning")
def test_columns_of_yes_and_no(csv, capsys):
    assert classify(csv, "comedy,drama", "--scaling", "standard") == 0
    out, printed = csv.parent / "out", capsys.readouterr().out
    assert "90 rows, 2 tags" in printed
    assert "of 25 labels" in printed
    table = pd.read_csv(out / "predictions.csv")
    assert table["id"].tolist()[:2] == ["f0", "f1"]
    y = np.where(np.arange(90)[:, None] < 30, TRUE, -1)
    y[:5, 1] = -1
    own = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    direct = gq.MultilabelClassifier(own).fit(X / X.std(axis=0), y)
    shown = table[["probability_comedy", "probability_drama"]].to_numpy()
    np.testing.assert_allclose(shown, direct.tag_probabilities_, atol=2e-4)
    tags = pd.read_csv(out / "tags.csv")
    assert tags["n_labels"].tolist() == [30, 25]
    new = csv.parent / "new.csv"
    pd.DataFrame({"z": X[:, 1], "x": X[:, 0]}).to_csv(new, index=False)
    answer = csv.parent / "answer.csv"
    assert run(["predict", str(out / "posterior.nc"), str(new), "-o", str(answer)]) == 0
    again = pd.read_csv(answer)
    np.testing.assert_allclose(again[["probability_comedy", "probability_drama"]], shown, atol=1e-4)
    assert again["tags"].fillna("").tolist() == table["tags"].fillna("").tolist()


def test_one_column_of_names(csv):
    assert classify(csv, "genres", "--quiet") == 0
    table = pd.read_csv(csv.parent / "out" / "predictions.csv")
    y = np.where(np.arange(90)[:, None] < 30, TRUE, -1)
    own = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    direct = gq.MultilabelClassifier(own).fit(X, y)
    shown = table[["probability_comedy", "probability_drama"]].to_numpy()
    np.testing.assert_allclose(shown, direct.tag_probabilities_, atol=2e-4)


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ("comedy,comedy", [], "--tag-columns: 'comedy,comedy'; name different columns"),
        ("comedy,x", [], "which means neither yes nor no; write 1 or 0"),
        ("comedy,nothing", [], "'nothing' is not among"),
        ("comedy,drama", ["--ordered"], "--ordered: True beside --tag-columns"),
        ("comedy,drama", ["--label-column", "x"], "--label-column: x beside --tag-columns"),
        ("comedy,drama", ["--max-classes", "3"], "--max-classes: 3 beside --tag-columns"),
        ("comedy,drama", ["--store", "s"], "--store: s beside --tag-columns"),
        ("comedy,drama", ["--search", "tau=0.1:1"], "--search"),
    ],
)
@pytest.mark.filterwarnings("ignore::graphuq.errors.MissingLabelWarning")
def test_wrong_options_are_refused(csv, capsys, columns, more, words):
    assert classify(csv, columns, *more) == 2
    assert words in capsys.readouterr().err
    assert not (csv.parent / "out" / "predictions.csv").exists()


@pytest.mark.parametrize("command", ["query", "explain"])
def test_commands_for_one_label_say_so(csv, capsys, command):
    assert classify(csv, "genres", "--quiet") == 0
    assert run([command, str(csv.parent / "out" / "posterior.nc")]) == 2
    assert "holds several tags; read tags.csv" in capsys.readouterr().err


def test_the_labelling_page_continues_tags(tmp_path, monkeypatch, capsys):
    """Known tags of a column, one row confirmed; ``classify`` reads what ``label`` wrote."""
    pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
    X = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    own = [[n for n, x in zip(("high", "odd"), row, strict=True) if x > 0] for row in X]
    texts = [";".join(tags) or ";" for tags in own]
    table = pd.DataFrame(X, columns=["a", "b"]).assign(known=[*texts[:20], *[""] * 40])
    table.to_csv(tmp_path / "items.csv", index=False)

    def person(page):
        page.session.label("ada", [30], ["odd", "new"])
        page.session.wait_until_current()
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    common = [str(tmp_path / "items.csv"), "--label-column", "known", "--no-browser", "-o",
              str(tmp_path / "out")]  # fmt: skip
    assert run(["label", *common, "--tags", "--class", "low", "--export", "csv"]) == 0
    labels = pd.read_csv(tmp_path / "out" / "labels.csv").set_index("id")["label"]
    assert labels.to_dict() == {**dict(enumerate(texts[:20])), 30: "new;odd"}
    answers = pd.read_csv(tmp_path / "out" / "predictions.csv", keep_default_na=False)
    assert list(answers.columns)[:4] == ["id", "tags", "probability_high", "probability_new"]
    written = str(tmp_path / "out" / "labelled.csv")
    out = ["--id-column", "id", "-o", str(tmp_path / "fit")]
    assert run(["classify", written, "--tag-columns", "label", *out]) == 0
    found = pd.read_csv(tmp_path / "fit" / "tags.csv").set_index("tag")["n_labels"]
    assert found.to_dict() == {"high": 21, "new": 21, "odd": 21}
    capsys.readouterr()
    for more, words in [
        (["--class-order", "a,b"], "--tags: given beside an order; leave one of the two out"),
        (["--export", "prodigy"], "layout: 'prodigy' for tags; use csv, parquet or jsonl"),
        (["--class", "a|b"], "classes: 'a|b' as a tag; use a name without ; and |"),
    ]:
        assert run(["label", *common, "--tags", *more]) == 2
        assert words in capsys.readouterr().err
    assert run(["label", *common]) != 0
    assert "has tags, several an item" in capsys.readouterr().err


WAYS = {
    "semicolons": lambda names: ";".join(names) or ";",
    "bars": lambda names: " | ".join(names) or "|",
    "commas": lambda names: ", ".join(names) or ",",
    "lists": lambda names: str(list(names)),
    "sets": lambda names: str(set(names)),
    "JSON": json.dumps,
    "lists without quotes": lambda names: f"[{', '.join(names)}]",
}


@pytest.mark.parametrize("way", WAYS)
def test_names_of_tags_are_written_in_many_ways(way):
    rows = [["comedy", "drama"], ["drama"], [], None, ["comedy"]]
    texts = np.array([[""] if names is None else [WAYS[way](names)] for names in rows])
    found = tags_of_texts(texts, ["genres"])
    assert found == [None if names is None else set(names) for names in rows]


def test_commas_within_names_stay_where_other_marks_or_quotes_part_them():
    rows = [["The Good, the Bad"], ["The Good, the Bad", "drama"]]
    for way in ("semicolons", "lists", "JSON"):
        texts = np.array([[WAYS[way](names)] for names in rows])
        assert tags_of_texts(texts, ["genres"]) == [set(names) for names in rows]


def test_texts_that_only_look_like_lists_are_names():
    texts = np.array([["(1)"], ["{[a]}"], ["(None)"], ["[" * 5000 + "]" * 5000]], dtype=object)
    found = tags_of_texts(texts, ["genres"])
    assert found[:3] == [{"1"}, {"[a]"}, {"None"}]
    assert len(found[3]) == 1


@pytest.mark.parametrize("names", [["a, b"], ["a, b", "c"], [], ["c"]])
def test_what_the_labelling_page_writes_is_read(names):
    assert tags_of_texts(np.array([[text_of(names)]]), ["genres"]) == [set(names)]
    assert names_in(text_of(names)) == sorted(names)


@pytest.mark.parametrize("words", [("yes", "no", ""), ("1", "0", "-1"), ("1.0", "0.0", "")])
def test_one_column_of_yes_and_no_is_one_tag(words):
    found = tags_of_texts(np.array(words)[:, None], ["comedy"])
    assert found.to_dict("list") == {"comedy": [1, 0, -1]}
