"""Audits: a random sample without help, its accuracy, and its place in the file of labels."""

import time

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.labelling import turns
from graphuq.labelling.audits import Audits, result_of, sample_size
from graphuq.labelling.forecast import Answer, ErrorsLeft
from graphuq.labelling.items import items_of
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore

NAMES = np.array(["left", "right"])


@pytest.fixture(scope="module")
def moons():
    return gq.datasets.two_moons(100, n_features=2, noise_std=0.3)


@pytest.fixture
def session(moons, tmp_path):
    items = items_of(None, moons.features)
    store = LabelStore(tmp_path / "labels.jsonl", items)
    truth = NAMES[moons.classes.astype(int)]
    rows = [*np.flatnonzero(truth == "left")[:3], *np.flatnonzero(truth == "right")[:3]]
    given = {int(row): str(truth[row]) for row in rows}
    opened = Session(items, Model(moons.features), store, given).start()
    opened.wait_until_current()
    yield opened
    opened.close()


def answer(session, truth, n):
    """Answer n items of an audit as the page does; return their rows."""
    rows = []
    for _ in range(n):
        (card,) = session.queue("bob", 1)
        assert card["blind"] == "audit"
        assert (card["label"], card["likeliest"], card["classes"]) == (None, None, [])
        session.label("bob", [card["row"]], str(truth[card["row"]]), kind="blind")
        rows.append(card["row"])
    return rows


def test_an_audit_of_all_items_counts_all_errors(session, moons):
    truth = NAMES[moons.classes.astype(int)]
    snapshot = session.latest[0]
    errors = ErrorsLeft(4, 96, 9.6, 4.8, 19.2, True)  # of two labels less
    session.show_answer(Answer(snapshot.result, errors))
    audits = Audits(session)
    drawn = audits.draw("ada", 1000)
    free = sorted(set(range(100)) - set(session.given))
    assert sorted(drawn) == free
    predicted = np.array(snapshot.classes)[snapshot.probabilities.argmax(axis=1)]
    rows = answer(session, truth, 94)
    assert rows == drawn
    (audit,) = session.store.standing.audits.values()
    found = result_of(audit)
    assert found.n_answers == 94
    assert found.n_right == (predicted[free] == truth[free]).sum()
    assert found.accuracy == pytest.approx(found.n_right / 94)
    assert found.lower < found.accuracy < found.upper < 1
    assert audit.drawn_from == 94
    assert audit.expected_errors == pytest.approx(0.1 * 94)
    assert session.store.standing.open_audit is None
    assert audits.state()["audits"][0]["result"] == found._asdict()


def test_an_item_that_was_skipped_before_an_audit_is_asked_in_it(session, moons):
    """Found by a browser test: such an item of an audit came after all other items."""
    (card,) = session.queue("bob", 1)
    session.skip("bob", [card["row"]])
    drawn = Audits(session).draw("ada", 1000)
    assert [found["row"] for found in session.queue("bob", 94)] == drawn


def test_others_audit_what_an_open_tab_without_acts_holds(session, monkeypatch):
    """A colleague who went away with his page open held half of an audit for ever."""
    session.label("bob", [5], "left")
    Audits(session).draw("ada", 8)
    drawn = session.store.standing.open_audit.open_rows
    held = {card["row"] for card in session.queue("bob", 8)}
    assert held == set(drawn)
    assert not held & {card["row"] for card in session.queue("ada", 8)}
    later = time.monotonic() + turns.AWAY_S + 1
    monkeypatch.setattr(turns.time, "monotonic", lambda: later)
    session.state("bob")  # his tab asks on
    assert {card["row"] for card in session.queue("ada", 8)} == held


def test_a_skipped_item_of_an_audit_comes_after_the_others_of_it(session, moons):
    drawn = Audits(session).draw("ada", 5)
    session.skip("bob", drawn[:2])
    rows = [card["row"] for card in session.queue("bob", 8)]
    assert rows[:5] == [*drawn[2:], *drawn[:2]]
    assert [card["row"] for card in session.queue("cyd", 1)] != drawn[:1]  # before bob now
    Audits(session).end("bob")
    assert not set(drawn[:2]) & {card["row"] for card in session.queue("bob", 80)}


