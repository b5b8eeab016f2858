"""Several classes an item on the labelling page: files, model, errors left, people, refusals."""

import json

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.acquisition.several_tags import query_tags
from graphuq.cli.tags import tags_of_texts
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling.agreement import krippendorff_alpha
from graphuq.labelling.audits import Audits
from graphuq.labelling.campaign import campaign_lines, campaign_of_session, read_campaign
from graphuq.labelling.campaign_page import campaign_page
from graphuq.labelling.finding import Finder
from graphuq.labelling.items import TextItems
from graphuq.labelling.layouts import layouts_of
from graphuq.labelling.people import Accuracies
from graphuq.labelling.standing import Standing
from graphuq.labelling.store import LabelStore
from graphuq.labelling.tag_model import FollowingTags, TagModel, TagSnapshot
from graphuq.labelling.tags import PageTags, codes_of, known_tags, unknown_tags
from graphuq.results import errors_left
from graphuq.results.errors_left import expected_wrong_tags

TAGS = ["comedy", "drama"]


def films(n=200):
    """Return features, and the tags of each row: one for each of the first two features."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, [{name for name, x in zip(TAGS, row, strict=True) if x > 0.2} for row in X]


X, TRUTH = films()
KNOWN = [tags if row < 24 else None for row, tags in enumerate(TRUTH)]
MATRIX = pd.DataFrame({t: [t in own if own is not None else -1 for own in KNOWN] for t in TAGS})


@pytest.fixture
def open_page(tmp_path):
    pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
    opened = []

    def open_(y=None, **options):
        options = {"labels": tmp_path / "labels.jsonl", "tags": True, "user": "ada"} | options
        page = gq.label(X, y=y, open_browser=False, **options)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()


# ---- labels and their file


def test_names_of_tags():
    classes = PageTags()
    assert classes.label_of(["war", " comedy ", "war"]) == "comedy;war"
    assert classes.label_of([]) == ";"
    assert classes.classes_in(";") == []
    assert classes.counts({1: "a;b", 2: ";", 3: "b"}) == {"a": 1, "b": 2}
    assert classes.in_order(["b;c", "a", ";", "b"]) == ["b", "c", "a"]
    for wrong in ("comedy", {"a": 1}, None, [7], ["a;b"], ["a|b"], [""], ["x"] * 201):
        with pytest.raises(InvalidInput, match="label"):
            classes.label_of(wrong)


def test_the_file_has_lists_of_tags(tmp_path):
    items, path = TextItems([f"text {row}" for row in range(5)]), tmp_path / "labels.jsonl"
    store = LabelStore(path, items, TAGS)
    store.append("ada", {0: "comedy;drama"})
    store.append("ada", {1: ";"})
    store.append("ada", {1: "drama"})
    assert store.undo("ada") == {1: ";"}
    store.close()
    header, *lines = map(json.loads, path.read_text().splitlines())
    assert header["tags"] == TAGS
    assert [line["label"] for line in lines] == [["comedy", "drama"], [], ["drama"], []]
    again = LabelStore(path, items, ["other"])
    assert again.labels() == {0: "comedy;drama", 1: ";"}
    assert again.tags == TAGS  # those of the beginning
    again.close()
    with pytest.raises(StorageError, match="has tags, several an item, and not classes, one"):
        LabelStore(path, items)
    LabelStore(tmp_path / "classes.jsonl", items).close()
    with pytest.raises(StorageError, match="has classes, one an item, and not tags, several"):
        LabelStore(tmp_path / "classes.jsonl", items, TAGS)
    path.write_text(path.read_text().replace(json.dumps(TAGS), "3", 1))
    with pytest.raises(StorageError, match="not a file of labels"):
        LabelStore(path, items, TAGS)


def test_a_tag_is_unknown_in_rows_that_were_labelled_before_it(store):
    """Row 1 was labelled before anybody named war, row 3 later; comedy was offered at first."""
    for row, text in [(0, "comedy"), (1, "drama"), (2, "drama;war"), (3, ";"), (4, "war")]:
        store.append("ada", {row: text})
    assert store.undo("ada") == {4: None}
    unknown = unknown_tags(store.standing, ["comedy"])
    assert unknown == {0: {"drama", "war"}, 1: {"war"}}
    names, codes = codes_of(store.labels(), unknown, 6)
    assert names == ("comedy", "drama", "war")
    assert codes.tolist() == [[1, -1, -1], [0, 1, -1], [0, 1, 1], [0, 0, 0], *[[-1] * 3] * 2]
    store.append("bob", {1: "drama"})  # who was asked for war, too
    assert unknown_tags(store.standing, ["comedy"]) == {0: {"drama", "war"}}
    assert codes_of({0: "war", 1: "war"}, {}, 3)[0] == ()  # none is without it
    assert unknown_tags(Standing(), ["comedy"]) == {}


def test_known_tags():
    assert known_tags(KNOWN, 200) == known_tags(MATRIX, 200)
    assert known_tags(KNOWN, 200)[0] == ";".join(sorted(TRUTH[0])) or ";"
    assert known_tags([None, None], 2) == known_tags(None, 2) == {}
    with pytest.raises(InvalidInput, match="y: 24 rows; give 200"):
        known_tags(KNOWN[:24], 200)
    with pytest.raises(InvalidInput, match=r"y: unknown tags in row \[2\]; give all tags of a ro"):
        known_tags(np.array([[0, 1], [1, 0], [1, -1]]), 3)
    with pytest.raises(InvalidInput, match="'a;b' as a tag; use a name without"):
        known_tags([{"a;b"}, set()], 2)


# ---- model


def test_the_model_of_the_page_is_that_of_multilabel_classifier():
    """Probabilities, queue and errors beside fits of `MultilabelClassifier` and its parts."""
    model = TagModel(X)
    model.prepare()
    labels = known_tags(KNOWN, 200)
    snapshot = model.with_queue(model.renew(labels, 1))
    assert snapshot.classes == tuple(TAGS)
    quick = gq.GraphClassifier(model="largest-evidence", inference="expectation-propagation")
    own = gq.MultilabelClassifier(quick).fit(X, MATRIX)
    assert snapshot.probabilities == pytest.approx(own.tag_probabilities_, abs=2e-3)
    assert snapshot.queue.tolist()[:5] == own.query(16).tolist()[:5]
    more = {**labels, 100: ";".join(sorted(TRUTH[100])) or ";"}
    updated = model.renew(more, 2)
    for tag, one in zip(TAGS, own.estimators_, strict=True):
        one.add_labels([100], [int(tag in TRUTH[100])])
    assert updated.probabilities == pytest.approx(own.tag_probabilities_, abs=2e-3)
    assert not np.allclose(updated.probabilities, snapshot.probabilities, atol=1e-3)
    back = model.renew(labels, 3)  # undo withdraws a label
    assert back.probabilities == pytest.approx(snapshot.probabilities, abs=2e-3)
    assert model.renew({}, 4).probabilities is None
    row = 150
    ends = snapshot.intervals.at(np.array([row]))[0]
    assert ends.shape == (2, 2)
    assert (ends[:, 0] <= ends[:, 1]).all()


def test_an_unknown_tag_of_a_row_is_no_label():
    model, labels = TagModel(X), known_tags(KNOWN, 200)
    model.prepare()
    model.unknown = lambda: {0: {"drama"}, 1: {"drama"}}
    found = model.renew(labels, 1).result
    counts = [len(result.posterior.labelled) for result in found.results]
    assert counts == [24, 22]


def test_the_likeliest_tags_of_an_item():
    p = np.array([[0.9, 0.2, 0.6], [0.1, 0.1, 0.1], [0.5, 0.5, 0.5]], dtype=np.float32)
    snapshot = TagSnapshot(1, {}, ("a", "b", "c"), p)
    assert snapshot.likeliest(0) == ("a;c", pytest.approx(0.9 * 0.8 * 0.6))
    assert snapshot.likeliest(1) == (";", pytest.approx(0.9**3))
    assert snapshot.has_class("c").tolist() == [True, False, False]
    assert list(snapshot.ranked(3)) == [2, 0, 1]  # expected wrong tags: 1.5, .7, .3
    assert TagSnapshot().likeliest(0) is None
    assert TagSnapshot().certainty is None


def test_expected_wrong_tags_are_those_of_independent_tags():
    """Ends beside the quantiles of all sums of a draw of one tag and a draw of the other."""
    own = gq.MultilabelClassifier(gq.GraphClassifier(inference="expectation-propagation"))
    results = [one.result_ for one in own.fit(X, MATRIX).estimators_]
    nodes = np.arange(24, 200)
    count = expected_wrong_tags(results, nodes)
    p = own.tag_probabilities_[nodes]
    assert count.expected == pytest.approx(np.minimum(p, 1 - p).sum(), rel=1e-6)
    first, second = (errors_left._error_draws(result, nodes) for result in results)
    sums = (first[:, None] + second[None, :]).ravel()
    lower, upper = np.quantile(sums, (0.05, 0.95))
    bound = 4 * 2 / np.sqrt(500) * sums.std()  # of a quantile of 500 draws, twice that of a mean
    assert count.lower == pytest.approx(lower, abs=bound)
    assert count.upper == pytest.approx(upper, abs=bound)
    assert count.upper - count.lower > 4 * bound / 2
    one = expected_wrong_tags(results[:1], nodes)
    assert one == gq.expected_errors(results[0])
    assert expected_wrong_tags(results, nodes[:0]) == (0, 0, 0)


def test_a_new_tag_makes_a_new_fit_and_an_old_one_stays():
    model = TagModel(X)
    model.prepare()
    tags = FollowingTags(model.settings, model.shared)
    names, codes = codes_of(known_tags(KNOWN, 200), {}, 200)
    tags.follow(names, codes)
    before = tags._fits
    tags.follow(names, codes)
    assert tags._fits is before
    third = np.column_stack([codes, codes[:, 0]])
    assert tags.follow((*names, "third"), third).classes == ("comedy", "drama", "third")
    assert tags._fits is not before
    assert tags.wants_refit(48)
    assert not tags.wants_refit(47)


# ---- the page


def test_a_page_of_tags(open_page, tmp_path):
    page = open_page(KNOWN, classes=["western"])
    session = page.session
    session.wait_until_current()
    state = session.state("ada")
    assert state["order"] == "tags"
    counts = {one["name"]: one["count"] for one in state["classes"]}
    assert counts == {"western": 0, **{t: sum(t in own for own in TRUTH[:24]) for t in TAGS}}
    cards = session.queue("ada", 3)
    for card in cards:
        session.label("ada", [card["row"]], sorted(TRUTH[card["row"]]))
        found = {one["name"] for one in card["classes"] if one["probability"] > 0.5}
        assert {*card["likeliest"]["name"].split(";")} - {""} == found
    session.label("ada", [60], ["drama", "western"])
    session.wait_until_current()
    answer = page.forecasts.wait()
    own = gq.MultilabelClassifier(gq.GraphClassifier(graph=session.model.settings.graph))
    y = [None if t not in session.latest[1] else {*session.latest[1][t].split(";")} - {""}
         for t in range(200)]  # fmt: skip
    free = [row for row in range(200) if y[row] is None]
    p = own.fit(None, y).tag_probabilities_[free]
    names, numbers = zip(*answer.errors.by_tag, strict=True)
    assert names == ("comedy", "drama", "western")
    assert numbers == pytest.approx(np.minimum(p, 1 - p).sum(axis=0), rel=0.1, abs=0.5)
    assert answer.errors.n_left == 3 * len(free)
    assert answer.errors.lower <= sum(numbers) <= answer.errors.upper
    assert answer.errors.is_average
    table = page.predictions().set_index("id")
    columns = [f"probability_{name}" for name in names]
    assert table.loc["60", "given"] == "drama;western"
    assert (table["given"].notna().sum(), len(table)) == (28, 200)
    assert table[columns].to_numpy()[free] == pytest.approx(p, abs=0.05)
    labels = session.items.label_table(session.latest[1])
    texts = labels["label"].to_numpy(dtype=object)[:, None]
    given = dict(zip(labels["id"], tags_of_texts(texts, ["label"]), strict=True))
    assert given == {str(row): own for row, own in enumerate(y) if own is not None}
    page.close()
    again = open_page(KNOWN, classes=["western"]).session
    assert again.latest[1] == session.latest[1]


def test_tags_are_found(open_page):
    page = open_page(KNOWN)
    snapshot = page.session.wait_until_current()
    found = Finder(page.session)
    rows = [view["row"] for view in found.find(label="drama", state="labelled")["views"]]
    assert rows == [row for row in range(24) if "drama" in TRUTH[row]]
    likely = np.flatnonzero(snapshot.probabilities[:, 1] > 0.5)
    rows = [view["row"] for view in found.find(label="drama", state="unlabelled")["views"]]
    assert rows == [row for row in likely if row >= 24]
    least = found.find(state="unlabelled", order="least certain")["views"][0]["row"]
    p = snapshot.probabilities[24:]
    assert least == 24 + np.maximum(p, 1 - p).prod(axis=1).argmin()


def test_before_there_is_a_tag(open_page):
    page = open_page(classes=TAGS)
    page.session.wait_until_current()
    page.session.label("ada", [3], [])
    page.session.wait_until_current()
    table = page.predictions()
    assert table["given"].isna().tolist()[:4] == [True, True, True, False]
    assert table["given"][3] == ";"
    assert table["tags"].isna().all()
    assert page.session.state("ada")["n_labelled"] == 1
    assert len(page.session.queue("ada", 4)) == 4
    assert page.forecasts.wait().errors is None


def test_labels_to_look_at_again_name_the_tag(open_page):
    """A row in the middle of comedies is confirmed without the tag."""
    row = int(np.argmin(np.abs(X - [1.2, -1.2]).sum(axis=1)))
    known = [own if X[k, 0] ** 2 > 0.1 else None for k, own in enumerate(TRUTH)]
    known[row] = set()
    session = open_page(known).session
    suspects = session.wait_until_current().suspects
    assert (row, "without comedy", "with comedy") in [
        (found["row"], found["given"], found["other"]) for found in suspects
    ]


def test_agreement_is_by_tag(open_page, tmp_path):
    page = open_page(KNOWN, overlap=1.0)
    session = page.session
    session.wait_until_current()
    rng, said = np.random.default_rng(1), []
    for row in range(30, 60):
        first = sorted(TRUTH[row])
        second = [tag for tag in TAGS if (tag in first) != (rng.random() < 0.2)]
        session.label("ada", [row], first)
        card = session.card(row, "bob")
        assert card["blind"] == "second"
        assert card["classes"] == []
        session.label("bob", [row], second, kind="blind")
        said.append((first, second))
    campaign = campaign_of_session(session, Accuracies(session).state)
    assert campaign.agreement is None
    for tag in TAGS:
        expected = krippendorff_alpha(
            {"ada": str(tag in first), "bob": str(tag in second)} for first, second in said
        )
        assert campaign.agreement_by_tag[tag] == expected
    lines = campaign_lines(campaign)
    assert sum(line.startswith("agreement about ") for line in lines) == 2
    assert '<th scope="row">drama</th>' in campaign_page(campaign, "Films")
    assert read_campaign(session.store.path).agreement_by_tag == campaign.agreement_by_tag
    disputed = session.store.disagreements()[0]
    session.label("eve", [disputed.row], ["comedy"], kind="decision")
    assert session.latest[1][disputed.row] == "comedy"


def test_what_is_for_classes_alone_is_refused(open_page, tmp_path):
    page = open_page(KNOWN)
    session = page.session
    session.wait_until_current()
    with pytest.raises(InvalidInput, match="an audit of tags; see the expected wrong tags"):
        Audits(session).draw("ada", 5)
    with pytest.raises(InvalidInput, match="of tags, whose people have no model"):
        Accuracies(session).start()
    with pytest.raises(InvalidInput, match=r"'prodigy' for tags; use csv, parquet or jsonl"):
        page.export("prodigy", tmp_path / "out.jsonl")
    assert [layout.name for layout in layouts_of(session.items, True)] == [
        "csv", "parquet", "jsonl"
    ]  # fmt: skip
    page.export("csv", tmp_path / "out.csv")
    texts = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)["label"].to_numpy(str)
    assert tags_of_texts(texts[:, None], ["label"]) == KNOWN
    page.forecasts.wait()
    assert "no audit of tags" in Audits(session).state()["advice"]
    with pytest.raises(InvalidInput, match="give a list of at most 200 names"):
        session.label("ada", [1], "comedy")
    for options, words in [
        ({"ordered": True}, "True beside tags"),
        ({"classes": ["a;b"]}, "'a;b' as a tag"),
        ({"y": ["comedy"] * 200}, "y"),
        ({"classifier": gq.GraphClassifier(max_classes=3)}, "3 beside several tags"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            open_page(labels=tmp_path / "none.jsonl", **options)
    assert not (tmp_path / "none.jsonl").exists()


def test_query_of_a_page_needs_no_labels_of_known_rows():
    model, labels = TagModel(X, rule="margin"), known_tags(KNOWN, 200)
    model.prepare()
    snapshot = model.renew(labels, 1)
    rows = model.with_queue(snapshot, without=[199]).queue
    assert not {*rows.tolist()} & {*range(24), 199}
    free = np.arange(24, 199)
    assert rows.tolist() == query_tags(snapshot.result.results, 16, "margin", free).tolist()


WRONG = (
    "comedy",
    5,
    None,
    {"comedy": True},
    [["comedy"]],
    [None],
    ["a;b"],
    ["\u0000"],
    ["x"] * 300,
)


def test_requests_of_the_page(open_page):
    """Lists of names are stored; all else is refused, and nothing of it reaches the file."""
    client = pytest.importorskip("starlette.testclient", reason="pip install graphuq[dev]")
    from graphuq.labelling.address import path_of
    from graphuq.labelling.application import PageOptions, application

    page = open_page(KNOWN)
    page.session.wait_until_current()
    app = application(page.session, "secret", PageOptions("Films", "ada"), page.forecasts)
    origin = "http://127.0.0.1:8000"
    base = f"{origin}{path_of('secret')}"
    with client.TestClient(app, base_url=base, headers={"Origin": origin}) as tab:
        text = tab.get(f"{origin}/?token=secret").text
        assert 'data-tags="yes"' in text
        assert "export/prodigy" not in text
        for label in WRONG:
            answer = tab.post("/api/label", json={"rows": [50], "label": label})
            assert answer.status_code == 400
            assert answer.json()["error"].startswith("label: ")
        for path, body in [("audit", {"n": 5}), ("accuracies", {})]:
            assert tab.post(f"/api/{path}", json=body).status_code == 400
        assert tab.get("/export/prodigy").status_code == 400
        assert page.session.store.records == []
        answer = tab.post("/api/label", json={"rows": [50], "label": ["drama", "<b>&"]})
        assert answer.status_code == 200
        assert tab.post("/api/label", json={"rows": [51], "label": []}).status_code == 200
        page.session.wait_until_current()
        page.forecasts.wait()
        assert page.session.store.labels() == {50: "<b>&;drama", 51: ";"}
        state = tab.get("/api/state").json()
        assert {"name": "<b>&", "count": 1} in state["classes"]
        assert {name for name, _ in state["errors"]["by_tag"]} == {"<b>&", *TAGS}
        for path in ("labels.csv", "predictions.csv", "readings.csv", "log.csv", "export/jsonl"):
            assert tab.get(f"/{path}").status_code == 200
        assert tab.get("/report").status_code == 200
        map_ = tab.get("/api/map").json()
        assert map_["classes"] == ["<b>&", *TAGS]
