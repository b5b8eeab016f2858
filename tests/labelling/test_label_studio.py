"""Files and requests of Label Studio; requests as version 1.23.2 sent them, shortened."""

import json

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.labelling.items import TableItems
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore

pytest.importorskip("starlette.testclient", reason="pip install graphuq[dev], to test the server")
from starlette.testclient import TestClient

from graphuq.labelling.label_studio.backend import Backend, application

ORIGIN = "http://127.0.0.1:9090"
CLASSES = ["left", "right"]
CONFIG = gq.label_studio.label_config(CLASSES, field="row")
MOONS = gq.datasets.two_moons(40, n_features=2, noise_std=0.05)
NAMES = np.array(CLASSES)[MOONS.classes]


def task(row, number=100):
    """A task as Label Studio sends it."""
    return {
        "id": number + row,
        "data": {"row": row},
        "meta": {},
        "created_at": "2026-11-25T23:45:46.840335Z",
        "is_labeled": False,
        "total_annotations": 0,
        "project": 3,
        "annotations": [],
        "predictions": [],
    }


def annotated(row, label, action="ANNOTATION_CREATED", **more):
    """The news of one annotation."""
    result = [] if label is None else [choice(label)]
    annotation = {
        "id": 7000 + row,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "updated_at": "2026-11-25T23:46:35.444052Z",
        "lead_time": 2.0,
        "task": 100 + row,
        "project": 3,
        "completed_by": 1,
    }
    project = {"id": 3, "title": "Moons", "label_config": CONFIG, "model_version": "graphuq-1"}
    return {"action": action, "annotation": {**annotation, **more}, "project": project,
            "task": task(row)}  # fmt: skip


def choice(label):
    return {"from_name": "label", "to_name": "text", "type": "choices",
            "value": {"choices": [label]}}  # fmt: skip


@pytest.fixture
def session(tmp_path):
    items = TableItems(pd.DataFrame(MOONS.features))
    store = LabelStore(tmp_path / "labels.jsonl", items)
    opened = Session(items, Model(MOONS.features), store).start()
    opened.wait_until_current()
    yield opened
    opened.close()


@pytest.fixture
def studio(session):
    """Label Studio, which knows the address."""
    backend = Backend(session, list(session.items.ids))
    with TestClient(application(backend, "secret"), base_url=f"{ORIGIN}") as client:
        client.base_url = f"{ORIGIN}/secret"
        yield client


def predicted(studio, rows):
    body = {"tasks": [task(row) for row in rows], "project": "3.1795650346",
            "label_config": CONFIG, "params": {"login": None, "context": None}}  # fmt: skip
    answer = studio.post("/predict", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert len(found["results"]) == len(rows)
    assert {r["model_version"] for r in found["results"]} == {found["model_version"]}
    return found


def test_a_project_is_connected(studio):
    assert studio.get("/health").json()["status"] == "UP"
    body = {"project": "3.1795650346", "schema": CONFIG, "hostname": "http://localhost:8080",
            "access_token": "0123", "extra_params": None}  # fmt: skip
    assert studio.post("/setup", json=body).json() == {"model_version": "graphuq-1"}
    assert studio.get("/versions").json() == {"versions": ["graphuq-1"]}
    project = {"action": "PROJECT_UPDATED", "project": {"id": 3, "label_config": CONFIG}}
    assert studio.post("/webhook", json=project).status_code == 200
    assert studio.post("/train", json={"annotations": []}).json() == {}


def test_label_studio_shows_what_graphuq_would_label_next(studio, session):
    """The lowest score comes first: from central items to a posterior, as its sampling does."""
    for step in range(6):
        found = predicted(studio, range(40))
        scores = [r["score"] for r in found["results"]]
        labelled = {row for row, _ in session.store.labels().items()}
        row = min((r for r in range(40) if r not in labelled), key=scores.__getitem__)
        assert row == session.latest[0].queue[0]
        assert studio.post("/webhook", json=annotated(row, NAMES[row])).status_code == 200
        assert len(session.store.records) == step + 1
    found = predicted(studio, range(40))
    snapshot = session.latest[0]
    p, queue = snapshot.probabilities, snapshot.queue.tolist()
    for row, made in enumerate(found["results"]):
        (result,) = made["result"]
        assert result["value"]["choices"] == [snapshot.classes[p[row].argmax()]]
        assert result["score"] == pytest.approx(p[row].max(), abs=1e-4)
        assert (result["from_name"], result["to_name"]) == ("label", "text")
        expected = queue.index(row) / len(queue) / 2 if row in queue else p[row].max()
        assert made["score"] == pytest.approx(expected, abs=1e-6)
    guess = [made["result"][0]["value"]["choices"][0] for made in found["results"]]
    assert (np.array(guess) == NAMES).mean() > 0.9
    record = session.store.records[-1]
    assert (record.user, record.label) == ("label-studio 1", NAMES[record.row])


def test_corrections_and_deletions_are_followed(studio, session):
    studio.post("/webhook", json=annotated(3, "left"))
    studio.post("/webhook", json=annotated(3, "right", "ANNOTATION_UPDATED"))
    assert session.store.labels() == {3: "right"}
    deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 7003}], "project": {"id": 3}}
    studio.post("/webhook", json=deleted)
    assert session.store.labels() == {}
    studio.post("/webhook", json=annotated(4, "left", was_cancelled=True))  # skipped
    studio.post("/webhook", json=annotated(5, None))  # empty
    assert session.store.records[-1].row == 3
    studio.post("/webhook", json=annotated(6, "left"))
    studio.post("/webhook", json=annotated(6, None, "ANNOTATION_UPDATED"))
    assert session.store.labels() == {}
    other = {"email": "bob@example.org", "id": 2}
    studio.post("/webhook", json=annotated(6, "left", completed_by=other))
    assert session.store.records[-1].user == "bob@example.org"