def test_predictions_are_those_before_the_answers(session, moons, tmp_path):
    """Answers teach the model, and are no part of what they judge; another process reads all."""
    truth = NAMES[moons.classes.astype(int)]
    Audits(session).draw("ada", 20)
    (audit,) = session.store.standing.audits.values()
    predicted = dict(audit.predicted)
    rows = answer(session, truth, 10)
    session.wait_until_current()
    assert audit.predicted == predicted
    again = LabelStore(tmp_path / "labels.jsonl", session.items)
    assert again.standing.open_audit == session.store.standing.open_audit
    assert list(again.standing.open_audit.answers) == rows
    assert again.labels() == {row: truth[row] for row in sorted(rows)}
    again.close()
    assert session.undo("bob") == rows[-1:]
    assert rows[-1] in session.store.standing.open_audit.open_rows
    assert session.card(rows[-1])["blind"] == "audit"


def test_only_answers_without_help_count(session, moons):
    """A label of a batch, or of a page that showed a probability, does not judge the model."""
    drawn = Audits(session).draw("ada", 5)
    session.label("bob", drawn[:1], "left")
    session.label("bob", drawn, "left", kind="blind")
    audit = session.store.standing.open_audit
    assert audit.answers == {}
    assert session.card(drawn[0])["blind"] == "audit"
    session.label("bob", drawn[:1], "left", kind="blind")
    assert session.store.standing.open_audit.answers == {drawn[0]: "left"}


def test_an_audit_ends_early(session, moons):
    truth, audits = NAMES[moons.classes.astype(int)], Audits(session)
    audits.draw("ada", 10)
    with pytest.raises(InvalidInput, match="an audit is open; answer it, or end it"):
        audits.draw("bob", 10)
    answer(session, truth, 4)
    assert audits.end("ada") == 6
    assert audits.end("ada") == 0
    (found,) = audits.state()["audits"]
    assert (found["n_drawn"], found["n_left"], found["result"]["n_answers"]) == (4, 0, 4)
    assert session.queue("bob", 1)[0].get("blind") is None
    assert session.undo("bob")  # the draw and its end are no acts on labels
    assert session.store.standing.open_audit is not None  # an answer that is taken back is missing


def test_intervals_hold_the_accuracy_of_all(moons):
    """Exact binomial intervals hold in at least 90 % of random samples."""
    rng, held, n_trials = np.random.default_rng(0), 0, 400
    wrong = rng.random(1000) < 0.12
    for _ in range(n_trials):
        rows = rng.choice(1000, 59, replace=False).tolist()
        records = {row: "b" if wrong[row] else "a" for row in rows}
        from graphuq.labelling.standing import Audit

        found = result_of(Audit("x", "", "ada", 1, None, 1000, dict.fromkeys(rows, "a"), records))
        held += found.lower <= 1 - wrong.mean() <= found.upper
    assert held / n_trials > 0.9 - 3 * np.sqrt(0.09 / n_trials)


@pytest.mark.parametrize(("goal", "n"), [(0.95, 59), (0.9, 29), (0.99, 299), (0.5, 5)])
def test_sample_size(goal, n):
    """So many right answers are enough, and one fewer is not, for a bound of 95 % on one side."""
    assert sample_size(goal) == n
    assert 0.05 ** (1 / n) >= goal > 0.05 ** (1 / (n - 1))


def advice_after(session, goal, n_right, n_wrong):
    audits = Audits(session, goal)
    drawn = audits.draw("ada", n_right + n_wrong)
    predicted = dict(session.store.standing.open_audit.predicted)
    other = {"left": "right", "right": "left"}
    assert audits.state()["advice"].startswith(f"{len(drawn)} items of the audit")
    for number, row in enumerate(drawn):
        label = predicted[row] if number < n_right else other[predicted[row]]
        session.label("ada", [row], label, kind="blind")
    return audits.state()["advice"]


def test_advice_says_when_to_stop(session):
    assert "An audit takes 29 items" in Audits(session, 0.9).state()["advice"]
    assert advice_after(session, 0.9, 29, 0).startswith("Enough")
    assert advice_after(session, 0.9, 19, 1).startswith("Not clear")
    assert advice_after(session, 0.9, 10, 10).startswith("Not enough")


def test_what_cannot_be_audited_is_refused(session, moons, tmp_path):
    audits = Audits(session)
    for n in (0, -1, 1001):
        with pytest.raises(InvalidInput, match="use 1 to 1000"):
            audits.draw("ada", n)
    for goal in (0, 1, 1.5):
        with pytest.raises(InvalidInput, match="goal"):
            Audits(session, goal)
    store = LabelStore(tmp_path / "other.jsonl", session.items)
    empty = Session(session.items, Model(moons.features), store)
    with pytest.raises(InvalidInput, match="no prediction yet; label items of two classes"):
        Audits(empty).draw("ada", 5)
    assert Audits(empty).state()["advice"] == "Label items of two classes first."
    empty.close()
