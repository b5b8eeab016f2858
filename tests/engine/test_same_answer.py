"""A fit in a store has the model, the answer and the table of a fit in memory."""

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array
from scipy.special import logsumexp

import graphuq as gq
from graphuq.classifier.stored import sample
from graphuq.engine import functions
from graphuq.engine.partition import copy_rows, partition
from graphuq.engine.ranges import ranges_of
from graphuq.engine.sources import open_source
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.errors import FarRowsWarning, InvalidInput
from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.models.learnt_odds import BLOCKS, _stored


def crabs(n_rows=900, seed=0):
    """Return correlated columns, whose small differences tell two classes, and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(2, size=n_rows)
    size, shape = rng.normal(size=(2, n_rows))
    shape = 0.3 * shape + classes
    columns = [size, size + 0.3 * shape, size - 0.2 * shape, 0.5 * size + 0.1 * shape]
    return np.stack(columns, axis=1) + 0.02 * rng.normal(size=(n_rows, 4)), classes


def digits(n_rows=1797):
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.data[:n_rows], found.target[:n_rows]


def torn(n_rows=700, seed=1):
    """Return crabs with a column of two values that tears the graph apart."""
    features, classes = crabs(n_rows, seed)
    sex = np.random.default_rng(seed).integers(2, size=n_rows)
    return np.column_stack([0.2 * features, 4.0 * sex]), classes


def wide(n_rows=600, seed=2):
    """Return 120 columns, of which six directions tell three classes, and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n_rows)
    means = np.eye(3, 6)[classes] * 3 + rng.normal(size=(n_rows, 6))
    rows = means @ rng.normal(size=(6, 120)) / 3 + 0.5 * rng.normal(size=(n_rows, 120))
    return rows.astype(np.float32), classes


