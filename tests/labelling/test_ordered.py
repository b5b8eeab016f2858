"""Grades on the labelling page: their order, keys, intervals, updates and what is refused."""

import numpy as np
import pytest
from scipy.special import ndtr

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.labelling.classes import PageClasses
from graphuq.labelling.features import default_classifier
from graphuq.labelling.model import Model
from graphuq.models import Labels, Likeliest, OrderedAverage
from graphuq.results.errors_left import expected_errors
from graphuq.results.probability_intervals import ProbabilityIntervals, with_means
from labelling.browsing import SHOWN, keys, label, name, saved, start

GRADES = ["poor", "fair", "good", "best"]


def graded(n=200):
    """Return features and grades that rise with the first of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    severity = X[:, 0] + 0.2 * rng.normal(size=n)
    return X, np.array(GRADES)[np.digitize(severity, [-0.7, 0.0, 0.7])]


X, TRUTH = graded()
KNOWN_OF = {name: np.flatnonzero(name == TRUTH)[:3] for name in GRADES}
KNOWN = {int(row): str(TRUTH[row]) for rows in KNOWN_OF.values() for row in rows}


def known_labels():
    y = np.full(len(X), "", dtype=object)
    for row, grade in KNOWN.items():
        y[row] = grade
    return y


@pytest.fixture
def open_page(tmp_path):
    opened = []

    def open_(y=None, **options):
        options.setdefault("ordered", GRADES)
        page = gq.label(X, y=y, labels=tmp_path / "labels.jsonl", open_browser=False, **options)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()


def test_the_likeliest_component_of_ordered_classes_is_that_of_the_average():
    """Against expectation propagation of each component of the average, fitted by itself."""
    basis = gq.Basis.of(gq.graphs.knn_graph(X))
    labels = Labels(np.array(list(KNOWN)), np.array([GRADES.index(g) for g in KNOWN.values()]), 4,
                    ordered=True)  # fmt: skip
    average = OrderedAverage().posterior(basis, labels)
    method = gq.inference.ExpectationPropagation()
    logs = np.array([
        method.fit(average.component(m).plain_target).log_evidence
        for m in range(average.prior.n_components)
    ]) + average.prior.log_probabilities  # fmt: skip
    blocks = np.array(average.prior.blocks)
    shares = {block: np.exp(logs[blocks == block]).sum() for block in set(blocks.tolist())}
    best = max(shares, key=shares.get)
    number = int(np.where(blocks == best, logs, -np.inf).argmax())
    expected = gq.infer(average.component(number), method).probabilities
    likeliest = Likeliest(OrderedAverage())
    found = gq.infer(likeliest.posterior(basis, labels), method)
    assert found.probabilities == pytest.approx(expected, abs=2e-3)
    assert likeliest.takes_order
    with pytest.raises(IncompatibleParts, match="needs the order"):
        likeliest.check(labels._replace(ordered=False))


def test_the_page_keeps_the_order(open_page):
    page = open_page(known_labels())
    session = page.session
    snapshot = session.wait_until_current()
    assert snapshot.classes == tuple(GRADES)
    state = session.state("ada")
    assert [c["name"] for c in state["classes"]] == GRADES
    assert state["order"] == "list"
    found = snapshot.result
    assert found.posterior.likelihood.is_ordered
    free = np.setdiff1d(np.arange(len(X)), list(KNOWN))
    codes = np.array([GRADES.index(grade) for grade in TRUTH])
    assert np.abs(found.probabilities.argmax(axis=1) - codes)[free].mean() < 0.6
    before = session._model._follower.fitted
    row = int(free[0])
    session.label("ada", [row], str(TRUTH[row]))
    after = session.wait_until_current()
    assert session._model._follower.fitted is before  # an update and no new fit
    assert after.probabilities[row, codes[row]] > snapshot.probabilities[row, codes[row]]
    answer = page.forecasts.wait()
    assert answer.errors.is_average
    assert answer.result.classes.tolist() == GRADES
    y = known_labels()
    y[row] = TRUTH[row]
    own = gq.GraphClassifier(graph=session.model.settings.graph, ordered=GRADES)
    expected = expected_errors(own.fit(None, np.where(y == "", None, y)).result_).expected
    assert answer.errors.expected == pytest.approx(expected, rel=0.02)
    assert list(page.predictions().filter(like="probability_").columns) == [
        f"probability_{grade}" for grade in GRADES
    ]


def test_intervals_are_of_the_probability_given_the_field(open_page):
    """Against the formula ``Φ((b_{k+1} − u)/γ) − Φ((b_k − u)/γ)`` at the same draws of u."""
    result = open_page(known_labels()).session.wait_until_current().result
    intervals, row = ProbabilityIntervals(result), np.array([150])
    u = intervals._coefficients[:, 0] @ np.asarray(result.posterior.spectrum.basis[150])
    u = u * result.posterior.spectrum.node_scale[150]
    likelihood = result.posterior.likelihood
    b = np.concatenate([[-np.inf], likelihood.thresholds, [np.inf]])
    shares = np.diff(ndtr((b - u[:, None]) / likelihood.noise_std), axis=1)
    assert intervals._field.tail_std == 0
    moved = with_means(shares[None], result.probabilities[row])[0]
    expected = np.quantile(moved, (0.05, 0.95), axis=0).T
    assert intervals.at(row)[0] == pytest.approx(expected, abs=1e-3)
    assert shares.mean(axis=0) == pytest.approx(result.probabilities[150], abs=0.15)


def test_an_average_of_grades_has_intervals_of_the_noise_of_each_component():
    model = Model(X, gq.GraphClassifier(ordered=GRADES, inference="expectation-propagation"))
    model.prepare()
    snapshot = model.renew(KNOWN, 1)
    p, rows = snapshot.result.probabilities, np.arange(200)
    assert len(snapshot.result.posterior.likelihood.link[1]) > 1
    ends = snapshot.intervals.at(rows)
    assert ((ends[:, :, 0] <= p) & (p <= ends[:, :, 1])).all()


def test_numbers_are_sorted_and_new_ones_find_their_place(tmp_path):
    model = Model(X, default_classifier(ordered=True))
    model.prepare()
    numbers = {"poor": "9", "fair": "10", "good": "10.5", "best": "200"}
    labels = {row: numbers[grade] for row, grade in KNOWN.items() if grade != "good"}
    assert model.renew(labels, 1).classes == ("9", "10", "200")
    more = {**labels, **{row: "10.5" for row, grade in KNOWN.items() if grade == "good"}}
    snapshot = model.renew(more, 2)
    assert snapshot.classes == ("9", "10", "10.5", "200")
    free = np.setdiff1d(np.arange(len(X)), list(KNOWN))
    guess = np.array([numbers[grade] for grade in TRUTH])
    right = np.array(snapshot.classes)[snapshot.probabilities.argmax(axis=1)] == guess
    assert right[free].mean() > 0.5
    two = {row: name for row, name in labels.items() if name != "200"}
    assert model.renew(two, 3).classes == ("9", "10")


def test_grades_without_a_label_take_part():
    model = Model(X, default_classifier(GRADES))
    model.prepare()
    labels = {row: grade for row, grade in KNOWN.items() if grade in ("poor", "best")}
    snapshot = model.renew(labels, 1)
    assert snapshot.classes == tuple(GRADES)
    assert (snapshot.probabilities > 0).all()
    rises = [snapshot.probabilities[KNOWN_OF[grade]].mean(axis=0).argmax() for grade in GRADES[::3]]
    assert rises == [0, 3]


def test_labels_without_a_place_are_refused(open_page, tmp_path):
    page = open_page()
    with pytest.raises(InvalidInput, match="label: 'awful' is no grade; use poor, fair, good, be"):
        page.session.label("ada", [3], "awful")
    assert page.session.store.records == []
    page.session.label("ada", [3], "fair")
    page.close()
    with pytest.raises(InvalidInput, match="classes: 'fair' is no number"):
        open_page(ordered=True)
    with pytest.raises(InvalidInput, match="classes: 'odd' is no grade"):
        open_page(classes=["odd"])
    with pytest.raises(InvalidInput, match=r"ordered: .* give each grade once"):
        open_page(ordered=["a", "a"])
    with pytest.raises(InvalidInput, match=r"ordered: .* beside classifier; leave it out"):
        open_page(classifier=gq.GraphClassifier())
    settings = gq.GraphClassifier(ordered=GRADES, model="largest-evidence")
    with pytest.raises(InvalidInput, match="model: 'largest-evidence' beside ordered classes"):
        open_page(ordered=False, classifier=settings)
    assert PageClasses(True).in_order(["10", "9", "-1e3"]) == ["-1e3", "9", "10"]
    for text in ("nan", "inf", "", "1,5", "ten"):
        with pytest.raises(InvalidInput, match="is no number"):
            PageClasses(True).check([text])


@pytest.mark.parametrize("width", [1300, pytest.param(400, marks=pytest.mark.slow)])
def test_grades_in_the_browser(open_page, tab, width):
    """Keys follow the order, the bars stay in it, and there is no button for a new class."""
    pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
    page = open_page(known_labels())
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    assert keys(tab) == dict(zip(GRADES, "1234", strict=True))
    names = "all => all.map(name => name.textContent)"
    assert tab.eval_on_selector_all("#classes .name", names) == GRADES
    tab.wait_for_function("() => document.querySelectorAll('#classes .bar b').length === 4")
    assert tab.is_hidden("#new-class")
    tab.keyboard.press("n")
    assert tab.is_hidden("#class-dialog")
    given = {}
    for _ in range(4):
        tab.wait_for_function(SHOWN)
        row = int(name(tab))
        given[row] = str(TRUTH[row])
        label(tab, given[row])
    assert saved(page, 4) == given
    assert tab.eval_on_selector_all("#classes .name", names) == GRADES
    tab.keyboard.press("g")
    tab.wait_for_selector("#alikes li")
    options = "all => all.map(option => option.value)"
    assert tab.eval_on_selector_all("#alike-class option", options) == GRADES
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    tab.goto("about:blank")
