"""The widget for notebooks: its text, and requests that it passes on."""

import json
import re
import sys
import threading

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput, MissingPackage
from graphuq.labelling.items import PictureArrays
from graphuq.labelling.notebook import forward, page_text

pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")


@pytest.fixture
def page(tmp_path):
    moons = gq.datasets.two_moons(30, n_features=2, noise_std=0.05)
    with gq.label(moons.features, labels=tmp_path / "l.jsonl", open_browser=False) as opened:
        yield opened


def test_the_text_stands_alone_and_escapes_names():
    items = PictureArrays(np.zeros((3, 2, 2)))
    text = page_text("<b>title</b>", '"><script>alert(1)</script>', items)
    assert "<b>title" not in text
    assert "alert(1)</script>" not in text
    assert "&lt;b&gt;title" in text
    assert re.search(r"^(import|export) ", text, re.MULTILINE) is None
    assert 'src="/static' not in text
    assert 'href="/static' not in text
    assert text.count("<script") == text.count("</script") == 2


def test_requests_are_passed_on_with_the_token(page):
    ask = {"id": "a-1", "method": "GET", "path": "/api/queue?n=2", "body": None}
    found, content = forward(ask, page.port, page.token)
    assert found == {"id": "a-1", "status": 200, "type": "application/json"}
    row = json.loads(content)[0]["row"]
    body = json.dumps({"rows": [row], "label": "left", "user": "ada"})
    ask = {"id": "a-2", "method": "POST", "path": "/api/label", "body": body}
    assert forward(ask, page.port, page.token)[0]["status"] == 200
    assert page.session.store.labels() == {row: "left"}
    assert forward(ask, page.port, "wrong")[0]["status"] == 403
    for wrong in ({"path": "http://evil.example/"}, {"method": "DELETE"}, {"path": None}):
        with pytest.raises(InvalidInput, match="request of the page"):
            forward({**ask, **wrong}, page.port, page.token)
    page.close()
    assert forward(ask, page.port, page.token)[0]["status"] == 503


def test_the_widget_has_no_secret(page):
    pytest.importorskip("anywidget", reason="pip install anywidget, to test the widget")
    widget = page.widget(height=700)
    state = widget.get_state()
    assert state["height"] == 700
    assert page.token not in str(state)
    sent, heard = [], threading.Event()

    def send(content, buffers):
        sent.append((content, buffers))
        heard.set()

    widget.send = send
    widget._handle_custom_msg({"id": 1, "method": "GET", "path": "/api/state", "body": None}, [])
    assert heard.wait(20)
    assert json.loads(sent[0][1][0])["n_items"] == 30
    widget.close()


def test_without_anywidget_the_remedy_is_told(page, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingPackage, match=r"pip install 'graphuq\[jupyter\]'"):
        page.widget()