def test_tasks_that_are_unknown_are_left_alone(studio, session):
    assert studio.post("/webhook", json=annotated(99, "left")).status_code == 200
    assert session.store.records == []
    (made,) = predicted(studio, [99])["results"]
    assert made == {"model_version": "graphuq-1", "score": 1.0, "result": []}


def test_strangers_and_broken_requests_are_refused(studio, session):
    stranger = f"{ORIGIN}/wrong"
    body = annotated(3, "left")
    assert studio.post(f"{stranger}/webhook", json=body).status_code == 404
    assert studio.get(f"{ORIGIN}/health").status_code == 404
    headers = {"Host": "evil.example"}
    assert studio.post("/webhook", json=body, headers=headers).status_code == 421
    assert studio.post("/webhook", content=b"{").status_code == 400
    assert studio.post("/webhook", content=b"[]").status_code == 400
    assert studio.post("/webhook", content=iter([b"{}"])).status_code == 413
    answer = studio.post("/setup", json={"schema": "<View></View>"})
    assert answer.status_code == 400
    assert "no <Choices>" in answer.json()["error"]
    answer = studio.post("/predict", json={"tasks": "all", "label_config": CONFIG})
    assert "send tasks" in answer.json()["error"]
    two = {**choice("left"), "value": {"choices": ["left", "right"]}}
    assert studio.post("/webhook", json=annotated(3, None, result=[two])).status_code == 400
    assert session.store.records == []


def test_serve(tmp_path):
    import urllib.request

    texts = [f"{name} {k} {k % 5} words" for k, name in enumerate(NAMES)]
    labels = tmp_path / "labels.jsonl"
    with gq.label_studio.serve(MOONS.features, texts, labels=labels) as server:
        with urllib.request.urlopen(server.address + "/health", timeout=60) as answer:
            assert json.load(answer)["status"] == "UP"
        assert server._socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InvalidInput, match="keys: 1 values repeat"):
        gq.label_studio.serve(MOONS.features, [*texts[:39], texts[0]], labels=labels)
    with pytest.raises(InvalidInput, match="keys: 2 values; give 40"):
        gq.label_studio.serve(MOONS.features, texts, keys=["a", "b"], labels=labels)


def test_configurations():
    found = gq.label_studio.parse_config(
        '<View><Image name="i" value="$picture"/><Choices name="many" toName="i" choice="multiple">'
        '<Choice value="x"/></Choices><Choices name="c" toName="i"><Choice value="A cat"'
        ' alias="cat"/><Choice value="dog"/></Choices></View>'
    )
    assert (found.from_name, found.to_name, found.field) == ("c", "i", "picture")
    assert found.classes == ("cat", "dog")
    hostile = gq.label_studio.label_config(['"/><x a="', "<b>"], kind="image")
    assert gq.label_studio.parse_config(hostile).classes == ('"/><x a="', "<b>")
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>'
    for text, message in (("<View>", "no XML"), (bomb, "DOCTYPE"), ("<View/>", "no <Choices>")):
        with pytest.raises(InvalidInput, match=message):
            gq.label_studio.parse_config(text)
    with pytest.raises(InvalidInput, match="use text or image"):
        gq.label_studio.label_config(["a"], kind="sound")
    with pytest.raises(InvalidInput, match="name the classes"):
        gq.label_studio.label_config([])