def hidden(n_rows=800, seed=3):
    """Return 20 columns, of which one number and one category tell two classes, and the classes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n_rows)
    X = np.hstack([rng.normal(size=(n_rows, 17)), np.eye(3)[kind]])
    return X, ((X[:, 4] > 0) ^ (kind == 1)).astype(int)


def few_labels(classes, n_each, seed=0):
    """Return an array of labels, −1 for most rows."""
    rng, y = np.random.default_rng(seed), np.full(len(classes), -1)
    for k in np.unique(classes):
        y[rng.choice(np.flatnonzero(classes == k), n_each, replace=False)] = k
    return y


def both(X, y, folder, **more):
    """Return fits of the same rows and labels in a store and in memory."""
    store = gq.Store(folder / "store", n_parts=3, search="exact", tolerance=1e-3)
    stored = gq.GraphClassifier(store=store, **more).fit(X, y)
    return stored, gq.GraphClassifier(inference="expectation-propagation", **more).fit(X, y)


def blocks_of(classifier):
    return [block.name for block in classifier.result_.posterior.spectrum.blocks]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("table", "n_each", "block"),
    [
        (crabs, 10, "whitened graph"),
        (torn, 3, "joined graph"),
        (hidden, 60, "few variables"),
        (crabs, 1, None),
        (digits, 6, None),
        (wide, 5, None),
    ],
)
@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
@pytest.mark.filterwarnings("ignore::graphuq.errors.FeatureScaleWarning")
def test_default_fits_in_a_store_and_in_memory_agree(table, n_each, block, tmp_path):
    X, classes = table()
    stored, memory = both(X, few_labels(classes, n_each), tmp_path)
    assert blocks_of(stored) == blocks_of(memory)
    own = "n_components"
    assert stored.result_.settings.get(own) == memory.result_.settings.get(own)
    assert block is None or block in blocks_of(stored)
    apart = np.abs(stored.label_distributions_ - memory.label_distributions_)
    assert apart.mean() < 0.01
    assert (stored.transduction_ == memory.transduction_).mean() > 0.98
    assert stored.model_ == memory.model_
    assert stored.result_.log_evidence == pytest.approx(memory.result_.log_evidence, abs=0.2)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    X, classes = crabs()
    return X, classes, *both(X, few_labels(classes, 10), tmp_path_factory.mktemp("fits"))


def test_new_rows_have_the_same_probabilities(fits):
    X, _, stored, memory = fits
    new = np.concatenate([crabs(40, seed=5)[0], X[:20]])
    ours, theirs = stored.predict_proba(new), memory.predict_proba(new)
    np.testing.assert_allclose(ours, theirs, atol=0.03)
    assert np.abs(ours - theirs).mean() < 0.005
    np.testing.assert_array_equal(ours[40:], stored.label_distributions_[:20])
    a, b = stored.predict_table(new), memory.predict_table(new)
    assert a.dtypes.equals(b.dtypes)
    np.testing.assert_allclose(a["latent_std"], b["latent_std"], rtol=0.1, atol=0.02)
    assert a["has_evidence"].all()
    far = np.full((1, 4), 1e6)
    with pytest.warns(FarRowsWarning):
        assert stored.predict_proba(far)[0] == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match="X has 3 features"):
        stored.predict(new[:, :3])


def test_new_rows_in_other_units_are_named_as_in_memory(fits):
    X, _, stored, memory = fits
    new = crabs(3_000, seed=5)[0]
    new[2_000:, 1] += 30  # beyond the rows that are asked for together
    said = []
    for fit in (stored, memory):
        with pytest.warns(FarRowsWarning, match="rows, such as row 2.*in column 1; if") as found:
            fit.predict(new)
        said.append({str(one.message) for one in found})
    assert said[0] == said[1]
    stored.predict(new[:2_000])
    stored.predict(X)


def test_rows_outside_the_sample_have_the_numbers_of_their_places(fits, tmp_path, monkeypatch):
    X, classes, stored, _ = fits
    monkeypatch.setattr(sample, "SAMPLED", 100)
    monkeypatch.setattr(sample, "WHOLE_UP_TO", 100)
    store = gq.Store(tmp_path / "store", n_parts=2, search="exact", tolerance=1e-3)
    few = gq.GraphClassifier(store=store, model=stored.model_).fit(X, few_labels(classes, 10))
    assert 100 <= len(few.sampled_rows_) <= 121
    assert len(few.transduction_) == len(few.sampled_rows_)
    shown = few._repr_html_()  # in a notebook
    assert f"At {len(few.sampled_rows_)} of {len(X):,} rows, a sample" in shown
    assert "a sample" not in stored._repr_html_()
    table = parquet.read_table(few.to_parquet(tmp_path / "out")[0]).to_pandas()
    places = few.predict_proba(X.astype(np.float32))
    np.testing.assert_allclose(places[:, 1], table["probability_1"], atol=1e-9)
    np.testing.assert_allclose(places[few.sampled_rows_], few.label_distributions_, atol=1e-9)
    apart = np.abs(places - stored.label_distributions_)
    assert apart.mean() < 0.02  # blocks of functions have the mean square of the sample


def test_few_variables_are_chosen_and_known_at_every_row(tmp_path, monkeypatch):
    """Columns are those of a fit in memory at nodes, other rows of the store, and new rows."""
    monkeypatch.setattr(sample, "SAMPLED", 200)
    monkeypatch.setattr(sample, "WHOLE_UP_TO", 100)
    X, classes = hidden(900)
    given = few_labels(classes[:800], 60)
    stored, memory = both(X[:800], given, tmp_path)
    assert len(stored.sampled_rows_) < 350
    for fit in (stored, memory):
        assert gq.results.few_columns(fit.result_).tolist() == [4, 17, 18, 19]
    apart = np.abs(stored.predict_proba(X) - memory.predict_proba(X))
    assert apart.mean() < 0.02
    assert (stored.predict(X[800:]) == classes[800:]).mean() > 0.9
    table = parquet.read_table(stored.to_parquet(tmp_path / "out")[0]).to_pandas()
    places = stored.predict_proba(X[:800].astype(np.float32))
    np.testing.assert_allclose(places[:, 1], table["probability_1"], atol=1e-9)
    monkeypatch.setattr("graphuq.models.average.screened", None)  # it is in the store
    again = gq.GraphClassifier(store=stored.store).fit(X[:800], given)
    np.testing.assert_array_equal(again.predict_proba(X), stored.predict_proba(X))


def test_functions_of_few_variables_have_the_dense_covariance_in_a_store(tmp_path):
    """It is computed by hand for one number and one category; the prior counts once."""
    X, _ = hidden(95)
    kind = X[:, 17:].argmax(axis=1)
    classes = (np.abs(X[:, 4]) + (kind == 1) > 1).astype(int)
    apart = [np.abs(X[:, None, 4] - X[None, :, 4]), (kind[:, None] != kind).astype(float)]
    mean = sum(one / one.sum() * (95 * 94) for one in apart) / 2
    for fit in both(X.astype(np.float32), few_labels(classes, 30), tmp_path):
        posterior = fit.result_.posterior
        block = posterior.spectrum.blocks[-1]
        assert np.flatnonzero(np.isfinite(block.scales)).tolist() == [4, 17, 18, 19]
        values = block.values @ block.values.T
        rates = [r for r in (0.5, 2.0, 8.0) if np.allclose(values, np.exp(-r * mean), atol=1e-4)]
        assert len(rates) == 1
        of_set = -np.log(18 * (18 * 17 / 2) * 3)
        assert block.log_prior == pytest.approx(of_set)
        own, logs = posterior.prior, posterior.prior.log_probabilities
        few, graph = (logsumexp(logs[own.uses(n)]) for n in ("few variables", "eigenpairs"))
        of_block = _stored(BLOCKS)["exponential"] @ [1.0, np.log(30), np.log(2)]
        assert few - graph == pytest.approx(of_block + of_set)


def test_labels_are_added_and_withdrawn(fits, tmp_path, monkeypatch):
    X, classes, stored, _ = fits
    given = few_labels(classes, 10)
    classifier = gq.GraphClassifier(store=stored.store).fit(X, given)
    asked = classifier.query(4)
    assert (given[asked] < 0).all()
    again = gq.GraphClassifier(inference="expectation-propagation").fit(X, given)
    monkeypatch.setattr("graphuq.engine.partition.partition", None)  # no stage is done again
    for one in (classifier, again):
        one.add_labels(asked, classes[asked])
        assert len(one.result_.posterior.labels) == 24
    apart = np.abs(classifier.label_distributions_ - again.label_distributions_)
    assert apart.mean() < 0.01
    classifier.add_labels(asked[:1], [-1])
    assert classifier.withdrawn_.tolist() == asked[:1].tolist()
    assert asked[0] not in classifier.query(50)
    before = classifier.result_
    labelled = classifier._stored.given.rows
    with pytest.raises(InvalidInput, match="one class only"):
        classifier.add_labels(labelled, np.full(len(labelled), 1))
    assert classifier.result_ is before
    for rows, message in (([900], "row .900. does not exist"), ([1, 1], "a row is given twice")):
        with pytest.raises(InvalidInput, match=message):
            classifier.add_labels(rows, np.zeros(len(rows), int))
    with pytest.raises(InvalidInput, match="store: given beside rows that are added"):
        classifier.add_rows(X[:2])
    with pytest.raises(InvalidInput, match="store: given beside a file"):
        classifier.save(tmp_path / "x.nc")


def test_candidates_outside_the_sample_are_refused(fits, tmp_path, monkeypatch):
    X, classes, stored, _ = fits
    monkeypatch.setattr(sample, "SAMPLED", 100)
    monkeypatch.setattr(sample, "WHOLE_UP_TO", 100)
    given = few_labels(classes, 10)
    few = gq.GraphClassifier(store=tmp_path / "store", model=stored.model_).fit(X, given)
    others = np.setdiff1d(np.arange(len(X)), few.sampled_rows_)
    with pytest.raises(InvalidInput, match="not among sampled_rows_"):
        few.query(2, candidates=others)
    inside = few.sampled_rows_[:30]
    assert np.isin(few.query(3, candidates=inside), inside).all()


def test_rows_in_memory_and_labels_of_all_kinds(fits, tmp_path):
    X, classes, _, _ = fits
    X, names = X[:300], np.array(["no", "yes"])[classes[:300]]
    y = np.where(np.arange(300) < 30, names, "")
    fixed = gq.models.Fixed(gq.priors.Matern(0.3), gq.likelihoods.Probit(0.3))
    options = {"store": tmp_path / "store", "model": fixed, "n_eigenpairs": 20}
    first = gq.GraphClassifier(**options).fit(X, y)
    by_row = gq.GraphClassifier(**options).fit(X, {row: y[row] for row in range(29, -1, -1)})
    np.testing.assert_array_equal(by_row.label_distributions_, first.label_distributions_)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, id=np.arange(300))
    options["store"] = gq.Store(tmp_path / "store", no_features=["id"])
    of_frame = gq.GraphClassifier(**options).fit(frame, "y")
    np.testing.assert_array_equal(of_frame.label_distributions_, first.label_distributions_)
    assert of_frame.feature_names_in_.tolist() == list("abcd")
    assert of_frame.predict_proba(frame[list("abcd")]).shape == (300, 2)
    assert len(list((tmp_path / "store").glob("parts-*"))) == 2  # names of columns are an input
    in_memory = of_frame.set_params(store=None).fit(X, y)
    assert not hasattr(in_memory, "sampled_rows_")
    assert in_memory.predict_proba(X[:3]).shape == (3, 2)
    again = in_memory.set_params(store=tmp_path / "store").fit(X, y)
    assert not hasattr(again, "graph_")
    assert again.suspect_labels()["node"].max() < 30
    with pytest.raises(InvalidInput, match="estimator: has a store"):
        gq.EvidenceSearch(gq.GraphClassifier(store="x"), {"n_neighbors": [5]}).fit(X, y)
    with pytest.raises(InvalidInput, match="y: no column 'z'"):
        gq.GraphClassifier(**options).fit(frame, "z")
    with pytest.raises(InvalidInput, match="X: a sparse matrix beside a store"):
        gq.GraphClassifier(store=tmp_path / "store").fit(csr_array(X), y)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["_whiten_part", "_covariance_part", "_distances_part"])
def test_an_interrupted_fit_of_other_blocks_goes_on_to_the_same_bytes(
    name, fits, tmp_path, monkeypatch
):
    X, classes, stored, _ = fits
    expected = stored.to_parquet(tmp_path / "whole")[0].read_bytes()
    run = Tasks.map

    def interrupted(self, function, arguments, phase=""):
        if function.__name__ == name:
            run(self, function, arguments[:1], phase)  # some of the tasks end
            raise KeyboardInterrupt
        return run(self, function, arguments, phase)

    store = gq.Store(tmp_path / "store", n_parts=3, search="exact", tolerance=1e-3)
    classifier = gq.GraphClassifier(store=store)
    monkeypatch.setattr(Tasks, "map", interrupted)
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(X, few_labels(classes, 10))
    monkeypatch.setattr(Tasks, "map", run)
    files = classifier.fit(X, few_labels(classes, 10)).to_parquet(tmp_path / "out")
    assert files[0].read_bytes() == expected


def test_sampling_in_a_store(fits, tmp_path):
    X, classes, _, _ = fits
    y = few_labels(classes[:300], 5)
    sampler = gq.inference.MCMC("model-average", n_samples=600)
    options = {"inference": sampler, "n_eigenpairs": 30}
    stored = gq.GraphClassifier(store=tmp_path / "store", **options).fit(X[:300], y)
    memory = gq.GraphClassifier(**options).fit(X[:300], y)
    apart = np.abs(stored.label_distributions_ - memory.label_distributions_)
    assert apart.mean() < 0.02


@pytest.mark.parametrize("n_columns", [1, 5, 120])
def test_functions_of_parts_are_those_of_all_rows(n_columns, tmp_path):
    rng = np.random.default_rng(0)
    X = np.float32(rng.normal(size=(700, n_columns)) @ rng.normal(size=(n_columns, n_columns)) + 3)
    if n_columns > 1:
        X[:, 1] = 2.0
        X[:, 2:5] = np.eye(3)[rng.integers(0, 3, size=700)]  # a category
    rows, parts, stage = (Stage.of(tmp_path, name, {}) for name in ("rows", "parts", "functions"))
    tasks = Tasks()
    copy_rows(rows, open_source(X), tasks)
    partition(parts, rows, 3, 0, tasks)
    ranges = ranges_of(Stage.of(tmp_path, "ranges", {}), parts, tasks)
    assert ranges.distance == pytest.approx(ColumnRanges.of(X).distance)
    functions.compute(stage, parts, ranges, tasks)
    wide = gq.ThirdPower(X) if n_columns > 100 else gq.ExponentialFunctions(X)
    assert wide.name in stage.record["blocks"]
    for block in (gq.PowerFunctions(X), gq.WhitenedLinear(X), wide):
        found = functions.values(stage, block.name, X)
        expected = block.values @ block.values.T
        np.testing.assert_allclose(found @ found.T, expected, atol=2e-4 * np.abs(expected).max())


def test_rows_that_are_all_equal_have_no_functions(tmp_path):
    rows, parts, stage = (Stage.of(tmp_path, name, {}) for name in ("rows", "parts", "functions"))
    copy_rows(rows, open_source(np.ones((200, 3))), Tasks())
    partition(parts, rows, 2, 0, Tasks())
    functions.compute(stage, parts, ColumnRanges.of(np.ones((200, 3))), Tasks())
    assert stage.record["blocks"] == []


@pytest.mark.slow_after(2)
def test_new_rows_of_many_features_are_joined_as_in_memory(tmp_path):
    X, classes = wide()
    stored, memory = both(X[:550], few_labels(classes[:550], 5), tmp_path)
    assert stored.result_.settings["n_components"] == 50
    apart = np.abs(stored.predict_proba(X[540:]) - memory.predict_proba(X[540:]))
    assert apart.mean() < 0.01
    np.testing.assert_allclose(
        stored.predict_proba(X[540:550]), stored.label_distributions_[540:550], atol=1e-6
    )
