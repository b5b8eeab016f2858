"""The loop of labels and posteriors: cold start, undo, new classes, several people."""

import tempfile
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning, InvalidInput
from graphuq.labelling import model as model_module
from graphuq.labelling import session as module
from graphuq.labelling import similarity as similarity_module
from graphuq.labelling import turns
from graphuq.labelling.cards import card_of
from graphuq.labelling.finding import Finder
from graphuq.labelling.items import items_of
from graphuq.labelling.model import Model
from graphuq.labelling.recent import RecentSnapshots
from graphuq.labelling.similarity import Similarity
from graphuq.labelling.store import LabelStore

NAMES = np.array(["left", "right"])


def test_first_items_are_central_and_different(moons):
    similarity = Similarity.of_graph(gq.graphs.knn_graph(moons.features))
    rows = similarity.central_rows(6)
    assert len(set(rows.tolist())) == 6
    assert set(moons.classes[rows[:2]].tolist()) == {0, 1}  # both moons at once
    again = similarity.central_rows(5, labelled=rows[:1])
    assert again.tolist() == rows[1:].tolist()  # a labelled item counts as one that was picked
    assert rows[2] not in similarity.central_rows(60, without=rows[2:3])
    closest = similarity.closest(int(rows[0]), np.arange(60), 5)
    assert (moons.classes[closest] == moons.classes[rows[0]]).all()


