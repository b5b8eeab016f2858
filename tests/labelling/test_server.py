"""The server of the page: who may ask, what is answered, and what no request can reach."""

import io
import os
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling import local_server
from graphuq.labelling.forecast import Forecasts
from graphuq.labelling.items import PictureArrays, PictureFiles, TextItems, items_of
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore

pytest.importorskip("starlette.testclient", reason="pip install graphuq[dev], to test the page")
from starlette.testclient import TestClient

from graphuq.labelling.address import path_of
from graphuq.labelling.application import PageOptions, application

TOKEN = "secret-token"
ORIGIN = "http://127.0.0.1:8000"
BASE = path_of(TOKEN)
WELCOME = f"{ORIGIN}/?token={TOKEN}"
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154089963f8cfc000000301010018dd8db00000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def moons():
    return gq.datasets.two_moons(40, n_features=2, noise_std=0.05)


@pytest.fixture(scope="module")
def model(moons):
    """The model of all sessions, which is fitted only when their labels differ."""
    return Model(moons.features)


@pytest.fixture
def session(tmp_path, model):
    items = TextItems([HOSTILE, *(f"text {row}" for row in range(1, 40))])
    store = LabelStore(tmp_path / "labels.jsonl", items)
    opened = Session(items, model, store, {0: "left", 39: HOSTILE}).start()
    opened.wait_until_current()
    yield opened
    opened.close(120)  # a fit that goes on would use the model beside the next session


@pytest.fixture
def app(session):
    options = PageOptions("Titles & <b>more</b>", "ada")
    return application(session, TOKEN, options, Forecasts(session))


@pytest.fixture
def stranger(app):
    """A browser that does not know the token."""
    with TestClient(app, base_url=f"{ORIGIN}{BASE}", headers={"Origin": ORIGIN}) as client:
        yield client


@pytest.fixture
def page(stranger):
    """A browser that opened the address with the token."""
    assert stranger.get(WELCOME).status_code == 200
    return stranger


