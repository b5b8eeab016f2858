"""Tables of mixed columns: the features are those of a scikit-learn pipeline made by hand."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import graphuq as gq
from graphuq.errors import GraphuqWarning, InvalidInput, StorageError

N = 200
RNG = np.random.default_rng(0)
WORDS = ["fox", "dog", "cat", "cow", "owl", "bee", "ant", "rat", "hen", "pig", "bat", "elk"]
TABLE = pd.DataFrame(
    {
        "size": np.where(np.arange(N) % 7 == 0, np.nan, RNG.normal(10, 5, N)),
        "count": RNG.integers(0, 9, N),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 400, N), "D"),
        "colour": np.where(np.arange(N) % 11 == 0, None, RNG.choice(["red", "blue"], N)),
        "member": RNG.uniform(size=N) < 0.4,
        "paid": pd.array(np.where(np.arange(N) % 9 == 0, None, True), dtype="boolean"),
        "grade": pd.Categorical(RNG.choice(list("abc"), N)),
        "note": [" ".join(RNG.choice(WORDS, 6)) for _ in range(N)],
    }
)
TABLE.loc[3, "day"] = pd.NaT
KINDS = dict(zip(TABLE, ["number"] * 2 + ["date"] + ["category"] * 4 + ["text"], strict=True))


def by_hand(table):
    """Return the features by a pipeline of scikit-learn, and nothing of graphuq."""
    plain = table.copy()
    plain["day"] = (plain["day"] - pd.Timestamp(0)).dt.total_seconds() / 86400
    for name in ("colour", "member", "paid", "grade"):
        texts = [np.nan if pd.isna(value) else str(value) for value in table[name]]
        plain[name] = pd.Series(texts, dtype=object)
    gaps = ["size", "day", "colour", "paid"]
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    words = TfidfVectorizer(sublinear_tf=True, max_df=0.5, min_df=2)
    parts = [
        ("numbers", scaled, ["size", "count", "day"]),
        ("categories", one_hot, ["colour", "member", "paid", "grade"]),
        ("words", words, "note"),
        ("gaps", MissingIndicator(), gaps),
    ]
    return ColumnTransformer(parts, sparse_threshold=0).fit(plain).transform(plain)


def test_features_are_scikit_learns_bit_for_bit():
    encoder = gq.TableEncoder(impute=True)
    features = encoder.fit_transform(TABLE)
    np.testing.assert_array_equal(features, by_hand(TABLE))
    assert encoder.kinds_ == KINDS
    assert encoder.get_feature_names_out()[3] == "category__colour_blue"
    assert isinstance(encoder.transformer_, ColumnTransformer)


@pytest.mark.slow
def test_a_stored_encoder_gives_the_same_features(tmp_path):
    encoder = gq.TableEncoder(impute=True).fit(TABLE)
    features = encoder.transform(TABLE)
    y = np.where(np.arange(N) < 20, np.arange(N) % 2, -1)
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(
        features, y
    )
    classifier.save(tmp_path / "m.nc", encoder.to_groups())
    again = gq.TableEncoder.load(tmp_path / "m.nc")
    order = RNG.permutation(N)
    shuffled = TABLE.iloc[order, ::-1].assign(other="ignored")
    np.testing.assert_array_equal(again.transform(shuffled), features[order])
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert again.get_params() == encoder.get_params()
    with pytest.warns(GraphuqWarning, match=r"those of a table encoder; encode new rows by Table"):
        gq.load(tmp_path / "m.nc")
    classifier.save(tmp_path / "plain.nc")
    with pytest.raises(StorageError, match="holds no encoder of tables"):
        gq.TableEncoder.load(tmp_path / "plain.nc")


def test_in_a_pipeline():
    y = np.where(np.arange(N) < 40, TABLE["member"], -1)
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    model = make_pipeline(gq.TableEncoder(impute=True), classifier).fit(TABLE, y)
    found = model.predict_proba(TABLE)
    features = gq.TableEncoder(impute=True).fit_transform(TABLE)
    np.testing.assert_array_equal(found, classifier.fit(features, y).predict_proba(features))
    assert clone(gq.TableEncoder(kinds={"a": "text"})).kinds == {"a": "text"}


def test_unknown_categories_and_new_gaps():
    table = TABLE[["colour", "count"]].fillna("red")
    encoder = gq.TableEncoder(impute=True).fit(table)
    new = pd.DataFrame({"colour": ["mauve", None, "blue"], "count": [1.0, np.nan, 2.0]})
    with pytest.warns(GraphuqWarning, match=r"did not have \(colour 'mauve'\) count as none"):
        features = encoder.transform(new)
    np.testing.assert_array_equal(features[:, 1:], [[0, 0], [0, 1], [1, 0]])
    median = (np.median(table["count"]) - table["count"].mean()) / table["count"].std(ddof=0)
    assert features[1, 0] == pytest.approx(median)
    with pytest.raises(InvalidInput, match=r"it lacks \['count'\] of the 2 columns"):
        encoder.transform(new[["colour"]])
    refusing = gq.TableEncoder().fit(table)
    with pytest.raises(InvalidInput, match="column 'colour' has 1 empty cell, the first in row 1"):
        refusing.transform(new.iloc[:2, :1].assign(count=1))


def test_kinds_of_texts():
    table = pd.DataFrame(
        {
            "number": ["1", "2.5", ""],
            "date": ["2024-01-05", "2024-02-01T10:00:00", "2024-03-01"],
            "object": [datetime.date(2024, 1, 5), datetime.date(2024, 2, 1), None],
            "mixed": [3.0, "x", 3],
            "upper": ["TRUE", "False", "true"],
        }
    )
    encoder = gq.TableEncoder(impute=True, scale=False).fit(table)
    expected = ["number", "date", "date", "category", "category"]
    assert list(encoder.kinds_.values()) == expected
    features = encoder.transform(table)
    np.testing.assert_array_equal(features[:, 0], [1, 2.5, 1.75])
    days = (datetime.date(2024, 1, 5) - datetime.date(1970, 1, 1)).days
    np.testing.assert_allclose(features[:2, 1], [days, days + 27 + 10 / 24], rtol=1e-12)
    np.testing.assert_array_equal(features[:2, 2], [days, days + 27])
    np.testing.assert_array_equal(features[:, 3:7], [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
    codes = gq.TableEncoder(kinds={"count": "category"}).fit(TABLE[["count"]])
    assert codes.transform(TABLE[["count"]]).sum(axis=1).tolist() == [1] * N
    question = pd.DataFrame({"vote": ["y", "?", "n"]})
    names = gq.TableEncoder(impute=True, missing_values="?").fit(question).get_feature_names_out()
    assert names.tolist() == [
        "category__vote_n",
        "category__vote_y",
        "empty__missingindicator_vote",
    ]


@pytest.mark.parametrize(
    ("table", "parameters", "words"),
    [
        (
            TABLE[["size", "count"]],
            {},
            "X: column 'size' has 29 empty cells, the first in row 0; fill them, or use",
        ),
        (TABLE, {}, "X: empty cells in 'size', 'day', 'colour', 'paid'; use impute=True$"),
        (
            TABLE[["grade", "size"]].assign(name=[f"n{i}" for i in range(N)]),
            {"encode": False},
            "X: text or dates in 'grade'; empty cells in 'size'; texts like names in 'name'; "
            "use encode=True, use impute=True, leave out 'name'$",
        ),
        (TABLE[["grade"]], {"encode": False}, "column 'grade' is a category, as '.' in row 0; "),
        (pd.DataFrame({"a": [f"n{i}" for i in range(60)]}), {}, "60 different texts .*like names"),
        (pd.DataFrame({"a": [None, None]}), {"impute": True}, "column 'a' has no value in any row"),
        (pd.DataFrame({"a": [[1], [2]]}), {}, r"column 'a' .* holds values such as \[1\]"),
        (pd.DataFrame({"a": [1.0, np.inf]}), {}, "'a' holds 'inf' in row 1, which is no finite"),
        (pd.DataFrame({"a": [1, 2]}), {"kinds": {"b": "text"}}, "kinds: no column 'b'"),
        (pd.DataFrame({"a": [1, 2]}), {"kinds": {"a": "word"}}, "kinds: 'word' of 'a'; use one"),
        (pd.DataFrame({"a": ["x", "y"]}), {"kinds": {"a": "number"}}, "'a' holds 'x' in row 0"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "two columns named"),
        (np.ones((3, 2)), {}, "X: a ndarray has no names of columns; give a pandas or polars"),
        (pd.DataFrame({"a": ["the and of a"] * 9}), {"kinds": {"a": "text"}}, "no words that"),
    ],
)
def test_refusals_name_the_column(table, parameters, words):
    with pytest.raises(InvalidInput, match=words):
        gq.TableEncoder(**parameters).fit(table)


def test_estimators_name_the_refused_column():
    y = np.arange(N) % 2
    for estimator in (gq.GraphClassifier(), gq.GraphRegressor()):
        with pytest.raises(InvalidInput, match=r"X: column 'day' .*TableEncoder\(\), classifier"):
            estimator.fit(TABLE.drop(columns="size"), y)
        with pytest.raises(
            InvalidInput, match=r"X: column 'size' is NaN in 29 row\(s\), first row"
        ):
            estimator.fit(TABLE[["count", "size"]], y)


def test_polars_tables():
    pl = pytest.importorskip("polars")
    values = {
        name: [None if pd.isna(value) else value for value in TABLE[name].astype(object)]
        for name in TABLE
    }
    table = pl.DataFrame(values)
    features = gq.TableEncoder(impute=True).fit_transform(table)
    np.testing.assert_array_equal(features, by_hand(TABLE))
    y = np.where(np.arange(N) < 20, np.arange(N) % 2, -1)
    with pytest.raises(InvalidInput, match=r"X: column 'day' \(Datetime"):
        gq.GraphClassifier().fit(table.drop("size"), y)
    with pytest.raises(InvalidInput, match=r"X: column 'size' is NaN in 29 row\(s\), first row"):
        gq.GraphClassifier().fit(table[["size", "count"]], y)
    numbers = table[["count"]].with_columns(other=pl.Series(RNG.normal(size=N)))
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    fitted = clone(classifier).fit(numbers, y).transduction_
    plain = numbers.to_numpy()
    np.testing.assert_array_equal(fitted, classifier.fit(plain, y).transduction_)


def test_votes_with_gaps(data_folder):
    """The gaps of the voting data tell a little: with an indicator they are not lost."""
    path = data_folder / "voting" / "house-votes-84.data"
    table = pd.read_csv(path, header=None).rename(columns=str)
    truth = (table.pop("0") == "democrat").to_numpy()
    encoder = gq.TableEncoder(impute=True, missing_values=["?"])
    features = encoder.fit_transform(table)
    assert features.shape == (435, 48)  # yes, no and a gap of each of 16 votes
    y = np.where(np.arange(435) % 40 == 0, truth, -1)
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(
        features, y
    )
    assert (classifier.transduction_ == truth).mean() > 0.85


WRITTEN = {
    "n/a": lambda x: np.where(np.arange(60) == 7, "n/a", x.astype(str)),
    "typo": lambda x: np.where(np.arange(60) == 7, "twelve", x.astype(str)),
    "percent": lambda x: [f"{value} %" for value in x],
    "price": lambda x: [f"${value:,.2f}" for value in x],
    "comma": lambda x: [f"{value:.2f}".replace(".", ",") for value in x],
    "thousands": lambda x: [f"{value * 1000:,.0f}" for value in x],
    "kilogram": lambda x: [f"{value} kg" for value in x],
}


@pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_in_disguise_are_numbers(name):
    x = RNG.normal(5, 2, 60).round(2)
    table = pd.DataFrame({name: np.array(WRITTEN[name](x), dtype=object)})
    encoder = gq.TableEncoder(impute=True).fit(table)
    assert encoder.kinds_ == {name: "number"}
    features = encoder.transform(table)
    filled = np.arange(60) != 7 if name in ("n/a", "typo") else np.ones(60, bool)
    plain = gq.TableEncoder().fit_transform(pd.DataFrame({name: x[filled]}))
    ratio = features[filled, 0] - features[filled, 0].mean(), plain[:, 0]
    np.testing.assert_allclose(ratio[0] / ratio[0].std(), ratio[1], atol=1e-2)
    again = gq.TableEncoder.from_tree(_tree(encoder))
    assert again.readings_ == encoder.readings_
    np.testing.assert_array_equal(again.transform(table.iloc[7:8]), features[7:8])


@pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
@pytest.mark.parametrize("name", WRITTEN)
def test_columns_of_the_string_type_of_pandas_are_read_as_others(name):
    """Pandas 3 makes this type of every column of texts."""
    texts = np.array(WRITTEN[name](RNG.normal(5, 2, 60).round(2)), dtype=object)
    plain = pd.DataFrame({name: pd.Series(texts, dtype=object)})
    features = gq.TableEncoder(impute=True).fit_transform(plain)
    found = gq.TableEncoder(impute=True).fit_transform(plain.astype("string"))
    np.testing.assert_array_equal(found, features)


def _tree(encoder):
    import xarray as xr

    return xr.DataTree.from_dict(encoder.to_groups())


def test_odd_cells_are_named():
    texts = np.array(["n/a", "?", *[str(k) for k in range(58)]], dtype=object)
    table = pd.DataFrame({"a": texts, "b": ["<0.1"] + ["0.5"] * 59, "c": ["1/2/2012"] * 60})
    with pytest.warns(
        GraphuqWarning,
        match=r"^X: cells among numbers or dates that count as empty: 'n/a' \(1 in a\), '\?' \(1 "
        r"in a\); bounds that count as numbers: b \('<0.1'\); '1/2/2012' and others "
        r"of 'c' could be read in another way: say it by kinds=\{'c': 'date %d/%m/%Y'\}",
    ):
        encoder = gq.TableEncoder(impute=True, scale=False).fit(table)
    assert encoder.transform(table)[:3, 1].tolist() == [0.1, 0.5, 0.5]
    told = gq.TableEncoder(scale=False, kinds={"c": "date %d/%m/%Y"}).fit_transform(table[["c"]])
    assert told[0, 0] == (datetime.date(2012, 2, 1) - datetime.date(1970, 1, 1)).days
    refused = "column 'a' has 2 cells without a value, such as 'n/a' in row 0; fill"
    with pytest.raises(InvalidInput, match=refused):
        gq.TableEncoder().fit(table[["a"]])
    with pytest.raises(InvalidInput, match="kinds: 'date x' of 'c'; write a format after it"):
        gq.TableEncoder(kinds={"c": "date x"}).fit(table[["c"]])


def test_a_survey_with_a_gap_word_in_each_column_has_as_many_features_as_columns():
    answers = RNG.integers(1, 40, (60, 10)).astype(str).astype(object)
    answers[np.arange(10), np.arange(10)] = "n/a"
    table = pd.DataFrame(answers, columns=[f"q{k}" for k in range(10)])
    with pytest.warns(GraphuqWarning, match=r"'n/a' \(1 in q0, .* and 5 more\)"):
        encoder = gq.TableEncoder(impute=True).fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names[:10] == [f"number__q{k}" for k in range(10)]
    assert len(names) == 20  # and "was empty" of each


def test_codes_among_numbers_are_named_with_what_to_do():
    """Families 1 to 205, of which one is 136A."""
    families = pd.DataFrame({"family": ["136A", *map(str, range(1, 60))]})
    with pytest.raises(InvalidInput, match=r"1 cell without a number, such as '136A' in row 0; "):
        gq.TableEncoder().fit(families)
    words = r"empty: '136A' \(1 in family\); if family holds codes, say so by kinds=\{'family'"
    with pytest.warns(GraphuqWarning, match=words):
        gq.TableEncoder(impute=True).fit(families)


def test_the_remedy_stays_if_there_are_many_columns():
    few = {f"a rather long name {k}": ["x", None] * 30 for k in range(30)}
    names = {f"name{k}": [f"n{i}" for i in range(60)] for k in range(3)}
    with pytest.raises(InvalidInput, match=r" more; .* leave out 'name0', 'name1', 'name2'$"):
        gq.TableEncoder(encode=False).fit(pd.DataFrame(few | names))


def test_codes_and_names_stay_categories():
    codes = {"mixed": ["1", "2", "A"] * 20, "grade": ["1", "1+", "2"] * 20, "q": ["Q1", "Q2"] * 30}
    assert set(gq.TableEncoder().fit(pd.DataFrame(codes)).kinds_.values()) == {"category"}


def test_new_rows_are_read_as_those_of_the_fit():
    """One new cell alone would be read in another way."""
    table = pd.DataFrame({"a": ["1,234", "2,5", "3,75"] * 20, "d": ["13/2/2012", "3/4/2012"] * 30})
    encoder = gq.TableEncoder(scale=False).fit(table)
    april = (datetime.date(2012, 4, 3) - datetime.date(1970, 1, 1)).days
    new = pd.DataFrame({"a": ["1,234"], "d": ["3/4/2012"]})
    assert encoder.transform(new).tolist() == [[1.234, april]]
    with pytest.raises(InvalidInput, match="'a' holds 'about 3' in row 0, which is no finite numb"):
        encoder.transform(new.assign(a="about 3"))


def test_a_number_that_fits_both_marks_follows_the_other_columns_and_is_named():
    table = pd.DataFrame({"a": ["1,200", "2,500"], "b": ["1,5", "2,25"]})
    with pytest.warns(GraphuqWarning, match="'1,200' and others of 'a' .* 'number .'"):
        features = gq.TableEncoder(scale=False).fit_transform(table)
    np.testing.assert_array_equal(features, [[1.2, 1.5], [2.5, 2.25]])
    told = gq.TableEncoder(scale=False, kinds={"a": "number ."}).fit_transform(table)
    np.testing.assert_array_equal(told, [[1200, 1.5], [2500, 2.25]])
    np.testing.assert_array_equal(
        gq.TableEncoder(scale=False).fit_transform(table[["a"]]), [[1200], [2500]]
    )