def test_items_are_chosen_while_the_graph_of_many_is_built(monkeypatch):
    """All five groups of sorted rows are among the first items, before there is a graph."""
    rng = np.random.default_rng(0)
    X = np.repeat(5 * np.eye(5), 1_200, axis=0) + rng.normal(size=(6_000, 5))
    for features in (X, sparse.csr_array(X)):
        rows = Model(features).first_rows()
        assert len(set(rows.tolist())) == 16
        assert {row // 1_200 for row in rows[:8].tolist()} == set(range(5))
    assert len(Model(X[:100]).first_rows()) == 0  # their graph is there in a moment
    begun, go_on = threading.Event(), threading.Event()

    def prepare(self, progress):
        progress("neighbours", 20_000, 50_000, np.nan)
        begun.set()
        assert go_on.wait(30)
        raise InvalidInput("X", "stopped", "this ends the thread")

    monkeypatch.setattr(Model, "prepare", prepare)
    items = items_of(None, X)
    with tempfile.TemporaryDirectory() as folder:
        store = LabelStore(f"{folder}/labels.jsonl", items)
        session = module.Session(items, Model(X), store).start()
        assert begun.wait(30)
        queue = [card["row"] for card in session.queue("ada", 8)]
        state = session.state("ada")
        go_on.set()
        session.close()
    assert {row // 1_200 for row in queue} == set(range(5))
    assert (state["ready"], state["stage"]) == (False, "neighbours: 40 %")


def test_the_start_of_large_data_is_quick(monkeypatch):
    """Neighbours in inverted lists, and eigenpairs once, for the fits and for similar items."""
    pytest.importorskip("faiss", reason="pip install graphuq[neighbors]")
    rng = np.random.default_rng(0)
    X = np.repeat(3 * np.eye(6), 300, axis=0) + rng.normal(size=(1_800, 6))
    exact = Model(X)
    exact.prepare()
    monkeypatch.setattr(model_module, "LARGE", 1_000)
    model, told = Model(X), []
    model.prepare(lambda phase, *_: told.append(phase))
    assert list(dict.fromkeys(told)) == ["neighbours", "eigenpairs"]
    quick, full = model.settings.graph, exact.settings.graph
    assert 0.99 <= quick.settings["recall"] <= 1
    joined = (quick.weights > 0).multiply(full.weights > 0).nnz
    assert joined >= 0.98 * full.weights.nnz
    labels = {row: f"{row // 300}" for row in range(0, 1_800, 100)}
    result = model.renew(labels, 1).result
    assert model._follower.fitted._basis is model.shared.basis
    other = exact.renew(labels, 1).result
    difference = np.abs(result.probabilities - other.probabilities)
    assert difference.mean() < 0.005  # a hundredth of the neighbours is missing
    agree = result.probabilities.argmax(axis=1) == other.probabilities.argmax(axis=1)
    assert agree.mean() > 0.98
    own = Similarity.of_graph(quick)
    shared = Similarity.of_graph(quick, model.shared.basis)
    assert shared.to(0, np.arange(1_800)) == pytest.approx(own.to(0, np.arange(1_800)), abs=1e-3)
    assert shared.central_rows(8).tolist() == own.central_rows(8).tolist()


def test_a_graph_of_more_parts_than_eigenpairs_has_first_items():
    """Each part has a null vector; a limit of 60 pairs was an error with 60 parts."""
    rng = np.random.default_rng(0)
    X = 100 * np.repeat(np.arange(80.0), 8)[:, None] + rng.normal(size=(640, 2))
    with pytest.warns(DisconnectedGraphWarning, match="80 connected components"):
        graph = gq.graphs.knn_graph(X, n_neighbors=3)
    rows = Similarity.of_graph(graph).central_rows(40)
    assert len({row // 8 for row in rows.tolist()}) >= 38  # random rows would be of 32 parts


def test_first_items_explain_most_variance_by_the_formula(moons, monkeypatch):
    """Each pick adds most to ``Σ_i max_j C_ij²``, by all pairs; of many items, among a sample."""
    similarity = Similarity.of_graph(gq.graphs.knn_graph(moons.features))
    covariance = similarity._rows @ similarity._rows.T
    explained = covariance**2 / np.outer(np.diag(covariance), np.diag(covariance))
    picks = [7]  # labelled
    for _ in range(4):
        total = [explained[:, [*picks, row]].max(axis=1).sum() for row in range(60)]
        picks.append(int(np.where(np.isin(np.arange(60), picks), -1, total).argmax()))
    assert similarity.central_rows(4, labelled=[7]).tolist() == picks[1:]
    monkeypatch.setattr(similarity_module, "N_COVERED", 20)
    some = similarity.central_rows(60, labelled=[7], without=[8])
    assert len(set(some.tolist())) == 20
    assert not {7, 8} & set(some.tolist())
    total = [explained[np.ix_(some, [7, row])].max(axis=1).sum() for row in some]
    assert some[0] == some[int(np.argmax(total))]


def test_from_no_label_to_a_posterior(open_session, moons):
    session = open_session()
    first = session.queue("ada", 4)
    assert [card["classes"] for card in first] == [[]] * 4
    rows = [card["row"] for card in first]
    assert len(set(moons.classes[rows].tolist())) == 2
    session.label("ada", rows[:1], NAMES[moons.classes[rows[0]]])
    assert session.wait_until_current().probabilities is None  # one class only
    assert rows[0] not in [card["row"] for card in session.queue("ada", 59)]
    for row in rows[1:]:
        session.label("ada", [row], NAMES[moons.classes[row]])
    snapshot = session.wait_until_current()
    assert snapshot.classes == ("left", "right")
    guess = np.array(snapshot.classes)[snapshot.probabilities.argmax(axis=1)]
    assert (guess == NAMES[moons.classes]).mean() > 0.9
    (card,) = session.queue("ada", 1)
    assert [c["name"] for c in card["classes"]] in (["left", "right"], ["right", "left"])
    assert sum(c["probability"] for c in card["classes"]) == pytest.approx(1, abs=2e-4)
    assert {n["row"] for n in card["neighbours"]} == set(rows)
    closeness = [n["closeness"] for n in card["neighbours"]]
    assert closeness == sorted(closeness, reverse=True)
    state = session.state("ada")
    assert state["n_labelled"] == 4
    assert {c["name"]: c["count"] for c in state["classes"]} == {
        name: int((NAMES[moons.classes[rows]] == name).sum()) for name in NAMES
    }


def test_every_bar_ends_within_its_line():
    """The line of each class, also of a small probability, is drawn around the end of its bar."""
    digits = gq.datasets.load_digits()
    X, classes = digits.data[:300], digits.target[:300]
    items, model = items_of(None, X), Model(X)
    model.prepare()
    labels = {row: str(classes[row]) for row in range(40)}
    snapshot = model.renew(labels, 1)
    for row in range(0, 300, 10):
        shown = card_of(items, row, snapshot, labels, None)["classes"]
        assert len(shown) == 10
        for one in shown:
            lower, upper = one["interval"]
            assert lower - 1e-4 <= one["probability"] <= upper + 1e-4  # rounded to four digits


def test_undo_restores_the_same_probabilities(open_session, moons):
    session = open_session(given={0: "left", 59: "right"})
    before = session.wait_until_current()
    card = session.queue("ada", 1)[0]
    session.label("ada", [card["row"]], "right")
    session.label("ada", [card["row"]], "left")
    changed = session.wait_until_current()
    assert not np.array_equal(changed.probabilities, before.probabilities)
    assert session.undo("ada") == [card["row"]]
    session.undo("ada")
    after = session.wait_until_current()
    assert np.array_equal(after.probabilities, before.probabilities)
    assert after.labels == {0: "left", 59: "right"}
    assert session.undo("ada") == []
    assert session.store.labels() == {}


def test_undo_without_the_cache_agrees(open_session, monkeypatch):
    """The posterior after a withdrawal is computed again, and is that of the same labels."""
    session = open_session(given={0: "left", 59: "right", 20: "left"})
    before = session.wait_until_current()
    session.label("ada", [40], "right")
    session.wait_until_current()
    session._recent = RecentSnapshots()
    session.undo("ada")
    after = session.wait_until_current()
    assert after.version > before.version
    assert after.probabilities == pytest.approx(before.probabilities, abs=2e-3)


@pytest.mark.slow
def test_a_new_class_takes_part(open_session):
    session = open_session(given={0: "left", 59: "right"}, classes=["left", "odd"])
    assert [c["name"] for c in session.state("ada")["classes"]] == ["left", "odd", "right"]
    session.label("ada", [30, 31], "middle")
    session.label("ada", [32], "a class")
    assert [c["name"] for c in session.state("ada")["classes"]][2:] == [
        "right",
        "middle",
        "a class",
    ]
    session.undo("ada")
    snapshot = session.wait_until_current()
    assert snapshot.classes == ("left", "middle", "right")
    assert snapshot.probabilities.shape == (60, 3)
    session.undo("ada")
    assert session.wait_until_current().classes == ("left", "right")


def test_a_label_never_waits_for_the_posterior(open_session, monkeypatch):
    session = open_session(given={0: "left", 59: "right"})
    started, go_on = threading.Event(), threading.Event()
    renew = session._model.renew

    def slow(*arguments):
        started.set()
        assert go_on.wait(30)
        return renew(*arguments)

    monkeypatch.setattr(session._model, "renew", slow)
    row = session.queue("ada", 1)[0]["row"]
    session.label("ada", [row], "left")
    assert started.wait(30)
    for card in session.queue("ada", 5):  # the posterior is still at work on the first label
        session.label("ada", [card["row"]], "left")
    assert len(session.store.labels()) == 6
    assert session.state("ada")["busy"]
    go_on.set()
    assert len(session.wait_until_current().labels) == 8


def test_people_get_different_items_and_both_labels_are_kept(open_session):
    session = open_session(given={0: "left", 59: "right"})
    first = [card["row"] for card in session.queue("ada", 5)]
    second = [card["row"] for card in session.queue("bob", 5)]
    assert not set(first) & set(second)
    session.label("ada", [first[0]], "left")
    session.label("bob", [first[0]], "right")
    (found,) = session.state("ada")["disagreements"]
    assert (found["row"], found["labels"]) == (first[0], {"ada": "left", "bob": "right"})


def test_labels_of_another_process_are_seen(open_session, monkeypatch):
    monkeypatch.setattr(module, "POLL_S", 0.05)
    session = open_session(given={0: "left", 59: "right"})
    other = LabelStore(session.store.path, session.items)
    other.append("bob", {12: "left"})
    other.close()
    until = time.monotonic() + 30
    while 12 not in session._snapshot.labels and time.monotonic() < until:
        time.sleep(0.02)
    assert session.wait_until_current().labels[12] == "left"


def test_labels_are_there_again(open_session):
    session = open_session(given={0: "left", 59: "right"})
    for card in session.queue("ada", 3):
        session.label("ada", [card["row"]], "left", {card["row"]: 0.5}, card["version"])
        session.wait_until_current()
    labels = session.store.labels()
    recorded = max(record.model for record in session.store.records)
    session.close()
    again = open_session(given={0: "left", 59: "right"})
    assert again.store.labels() == labels
    assert again.wait_until_current().version > recorded
    assert len(again.undo("ada")) == 1


def test_skipped_items_come_last_and_wishes_first(open_session):
    session = open_session(given={0: "left", 59: "right"})
    rows = [card["row"] for card in session.queue("ada", 58)]
    assert sorted(rows) == list(range(1, 59))
    session.skip("ada", [rows[0]])
    assert [card["row"] for card in session.queue("ada", 58)][-1] == rows[0]
    session.wish([rows[30], rows[31]])
    assert [card["row"] for card in session.queue("ada", 2)] == rows[30:32]


def test_a_selection_is_shared_out_between_two_people(open_session):
    session = open_session(given={0: "left", 59: "right"})
    session.wish([5, 6, 7, 8])
    first = [card["row"] for card in session.queue("ada", 3)]
    second = [card["row"] for card in session.queue("bob", 3)]
    assert first == [5, 6, 7]
    assert second[0] == 8
    assert not set(first) & set(second)
    session.skip("ada", [5])  # a wish that is skipped does not come back at once
    assert [card["row"] for card in session.queue("ada", 2)] == [6, 7]
    session.wish([5])  # but another wish does
    assert session.queue("ada", 1)[0]["row"] == 5


def test_two_tabs_of_a_person_get_different_items(open_session):
    session = open_session(given={0: "left", 59: "right"})
    tabs = [{card["row"] for card in session.queue("ada", 8, tab=tab)} for tab in "abc"]
    assert len(set.union(*tabs)) == 24
    assert {card["row"] for card in session.queue("ada", 8, tab="b")} == tabs[1]
    assert session.queue("ada", 0) == []


def test_a_tab_that_was_closed_gives_its_items_back(open_session, monkeypatch):
    session = open_session(given={0: "left", 59: "right"})
    first = [card["row"] for card in session.queue("ada", 4)]
    assert not set(first) & {card["row"] for card in session.queue("bob", 4)}
    later = time.monotonic() + turns.AWAY_S + 1
    monkeypatch.setattr(turns.time, "monotonic", lambda: later)
    session.state("bob")
    assert {card["row"] for card in session.queue("cleo", 4)} == set(first)


def test_undo_takes_back_skips_and_labels_in_their_order(open_session):
    session = open_session(given={0: "left", 59: "right"})
    session.label("ada", [5], "left")
    session.skip("ada", [6])
    session.label("ada", [7, 8], "right")
    session.skip("ada", [9])
    session.skip("bob", [10])
    undone = []
    while rows := session.undo("ada"):
        undone.append(rows)
    assert undone == [[9], [7, 8], [6], [5]]
    assert session.store.labels() == {}
    assert session.store.standing.skipped == [10]


def test_skips_are_kept_for_the_next_run(open_session):
    """They come last for who skipped them, first for others, and undo takes them back in order."""
    session = open_session(given={0: "left", 59: "right"})
    session.skip("ada", [6, 7])
    session.label("ada", [8], "left")
    session.skip("bob", [9])
    session.close()
    again = open_session(given={0: "left", 59: "right"})
    assert [card["row"] for card in again.queue("ada", 59)][-2:] == [6, 7]
    assert 9 not in again.latest[0].queue
    assert again.store.labels() == {8: "left"}
    assert again.store.standing.people == ["ada"]  # who only skipped has labelled nothing
    assert [again.undo("ada") for _ in range(3)] == [[8], [6, 7], []]
    assert again.store.standing.skipped == [9]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_wait_ends_with_the_session(open_session, monkeypatch):
    """A closed session, or a thread that died, is an error and no wait until the time is over."""
    session = open_session(given={0: "left", 59: "right"})
    go_on = threading.Event()

    def die(*_):
        go_on.wait(30)
        raise SystemExit

    monkeypatch.setattr(session._model, "renew", die)
    session.label("ada", [5], "left")
    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(InvalidInput, match="session: ended before it knew all labels"):
        session.wait_until_current(600)
    with pytest.raises(InvalidInput, match="session: ended"):
        session.wait_until_current(600)


def test_undo_of_an_earlier_run_follows_that_of_this_one(open_session):
    session = open_session(given={0: "left", 59: "right"})
    session.label("ada", [5], "left")
    session.close()
    again = open_session(given={0: "left", 59: "right"})
    again.skip("ada", [6])
    assert again.undo("ada") == [6]
    assert again.store.labels() == {5: "left"}
    assert again.undo("ada") == [5]
    assert again.undo("ada") == []


def test_labels_go_on_when_the_file_is_replaced(open_session, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "POLL_S", 0.05)
    session = open_session(given={0: "left", 59: "right"})
    path, old = session.store.path, session.store.path.read_bytes()
    session.label("ada", [5], "left")
    (tmp_path / "copy").write_bytes(old)
    (tmp_path / "copy").replace(path)  # an older copy, such as of a cloud
    until = time.monotonic() + 30
    while not session.state("ada")["restored"] and time.monotonic() < until:
        time.sleep(0.02)
    session.label("ada", [6], "right")
    assert session.store.labels() == {5: "left", 6: "right"}
    assert path.read_bytes().count(b'"label": ') == 2


def test_look_alikes_have_the_class_that_was_asked_for(open_session, moons):
    session = open_session(given={0: "left", 59: "right", 10: "left", 45: "right"})
    found = Finder(session).alike(3, "left")
    assert len(found) > 10
    assert {item["likeliest"]["name"] for item in found} == {"left"}
    assert 3 not in [item["row"] for item in found]


def test_a_failure_is_shown_and_labels_go_on(open_session, monkeypatch):
    session = open_session(given={0: "left", 59: "right"})
    renew = session._model.renew
    monkeypatch.setattr(session._model, "renew", lambda *_: 1 / 0)
    session.label("ada", [5], "left")
    session.wait_until_current()
    assert "ZeroDivisionError" in session.state("ada")["failure"]
    monkeypatch.setattr(session._model, "renew", renew)
    session.label("ada", [6], "left")
    until = time.monotonic() + 30
    while session.state("ada")["failure"] and time.monotonic() < until:
        time.sleep(0.02)
    assert session.wait_until_current().labels == {0: "left", 59: "right", 5: "left", 6: "left"}


def test_arguments_are_checked(open_session):
    session = open_session()
    for rows in ([60], [-1], []):
        with pytest.raises(InvalidInput):
            session.label("ada", rows, "left")
    with pytest.raises(InvalidInput):
        session.label("ada", [1], "a\x00b")
    with pytest.raises(InvalidInput):
        session.label("", [1], "left")
    assert session.store.records == []
