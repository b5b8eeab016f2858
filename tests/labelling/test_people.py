"""Several people: items for two of them, decisions, agreement, and how often each one is right."""

import numpy as np
import pytest

from graphuq.errors import InvalidInput
from graphuq.labelling.items import items_of
from graphuq.labelling.people import Accuracies, agreement_of, readings_table
from graphuq.labelling.store import LabelStore

NAMES = np.array(["left", "right"])


def read(session, user, truth, n):
    """Label the next n items of a queue, as the page does; return which were read unaided."""
    unaided = {}
    for _ in range(n):
        (card,) = session.queue(user, 1)
        unaided[card["row"]] = card.get("blind")
        kind = "blind" if card.get("blind") else "label"
        session.label(user, [card["row"]], truth[card["row"]], kind=kind)
    return unaided


def test_a_share_of_items_goes_to_two_people(open_session, moons):
    session = open_session(overlap=0.5)
    truth = NAMES[moons.classes.astype(int)]
    first = read(session, "ada", truth, 30)
    assert set(first.values()) == {None}
    due = session.unaided.due("bob")
    assert set(due) < set(first)
    error = np.sqrt(0.25 * 30)
    assert abs(len(due) - 15) < 4 * error
    assert session.unaided.due("ada") == []
    second = read(session, "bob", truth, len(due) + 15)
    assert [row for row, reason in second.items() if reason == "second"] == list(second)[: len(due)]
    assert set(list(second)[: len(due)]) == set(due)
    assert session.unaided.due("bob") == []
    pairs = session.store.standing.pairs()
    assert set(pairs) == set(due)
    assert all(by == {"ada": truth[row], "bob": truth[row]} for row, by in pairs.items())
    assert session.unaided.due("cyd")  # only the items that bob read alone
    assert set(session.unaided.due("cyd")) <= set(second) - set(due)


def test_the_second_person_sees_no_help(open_session, moons):
    session = open_session(overlap=1.0, given={1: "left", 58: "right"})
    session.label("ada", [7], "left")
    session.wait_until_current()
    card = session.card(7, "bob")
    assert card["blind"] == "second"
    assert (card["label"], card["likeliest"], card["classes"], card["neighbours"]) == (
        None, None, [], [],
    )  # fmt: skip
    assert session.card(7, "ada")["label"] == "left"
    assert session.card(8, "bob").get("blind") is None
    assert session.queue("bob", 1)[0] == session.card(7, "bob")
    session.skip("bob", [7])
    assert session.queue("bob", 1)[0]["row"] != 7


def test_no_overlap_is_the_default(open_session, moons):
    session = open_session()
    session.label("ada", [7], "left")
    assert session.unaided.due("bob") == []
    session.label("bob", [7], "right", kind="blind")  # as if the page had shown it so
    assert session.store.records[-1].kind == "label"
    assert session.store.standing.pairs() == {}
    with pytest.raises(InvalidInput, match="overlap: 2; give a share"):
        open_session(overlap=2)


def test_pairs_stay_as_they_were_given(open_session):
    """A label that somebody changes after a look at the other one is no independent reading."""
    session = open_session(overlap=1.0)
    session.label("ada", [7], "left")
    session.label("bob", [7], "right", kind="blind")
    session.label("ada", [7], "right")
    standing = session.store.standing
    assert standing.pairs() == {7: {"ada": "left", "bob": "right"}}
    assert session.store.disagreements() == []
    assert standing.readings() == {7: {"bob": "right", "ada": "right"}}
    session.undo("bob")
    assert session.store.standing.pairs() == {}
    assert session.card(7, "bob")["blind"] == "second"  # it comes again, still without help


def test_a_decision_ends_a_disagreement(open_session):
    session = open_session(overlap=1.0)
    session.label("ada", [7], "left")
    session.label("bob", [7], "right", kind="blind")
    assert session.card(7, "cyd")["disputed"] == {"ada": "left", "bob": "right"}
    session.label("cyd", [8], "left", kind="decision")  # nothing to decide: an ordinary label
    session.label("cyd", [7], "left", kind="decision")
    assert [r.kind for r in session.store.records] == ["label", "blind", "label", "decision"]
    assert session.store.disagreements() == []
    assert session.store.labels()[7] == "left"
    session.label("bob", [7], "right")  # a label does not undo a decision
    assert session.store.labels()[7] == "left"
    assert session.store.standing.readings()[7] == {"ada": "left", "bob": "right"}
    assert session.undo("cyd") == [7]
    assert session.store.labels()[7] == "right"
    assert [d.row for d in session.store.disagreements()] == [7]


def test_decisions_and_pairs_are_read_again(open_session, moons):
    session = open_session(overlap=1.0)
    session.label("ada", [7], "left")
    session.label("bob", [7], "right", kind="blind")
    session.label("cyd", [7], "left", kind="decision")
    again = LabelStore(session.store.path, items_of(None, moons.features))
    assert again.standing.pairs() == session.store.standing.pairs() != {}
    assert again.labels() == {7: "left"}
    assert again.disagreements() == []
    again.close()


def test_agreement_of_simulated_people(open_session, moons):
    """Two people who are right in .8 of 60 items: alpha of the population within its interval."""
    session, rng = open_session(overlap=1.0), np.random.default_rng(3)
    for user in ("ada", "bob"):
        right = rng.random(60) < 0.8
        truth = NAMES[np.where(right, moons.classes, 1 - moons.classes).astype(int)]
        for row in range(60):
            session.label(user, [row], truth[row], kind="blind")
    found = agreement_of(session.store.standing)
    assert found.n_items == 60
    assert found.upper - found.lower < 0.6
    assert found.lower < 1 - (2 * 0.8 * 0.2) / 0.5 < found.upper
    table = readings_table(session.items, session.store.standing)
    assert table.columns.tolist() == ["id", "ada", "bob"]
    assert len(table) == 60


def test_accuracies_of_simulated_people(open_session, moons):
    session, rng = open_session(overlap=1.0), np.random.default_rng(5)
    with pytest.raises(InvalidInput, match="let another one label"):
        Accuracies(session).compute()
    for user, accuracy in (("ada", 0.95), ("bob", 0.65)):
        right = rng.random(60) < accuracy
        truth = NAMES[np.where(right, moons.classes, 1 - moons.classes).astype(int)]
        for row in range(40):
            session.label(user, [row], truth[row], kind="blind")
    found = Accuracies(session)
    assert found.state == {"people": [], "n_labels": 0, "failure": None, "busy": False}
    found.start()
    found.start()  # which does not begin twice
    found._thread.join(300)
    state = found.state
    assert (state["busy"], state["failure"], state["n_labels"]) == (False, None, 80)
    ada, bob = state["people"]
    assert (ada["annotator"], bob["annotator"]) == ("ada", "bob")
    assert ada["lower"] < 0.95 < ada["upper"]
    assert bob["lower"] < 0.65 < bob["upper"]
    assert ada["lower"] > bob["accuracy"]


def test_failures_of_accuracies_are_told(open_session):
    found = Accuracies(open_session())
    found.start()
    found._thread.join(60)
    assert "let another one label" in found.state["failure"]