ADDRESSES = (
    *("/", "/static/label.js", "/api/state", "/api/queue"),
    *("/labels.csv", "/export/jsonl", "/item/0/picture"),
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_answered_without_the_token(stranger, address):
    assert stranger.get(address).status_code == 403
    assert stranger.get(address, params={"token": "wrong"}).status_code == 403
    assert stranger.get(address, headers={"Cookie": "graphuq=wrong"}).status_code == 403


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(stranger):
    answer = stranger.get(WELCOME)
    cookie = answer.headers["set-cookie"]
    assert cookie == f"graphuq={TOKEN}; HttpOnly; Path={BASE}; SameSite=Strict"
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "10.0.0.1"])
def test_another_host_is_refused(page, host):
    """A name of another site that leads to this machine (DNS rebinding)."""
    assert page.get("/api/state", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9999", "[::1]:8000"])
def test_names_of_this_machine_are_accepted(app, host):
    """Also another port, through which a tunnel may lead."""
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        found = client.get(WELCOME, headers={"host": host})
        assert found.status_code == 200
        assert found.request.headers["host"] == host


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:8001", None])
def test_changes_of_other_sites_are_refused(page, session, origin):
    headers = {} if origin is None else {"Origin": origin}
    page.headers.pop("Origin")
    answer = page.post("/api/label", json={"rows": [5], "label": "x"}, headers=headers)
    assert answer.status_code == 403
    assert session.store.records == []
    assert page.get("/api/queue", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_changes_must_be_json_of_limited_size(page):
    text = b'{"rows": [5], "label": "x"}'
    assert page.post("/api/label", content=text).status_code == 415
    kind = {"Content-Type": "application/json"}
    assert page.post("/api/label", content=b"{" + b" " * 1_000_001, headers=kind).status_code == 413
    assert page.post("/api/label", content=iter([text]), headers=kind).status_code == 411
    assert page.post("/api/label", content=b"{", headers=kind).status_code == 400
    assert page.post("/api/label", content=b"[]", headers=kind).status_code == 400
    assert page.get("/api/label").status_code == 405


@pytest.mark.parametrize("address", [*ADDRESSES, "/nothing"])
def test_every_answer_has_the_policy(page, address):
    headers = page.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_label_is_stored_and_taken_back(page, session):
    body = {"rows": [5], "label": " left ", "probabilities": [0.25], "version": 1}
    assert page.post("/api/label", json=body).json()["saved"] == [5]
    (record,) = session.store.records
    assert (record.user, record.row, record.label) == ("ada", 5, "left")
    assert (record.probability, record.model) == (0.25, 1)
    page.post("/api/label", json={"user": "bob", "rows": [6, 7], "label": "new class"})
    state = page.get("/api/state").json()
    assert state["n_labelled"] == 5
    assert [c["name"] for c in state["classes"]] == [HOSTILE, "left", "new class"]
    table = pd.read_csv(io.StringIO(page.get("/labels.csv").text))
    assert table["id"].tolist() == [0, 5, 6, 7, 39]
    assert table["label"].tolist() == ["left", "left", "new class", "new class", HOSTILE]
    text = page.get("/predictions.csv").text
    table = pd.read_csv(io.StringIO(text), keep_default_na=False)  # numbers may be missing yet
    assert table["given"].tolist()[4:8] == ["", "left", "new class", "new class"]
    assert len(table) == 40
    undone = page.post("/api/undo", json={"user": "bob"}).json()
    assert undone["rows"] == [6, 7]
    assert undone["cards"][0]["row"] == 6
    assert session.store.labels() == {5: "left"}


@pytest.mark.parametrize(
    "body",
    [
        {"rows": [40], "label": "x"},
        {"rows": [-1], "label": "x"},
        {"rows": ["5"], "label": "x"},
        {"rows": 5, "label": "x"},
        {"rows": [], "label": "x"},
        {"rows": [True], "label": "x"},
        {"rows": [5], "label": ""},
        {"rows": [5], "label": None},
        {"rows": [5], "label": "a\nb"},
        {"rows": [5], "label": "x" * 101},
        {"rows": [5], "label": "x", "probabilities": [2.0]},
        {"rows": [5], "label": "x", "version": "1"},
        {"rows": [5], "label": "x", "user": ["ada"]},
    ],
)
def test_unusable_labels_are_refused_with_a_reason(page, session, body):
    answer = page.post("/api/label", json=body)
    assert answer.status_code == 400
    assert ";" in answer.json()["error"]
    assert session.store.records == []


def test_queue_card_search_and_look_alikes(page):
    cards = page.get("/api/queue", params={"n": 3}).json()
    assert len(cards) == 3
    held = ",".join(str(card["row"]) for card in cards)
    more = page.get("/api/queue", params={"n": 3, "held": held}).json()
    assert not {c["row"] for c in cards} & {c["row"] for c in more}
    assert page.get(f"/api/card/{cards[0]['row']}").json()["content"]["kind"] == "text"
    assert page.get("/api/card/40").status_code == 400
    assert page.get("/api/queue", params={"n": "many"}).status_code == 400
    assert page.get("/api/queue", params={"n": 101}).status_code == 400
    found = page.get("/api/search", params={"text": "TEXT 12"}).json()
    assert [hit["row"] for hit in found["views"]] == [12]
    assert len(page.get("/api/alike/3", params={"label": "left"}).json()) > 0
    found = page.get("/api/map").json()
    assert len(found["x"]) == len(found["color"]) == 40
    page.post("/api/skip", json={"rows": [cards[0]["row"]]})
    page.post("/api/wish", json={"rows": [30]})
    assert page.get("/api/queue", params={"n": 1}).json()[0]["row"] == 30


def test_news_are_waited_for(page, session):
    state = page.get("/api/state").json()
    page.post("/api/label", json={"rows": [5], "label": "left"})
    assert page.get("/api/state", params={"after": state["revision"]}).json()["n_labelled"] == 3


def test_text_is_data_and_never_markup(page):
    """Text of items and classes goes out as JSON only, which no browser shows as a page."""
    text = page.get("/").text
    assert "Titles &amp; &lt;b&gt;more&lt;/b&gt;" in text
    assert "<script>alert" not in text
    answer = page.get("/api/card/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["content"]["text"] == HOSTILE


def test_no_other_file_is_served(page):
    for name in ("../server.py", "..%2Fserver.py", "%2e%2e/store.py", "label.html", "", "x"):
        assert page.get(f"/static/{name}").status_code == 404


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    (folder / "below").mkdir(parents=True)
    for name in ("b.png", "below/a.PNG"):
        (folder / name).write_bytes(PIXEL)
    (tmp_path / "secret.png").write_bytes(PIXEL)
    (tmp_path / "secret.txt").write_text("secret")
    return folder


def test_pictures_of_a_folder_are_served(pictures):
    items = PictureFiles.in_folder(pictures)
    assert list(items.ids) == ["b.png", "below/a.PNG"]
    assert items.picture(1) == (PIXEL, "image/png")
    assert items.containing("BELOW", range(len(items))).tolist() == [1]


@pytest.mark.parametrize("name", ["../secret.png", "below/../../secret.png", "{root}/secret.png"])
def test_no_path_leads_out_of_the_folder(pictures, tmp_path, name):
    with pytest.raises(InvalidInput, match="outside the folder"):
        PictureFiles(pictures, ["b.png", name.format(root=tmp_path)])


def test_no_link_leads_out_of_the_folder(pictures, tmp_path):
    (pictures / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InvalidInput, match="outside the folder"):
        PictureFiles.in_folder(pictures)
    (pictures / "link.png").unlink()
    (pictures / "folder").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="outside the folder"):
        PictureFiles(pictures, ["b.png", "folder/secret.png"])
    items = PictureFiles(pictures, ["b.png", "below/a.PNG"])
    (pictures / "b.png").unlink()  # exchanged while the page is open
    (pictures / "b.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InvalidInput, match="outside the folder"):
        items.picture(0)
    (pictures / "below" / "a.PNG").unlink()
    with pytest.raises(StorageError, match="no file"):
        items.picture(1)


@pytest.mark.parametrize("name", ["below", "x.svg", "x.html", "gone.png"])
def test_only_pictures_are_served(pictures, name):
    (pictures / "x.svg").write_text("<svg><script>alert(1)</script></svg>")
    (pictures / "x.html").write_text("<script>alert(1)</script>")
    with pytest.raises((InvalidInput, StorageError)):
        PictureFiles(pictures, ["b.png", name])


def test_pixels_are_served_as_png():
    pixels = np.zeros((2, 3, 4))
    pixels[1, 0, 0] = 8.0
    items = items_of(pixels)
    assert isinstance(items, PictureArrays)
    content, kind = items.picture(1)
    assert (content[:8], kind) == (PIXEL[:8], "image/png")
    assert items_of(np.zeros((2, 3, 4, 3), np.uint8)).picture(0)[1] == "image/png"


@pytest.mark.parametrize("items", [[1, 2], "text", np.zeros(3), [], [b"x"], {"a": 1}])
def test_other_items_are_refused(items):
    with pytest.raises(InvalidInput, match=r"items: .*; give a list of texts"):
        items_of(items)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # its socket
def test_a_server_that_does_not_end_is_an_error(moons, tmp_path, monkeypatch):
    """The file of labels is closed nevertheless, and no wait is without an end."""
    monkeypatch.setattr(local_server, "STOP_S", 0.1)
    monkeypatch.setattr(local_server, "END_S", 0.2)
    page = gq.label(moons.features, labels=tmp_path / "labels.jsonl", open_browser=False)
    page.session.label("ada", [3], "left")
    monkeypatch.setattr(page._ended, "wait", lambda _: False)  # as if it went on
    with pytest.raises(StorageError, match=r"did not end within 0\.3 s, as a request goes on"):
        page.close()
    with pytest.raises(StorageError, match="is closed"):
        page.session.label("ada", [4], "left")
    page._thread.join(60)
    assert not page._thread.is_alive()


def test_page_in_python(moons, tmp_path):
    y = np.full(40, -1)
    y[0] = 0
    path = tmp_path / "labels.jsonl"
    with gq.label(moons.features, y=y, labels=path, open_browser=False, user="ada") as page:
        assert page.labels[0] == "0"
        page.session.label("ada", [39], "1")
        assert page.labels[39] == "1"
        with urllib.request.urlopen(page.address, timeout=60) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(page.address.partition("?")[0], timeout=60)
        listening = page._socket.getsockname()[0]
    assert listening == "127.0.0.1"
    with gq.label(moons.features, y=y, labels=path, open_browser=False) as page:
        assert page.labels[39] == "1"
        assert len(page.address) > 50
    with pytest.raises(InvalidInput, match="40 rows of X"):
        gq.label(moons.features, ["a", "b"], labels=tmp_path / "x", open_browser=False)
    assert not os.path.exists(tmp_path / "x")
