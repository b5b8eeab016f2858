"""The answer of the page and its errors: an average over models, beside the quick model."""

import os
import sys

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.labelling import similarity
from graphuq.labelling.audits import Audits
from graphuq.labelling.forecast import (
    NICENESS,
    Answer,
    Answerer,
    ErrorsLeft,
    Forecasts,
    widened,
)
from graphuq.results.errors_left import ErrorCount
from graphuq.spectrum import blocks
from graphuq.spectrum.solve import laplacian_spectrum

NAMES = np.array(["left", "right"])
GIVEN = {0: "left", 10: "left", 50: "right", 59: "right"}


@pytest.fixture
def forecasts_of(open_session):
    """Return a function that opens a session and counts its errors."""

    def open_(**arguments):
        session = open_session(**arguments)
        return session, Forecasts(session).start()

    return open_


def fitted(session, labels, **options):
    """Return probabilities of a model that is fitted anew, and its expected errors."""
    y = np.full(60, "", dtype=object)
    y[list(labels)] = list(labels.values())
    classifier = gq.GraphClassifier(
        graph=session.model.settings.graph, inference="expectation-propagation", **options
    )
    p = classifier.fit(None, y).result_.probabilities
    return p, (1 - p.max(axis=1))[np.setdiff1d(np.arange(60), list(labels))].sum()


def test_the_answer_is_the_average(forecasts_of):
    """It is that of the default fitted by hand; twice the labels are a new fit."""
    session, forecasts = forecasts_of(given=GIVEN)
    found = forecasts.wait()
    p, expected = fitted(session, GIVEN)
    assert found.result.probabilities == pytest.approx(p, abs=1e-6)
    assert found.errors.is_average
    assert (found.errors.n_labels, found.errors.n_left) == (4, 56)
    assert found.errors.expected == pytest.approx(expected, rel=1e-6)
    assert abs(expected - fitted(session, GIVEN, model="largest-evidence")[1]) > 0.1
    assert 0 <= found.errors.lower <= found.errors.expected <= found.errors.upper <= 56
    labels = {5: "left", 20: "left", 40: "right", 55: "right"}
    for row, name in labels.items():
        session.label("ada", [row], name)
    session.wait_until_current()
    later = forecasts.wait().errors
    assert (later.n_labels, later.n_left) == (8, 52)
    p, expected = fitted(session, {**GIVEN, **labels})
    assert later.expected == pytest.approx(expected, rel=1e-6)
    assert later.accuracy == pytest.approx(
        (1 - later.expected / 52, 1 - later.upper / 52, 1 - later.lower / 52)
    )
    assert session.result.probabilities == pytest.approx(p, abs=1e-6)
    shown = forecasts.state
    assert shown["errors"]["expected"] == later.expected
    assert [n for n, *_ in shown["history"]][-1] == 8


def test_eigenpairs_are_solved_once_for_all_fits(open_session, monkeypatch):
    """Similar items, the quick model, its refits and the average share a basis."""
    solved = []

    def count(*arguments, **options):
        solved.append(arguments)
        return laplacian_spectrum(*arguments, **options)

    for user in (blocks, similarity):
        monkeypatch.setattr(user, "laplacian_spectrum", count)
    session = open_session(given=GIVEN)
    forecasts = Forecasts(session).start()
    forecasts.wait()
    for row in (5, 20, 40, 55):
        session.label("ada", [row], "left" if row < 30 else "right")
    session.wait_until_current()
    assert forecasts.wait().errors.n_labels == 8
    assert len(solved) == 1


def test_a_model_of_the_users_own_answers_itself(forecasts_of):
    model = gq.models.Fixed(gq.priors.Matern(tau=0.5, alpha=2.0), gq.likelihoods.Probit(1.0))
    classifier = gq.GraphClassifier(model=model, inference="expectation-propagation")
    session, forecasts = forecasts_of(given=GIVEN, classifier=classifier)
    found = forecasts.wait()
    assert not found.errors.is_average
    assert found.result is session.latest[0].result
    assert found.errors.expected == pytest.approx(fitted(session, GIVEN, model=model)[1], rel=1e-5)


@pytest.mark.parametrize(
    ("ends", "n_left", "wide"),
    [((11.0, 20.0), 100, (10.0, 22.0)), ((0.0, 95.0), 100, (0.0, 100.0)), ((5.0, 5.0), 9, (4, 6))],
)
def test_ends_are_a_tenth_further_out(ends, n_left, wide):
    """11 / 1.1 is 10 and 20 · 1.1 is 22; whole numbers; never more than there are items."""
    assert widened(ErrorCount(5.0, *ends), n_left) == (5.0, *wide)


def test_no_errors_without_two_classes_and_again_after_undo(forecasts_of):
    session, forecasts = forecasts_of(given={0: "left"})
    assert forecasts.wait() == Answer()
    assert forecasts.state["errors"] is None
    session.label("ada", [59], "right")
    session.wait_until_current()
    assert forecasts.wait().errors.n_labels == 2
    session.undo("ada")
    session.wait_until_current()
    assert forecasts.wait() == Answer()
    session.label("ada", [59], "right")
    with pytest.raises(InvalidInput, match="timeout"):
        forecasts.wait(timeout=0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_the_page_goes_first(forecasts_of):
    """The thread has a lower priority than all others, which keep theirs."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    _, forecasts = forecasts_of(given=GIVEN)
    forecasts.wait()
    thread = forecasts._thread.native_id
    assert os.getpriority(os.PRIO_PROCESS, thread) == min(before + NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_an_error_is_told_and_ends_nothing(forecasts_of, monkeypatch):
    session, forecasts = forecasts_of(given=GIVEN)
    forecasts.wait()
    with monkeypatch.context() as broken:
        broken.setattr(Answerer, "answer", lambda *_: 1 / 0)
        session.label("ada", [20], "left")
        session.wait_until_current()
        assert forecasts.wait() == Answer()
        assert "ZeroDivisionError" in forecasts.state["uncounted"]
    session.label("ada", [21], "left")
    session.wait_until_current()
    assert forecasts.wait().errors.n_labels == 6
    assert forecasts.state["uncounted"] is None


def test_labels_keep_the_errors_that_were_shown(forecasts_of):
    session, forecasts = forecasts_of(given=GIVEN)
    found = forecasts.wait().errors
    session.label("ada", [20], "left")
    assert session.store.records[-1].expected_errors == pytest.approx(found.expected)
    again = Forecasts(session)  # of the same file, not started
    assert again.state["history"] == [[4, *[pytest.approx(found.expected)] * 3]]


@pytest.mark.parametrize(("upper", "words"), [(4.0, "at least 96"), (6.0, "at least 94")])
def test_the_advice_is_the_lower_end(open_session, upper, words):
    session = open_session(given=GIVEN)
    audits = Audits(session, goal=0.95)
    assert "not counted yet" in audits.state()["advice"]
    errors = ErrorsLeft(4, 100, 1.0, 0.0, upper, True)
    session.show_answer(Answer(session.latest[0].result, errors))
    advice = audits.state()["advice"]
    assert words in advice
    assert ("Enough" in advice) == (upper <= 5)
    assert ("label more" in advice) == (upper > 5)
