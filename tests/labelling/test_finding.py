"""Filters of the search, and the small views before items are labelled together."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.labelling.audits import Audits
from graphuq.labelling.finding import MAX_FOUND, Finder
from graphuq.labelling.items import TextItems
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.05)
    items = TextItems([f"moon {'left' if c == 0 else 'right'} {k}" for k, c in
                       enumerate(moons.classes)])  # fmt: skip
    store = LabelStore(tmp_path_factory.mktemp("finding") / "labels.jsonl", items)
    names = np.array(["left", "right"])[moons.classes.astype(int)]
    rows = [*np.flatnonzero(names == "left")[:4], *np.flatnonzero(names == "right")[:4]]
    opened = Session(items, Model(moons.features), store).start()
    for row in rows[1:]:
        opened.label("ada", [int(row)], names[row])
    opened.label("bob", [int(rows[0])], "left")
    opened.label("bob", [int(rows[1])], "right")
    opened.write("bob", {20: None}, kind="flag", texts={20: "flag"})
    opened.write("bob", {21: None}, kind="note", texts={21: "odd"})
    opened.wait_until_current()
    yield opened
    opened.close()


def rows_of(session, **filters):
    found = Finder(session).find(**filters)
    assert found["n"] >= len(found["views"])
    return [view["row"] for view in found["views"]]


def test_filters_are_those_of_the_records(session):
    labels, p = session.store.labels(), session.latest[0].probabilities
    classes = session.latest[0].classes
    guess = np.array(classes)[p.argmax(axis=1)]
    free = [row for row in range(300) if row not in labels]
    assert rows_of(session, state="labelled") == sorted(labels)
    assert rows_of(session, state="unlabelled") == free[:MAX_FOUND]
    assert Finder(session).find(state="unlabelled")["n"] == 292
    assert rows_of(session, state="flag") == [20]
    assert rows_of(session, state="note") == [21]
    assert len(rows_of(session, state="disagreement")) == 1
    assert set(rows_of(session, by="bob")) == {
        r for r, by in session.store.readings().items() if "bob" in by
    }
    assert rows_of(session, by="nobody") == []
    assert rows_of(session, label="left", state="labelled") == [
        r for r in labels if labels[r] == "left"
    ]
    assert rows_of(session, label="left", state="unlabelled") == [
        r for r in free if guess[r] == "left"
    ]
    best = p.max(axis=1)
    assert (
        rows_of(session, least=0.5, most=0.8)
        == np.flatnonzero((best >= 0.5) & (best <= 0.8)).tolist()
    )
    sorted_rows = rows_of(session, state="unlabelled", order="least certain")
    assert best[sorted_rows].tolist() == sorted(best[free])[:MAX_FOUND]
    assert rows_of(session, state="unlabelled", order="most certain")[0] in np.flatnonzero(
        best == best[free].max()
    )
    assert rows_of(session, text="LEFT 1", label="left") == [
        r for r in range(300) if "left 1" in session.items.texts[r]
        and (labels.get(r, guess[r]) == "left")
    ]  # fmt: skip


def test_items_of_an_audit_are_found(session):
    drawn = Audits(session).draw("ada", 5)
    assert rows_of(session, state="audit") == sorted(drawn)
    Audits(session).end("ada")


def test_one_person(session):
    single = rows_of(session, state="one person")
    assert set(single) == {r for r, by in session.store.readings().items() if len(by) == 1}


def test_views_are_limited(session):
    assert [v["row"] for v in Finder(session).views([3, 1])] == [3, 1]
    with pytest.raises(InvalidInput, match="give at most 200"):
        Finder(session).views(list(range(201)))


@pytest.mark.parametrize("filters", [{"state": "x"}, {"order": "x"}, {"least": 0.9, "most": 0.1}])
def test_unknown_filters_are_refused(session, filters):
    with pytest.raises(InvalidInput):
        Finder(session).find(**filters)