def test_tasks_and_predictions_go_out_and_come_in():
    p = np.array([[0.2, 0.8], [0.6, 0.4]])
    made = gq.label_studio.tasks(["a", "b"], p, CLASSES, model_version="graphuq-3")
    again = json.loads(json.dumps(made))
    assert [values["data"] for values in again] == [{"text": "a"}, {"text": "b"}]
    table = gq.label_studio.predictions(again)
    assert table["label"].tolist() == ["right", "left"]
    assert table["score"].tolist() == [0.8, 0.6]
    assert table["model_version"].tolist() == ["graphuq-3"] * 2
    frame = pd.DataFrame({"row": [5, 6], "other": [1.5, 2.5]})
    made = gq.label_studio.tasks(frame, p, CLASSES, config=CONFIG, scores=np.array([1.0, 0.0]))
    assert made[1]["data"] == {"row": 6, "other": 2.5}
    assert gq.label_studio.predictions(made, CONFIG)["score"].tolist() == [1.0, 0.0]
    assert gq.label_studio.tasks(["a"]) == [{"data": {"text": "a"}}]
    with pytest.raises(InvalidInput, match=r"probabilities: .*give shape \(1, 2\)"):
        gq.label_studio.tasks(["a"], p, CLASSES)
    with pytest.raises(InvalidInput, match=r"classes: .* not in the configuration"):
        gq.label_studio.tasks(frame, p, ["left", "up"], config=CONFIG)
    with pytest.raises(InvalidInput, match="no field 'row' in row 1"):
        gq.label_studio.tasks([{"row": 1}, {}], config=CONFIG)
    with pytest.raises(InvalidInput, match="data: "):
        gq.label_studio.tasks([1, 2])


def test_annotations_of_an_export():
    """In order of time; skipped ones and parts that are no choice are left out."""
    box = {"type": "rectanglelabels", "from_name": "box", "value": {"rectanglelabels": ["x"]}}
    export = [
        {"id": 11, "data": {}, "annotations": [
            {"result": [box, choice("left")], "completed_by": 1, "updated_at": "2026-02-01"},
            {"result": [choice("right")], "completed_by": {"id": 2, "email": "b@c"},
             "updated_at": "2026-01-01"}]},
        {"id": 12, "annotations": [{"result": [choice("left")], "was_cancelled": True}]},
        {"id": 13, "annotations": []},
    ]  # fmt: skip
    table = gq.label_studio.annotations(export)
    assert table["label"].tolist() == ["right", "left"]
    assert table["user"].tolist() == ["b@c", "label-studio 1"]
    assert table[["row", "task"]].to_numpy().tolist() == [[0, 11], [0, 11]]
    other = gq.label_studio.label_config(["left"]).replace('name="label"', 'name="other"')
    assert len(gq.label_studio.annotations(export, other)) == 0
    with pytest.raises(InvalidInput, match="export: "):
        gq.label_studio.annotations({"tasks": []})


def short(number, **more):
    """A task as the short export (JSON-MIN) has it."""
    own = {"annotator": 4, "annotation_id": number, "created_at": "2024-02-01T10:00:00Z"}
    return {"id": number, "row": "7", **own, "updated_at": f"2024-02-01T1{number}:00:00Z", **more}


def test_short_exports_hold_the_same_annotations():
    export = [short(3, label="left"), short(1, label=["right"]), short(2),
              short(0, label={"choices": ["right"]})]  # fmt: skip
    table = gq.label_studio.annotations(export)
    assert table["label"].tolist() == ["right", "right", "left"]
    assert table["row"].tolist() == [3, 1, 0]
    assert table["task"].tolist() == [0, 1, 3]
    assert table["user"].tolist() == ["label-studio 4"] * 3
    other = CONFIG.replace('name="label"', 'name="side"')
    named = [short(1, side="left"), short(2, side="right")]
    assert gq.label_studio.annotations(named, other)["label"].tolist() == ["left", "right"]
    with pytest.raises(InvalidInput, match=r"without a field 'label'.*config"):
        gq.label_studio.annotations(named)
    with pytest.raises(InvalidInput, match="give one class a task"):
        gq.label_studio.annotations([short(1, label={"choices": ["left", "right"]})])
