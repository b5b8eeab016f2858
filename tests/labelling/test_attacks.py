"""Attacks on a running page: what is refused, in words, and always with the headers of safety."""

import io
import json
import socket
import threading
import time

import pandas as pd
import pytest

import graphuq as gq

pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
from graphuq.labelling import connections
from graphuq.labelling.address import path_of
from graphuq.labelling.guard import HEADERS
from graphuq.utils.spreadsheets import FORMULA, marked, unmarked

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    moons = gq.datasets.two_moons(40, n_features=2, noise_std=0.05)
    folder = tmp_path_factory.mktemp("attacks")
    texts, y = [f"text {row}" for row in range(40)], ["a", *[""] * 38, "b"]
    options = {"labels": folder / "labels.jsonl", "open_browser": False, "user": "ada"}
    with gq.label(moons.features, texts, y=y, **options) as opened:
        opened.session.wait_until_current()
        yield opened


def connect(page):
    found = socket.create_connection(("127.0.0.1", page.port), timeout=20)
    found.settimeout(20)
    return found


def answer_of(connection):
    """Return status, headers and content of an answer; status 0 if the connection was closed."""
    content = b""
    try:
        while part := connection.recv(65_536):
            content += part
    except ConnectionResetError:
        pass
    if not content:
        return 0, {}, b""
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


def raw(page, content, ends=False):
    """Send bytes as they are, and return the answer; nothing more comes if it ends."""
    with connect(page) as connection:
        try:
            connection.sendall(content)
            if ends:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the page ended it
        return answer_of(connection)


def request(page, method="GET", path="/api/state", body=b"", cookie=True, **headers):
    """Return the answer to a request as the page sends it, apart from what is given."""
    given = {
        "Host": f"127.0.0.1:{page.port}",
        "Origin": page.origin,
        "Cookie": f"graphuq={page.token}" if cookie else "",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)) if body else None,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
    base = "" if path.startswith("!") else path_of(page.token)
    first = f"{method} {base}{path.removeprefix('!')} HTTP/1.1"
    head = "\r\n".join([first, "Connection: close", *lines, "", ""])
    return raw(page, head.encode("latin-1") + body)


def label(page, **body):
    content = json.dumps({"rows": [5], "label": "a", **body}).encode()
    return request(page, "POST", "/api/label", content)


def is_safe(answer):
    """Whether an answer has all headers of safety, and tells nothing of the program."""
    status, headers, body = answer
    assert {name.lower(): headers.get(name.lower()) for name in HEADERS} == {
        name.lower(): value for name, value in HEADERS.items()
    }
    assert b"Traceback" not in body
    assert b".py" not in body
    assert "server" not in headers
    return status


@pytest.fixture
def untouched(page):
    """Nothing that the test does may change labels."""
    before = page.session.store.labels()
    yield
    assert page.session.store.labels() == before
    assert is_safe(request(page)) == 200  # the page is still there


pytestmark = pytest.mark.usefixtures("untouched")

METHODS = ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "PROPFIND", "post", "\x7f", "G E T")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ["/api/label", "/api/state"])
def test_other_methods_are_refused(page, method, path):
    assert is_safe(request(page, method, path, b'{"rows": [5], "label": "x"}')) in (400, 405)


def test_connect_and_absolute_targets_lead_nowhere(page):
    host = f"Host: 127.0.0.1:{page.port}\r\nConnection: close\r\n\r\n"
    for first in ("CONNECT example.com:443", "GET http://example.com/", "GET *", "GET //evil/"):
        assert is_safe(raw(page, f"{first} HTTP/1.1\r\n{host}".encode())) in (400, 403, 404, 405)


PATHS = [
    "/static/../server.py",
    "/static/..%2fserver.py",
    "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/static/..%5cserver.py",
    "/static/label.js%00.css",
    "/static//etc/passwd",
    "/static/label.html",
    "/static/%ff",
    "/item/0/picture/../../../etc/passwd",
    "/item/-1/picture",
    "/item/40/picture",
    "/item/1e3/picture",
    "/item/٣/picture",
    "/item/" + "9" * 5000 + "/picture",
    "/api/card/" + "9" * 5000,
    "/api/card/--5",
    "/api/card/0x1",
    "/api/card/1_0",
    "/api/alike/99999999999999999999",
    "/api/card/",
    "/api/../labels.csv",
    "/" + "a" * 8000,
    "/api/nothing",
    "/openapi.json",
    "/docs",
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_no_path_leads_elsewhere(page, path):
    answer = request(page, path=path.encode().decode("latin-1"))
    assert is_safe(answer) in (400, 404, 500)
    if answer[0] == 500:  # an item has no picture
        assert "picture" in json.loads(answer[2])["error"]


@pytest.mark.parametrize("path", ["/", "/labels.csv", "/predictions.csv", "/api/map", "/api/queue"])
def test_the_path_alone_opens_nothing(page, path):
    assert is_safe(request(page, path=path, cookie=False)) == 403
    assert is_safe(request(page, path=f"!{path}")) == (403 if path == "/" else 404) or path == "/"
    assert is_safe(request(page, path=f"!/{'0' * 32}{path}")) == 404


QUERIES = [
    "queue?n=--5",
    "queue?n=-1",
    "queue?n=101",
    "queue?n=1e2",
    "queue?n=" + "9" * 5000,
    "queue?n=%D9%A5",
    "queue?n=NaN",
    "queue?n=",
    "queue?n=5%00",
    "state?after=--1",
    "state?after=" + "1" * 400,
    "queue?user=" + "x" * 101,
    "queue?user=%00",
    "queue?user=a%0d%0aSet-Cookie:a=b",
    "queue?user=%E2%80%AEada",
    "queue?user=%20",
    "search?state=everything",
    "search?order=%00",
    "search?least=-1",
    "search?least=1e-9",
    "search?least=2",
    "search?least=NaN",
    "search?least=.5",
    "search?least=0.9&most=0.1",
    "search?most=" + "9" * 400,
    "views?rows=",
    "views?rows=40",
    "views?rows=-1",
    "views?rows=1,,2",
    "views?rows=1;2",
    "views?rows=" + ",".join(["1"] * 201),
    "views?rows=" + "9" * 400,
    "views?rows=../../etc/passwd",
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:30])
def test_unusable_questions_are_refused_with_a_reason(page, query):
    answer = request(page, path=f"/api/{query}".encode().decode("latin-1"))
    assert is_safe(answer) == 400
    assert ";" in json.loads(answer[2])["error"]
    assert "set-cookie" not in answer[1]


def test_unusual_questions_are_answered(page):
    for query in (
        "queue?n=0",
        "queue?held=" + ",".join(["9" * 5000, "-", "x", "1"]),
        "queue?tab=" + "x" * 9000,
        "search?text=" + "%F0%9F%98%80" * 500,
        "search?text=%FF%FE",
        "alike/3?label=" + "y" * 5000,
        "state?user=ada&user=bob",
    ):
        assert is_safe(request(page, path=f"/api/{query}")) == 200
    assert json.loads(request(page, path="/api/queue?n=0")[2]) == []


HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "127.0.0.1:80@evil.example",
    "127.0.0.1:port",
    "127.0.0.1:999999",
    "localhost.",
    "0.0.0.0",
    "127.1",
    "[::ffff:127.0.0.1]",
    "",
    "127.0.0.1, evil.example",
]


@pytest.mark.parametrize("host", HOSTS)
def test_other_names_of_the_host_are_refused(page, host):
    assert is_safe(request(page, Host=host)) in (400, 421)


def test_a_request_needs_one_host(page):
    path, cookie = path_of(page.token), f"Cookie: graphuq={page.token}\r\n"
    none = f"GET {path}/api/state HTTP/1.0\r\n{cookie}\r\n"
    two = f"GET {path}/api/state HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n{cookie}\r\n"
    assert is_safe(raw(page, none.encode())) in (400, 421)
    assert is_safe(raw(page, two.encode())) in (400, 421)


COOKIES = [
    "graphuq=",
    "graphuq=wrong",
    "GRAPHUQ={token}",
    "graphuq2={token}",
    "graphuq={token}x",
    'graphuq="{token}',
    "x=graphuq={token}",
    "; ; ;=",
    "\xe9\xff",
]


@pytest.mark.parametrize("cookie", COOKIES)
def test_other_cookies_open_nothing(page, cookie):
    assert is_safe(request(page, Cookie=cookie.format(token=page.token))) == 403


def test_a_cookie_that_another_port_set_locks_nobody_out(page):
    own = f"graphuq={page.token}"
    assert is_safe(request(page, Cookie=f"graphuq=evil; {own}")) == 200
    assert is_safe(request(page, Cookie=f"{own}; graphuq=evil; a")) == 200


def test_the_cookie_is_for_no_other_port(page):
    """Browsers send a cookie to all ports of a host, but only to paths below its own."""
    _, headers, _ = request(page, path=f"!/?token={page.token}", cookie=False)
    name, value, *attributes = [part.strip() for part in headers["set-cookie"].split(";")]
    assert f"Path={path_of(page.token)}" in [name, value, *attributes]
    assert page.token not in path_of(page.token)
    assert len(path_of(page.token)) > 30
    again = request(page, path=f"!/?token={page.token}x", cookie=False)
    assert "set-cookie" not in again[1]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {"Content_Type": "application/jsonp"},
        {"Content_Type": None},
        {"Content_Length": None},
        {"Content_Length": "-5"},
        {"Content_Length": "+30"},
        {"Content_Length": "30, 31"},
        {"Content_Length": "\xb2\xb3"},
        {"Content_Length": "9" * 400},
        {"Content_Length": "1000001"},
        {"Transfer_Encoding": "chunked"},
        {"Transfer_Encoding": "gzip, chunked"},
        {"Transfer_Encoding": "identity"},
        {"Expect": "100-continue", "Content_Length": "1000001"},
        {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": "http://evil.example"},
        {"X_Bad": "a\rb"},
    ],
    ids=lambda headers: str(headers)[:50],
)
def test_changes_with_other_headers_are_refused(page, headers):
    given = {
        name: value if value is None else value.replace("{port}", str(page.port))
        for name, value in headers.items()
    }
    answer = request(page, "POST", "/api/label", b'{"rows": [5], "label": "x"}', **given)
    assert is_safe(answer) in (400, 403, 411, 413, 415)


def test_a_chunked_body_does_not_pass_the_limit(page):
    """With a length that is a lie, too; the server then reads the chunks."""
    chunks = b"".join(b"10000\r\n" + b" " * 0x10000 + b"\r\n" for _ in range(40)) + b"0\r\n\r\n"
    for length in (None, "20"):
        found = request(page, "POST", "/api/label", chunks, Transfer_Encoding="chunked",
                        Content_Length=length)  # fmt: skip
        assert is_safe(found) in (400, 411)


def test_a_second_request_in_the_body_is_not_read(page):
    inner = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for size in (0, 5):
        status, _, body = request(
            page, "POST", "/api/label", b"0\r\n\r\n" + inner,
            Content_Length=str(size), Transfer_Encoding="chunked",
        )  # fmt: skip
        assert status in (400, 411)
        assert body.count(b"HTTP/1.1") == 0


BODIES = {
    "nested lists": b"[" * 100_000 + b"]" * 100_000,
    "nested objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "nested rows": b'{"label": "a", "rows": ' + b"[" * 900 + b"]" * 900 + b"}",
    "nested user": b'{"label": "a", "rows": [5], "user": ' + b"[" * 900 + b"]" * 900 + b"}",
    "nested version": b'{"label": "a", "rows": [5], "version": ' + b"[" * 900 + b"]" * 900 + b"}",
    "an endless number": b'{"label": "a", "rows": [' + b"9" * 5000 + b"]}",
    "a long number": b'{"label": "a", "rows": [' + b"9" * 4000 + b"]}",
    "a version that no page has": b'{"label": "a", "rows": [5], "version": 9007199254740993}',
    "a long version": b'{"label": "a", "rows": [5], "version": ' + b"9" * 4000 + b"}",
    "a negative version": b'{"label": "a", "rows": [5], "version": -1}',
    "a version with a point": b'{"label": "a", "rows": [5], "version": 1.5}',
    "NaN": b'{"label": "a", "rows": [5], "probabilities": [NaN]}',
    "infinity": b'{"label": "a", "rows": [5], "probabilities": [1e999]}',
    "a boolean": b'{"label": "a", "rows": [5], "probabilities": [true]}',
    "too many probabilities": b'{"label": "a", "rows": [5], "probabilities": [0.1, 0.2]}',
    "row 5.0": b'{"label": "a", "rows": [5.0]}',
    "no row": b'{"label": "a", "rows": []}',
    "many rows": b'{"label": "a", "rows": [' + b"5," * 100_000 + b"5]}",
    "half a surrogate": b'{"label": "\\ud800", "rows": [5]}',
    "a zero byte": b'{"label": "a\\u0000", "rows": [5]}',
    "another direction": b'{"label": "\\u202ea", "rows": [5]}',
    "no width": b'{"label": "a\\u200b", "rows": [5]}',
    "a line end": b'{"label": "a\\nb", "rows": [5]}',
    "an object as class": b'{"label": {"$ne": 1}, "rows": [5]}',
    "UTF-16": '{"label": "a", "rows": [40]}'.encode("utf-16"),
    "not UTF-8": b'{"label": "\xff", "rows": [5]}',
    "two values": b'{"label": "a", "rows": [5]}{}',
    "a comment": b'{"label": "a", "rows": [5]}//',
    "a script": b"alert(1)",
    "a text": b'"text"',
    "null": b"null",
    "a form": b"rows=5&label=a",
    "compressed": b"\x1f\x8b\x08\x00\x00",
    "zeros": b"\x00" * 1000,
    "spaces": b" " * 999_999,
    "an unknown kind": b'{"label": "a", "rows": [5], "kind": "audit"}',
    "a kind that is no text": b'{"label": "a", "rows": [5], "kind": ["label"]}',
}
REMARKS = {
    "note": [
        b"{}", b'{"rows": [5]}', b'{"rows": [5], "text": 1}', b'{"rows": [5, 6], "text": "a"}',
        b'{"rows": [40], "text": "a"}', b'{"rows": [], "text": "a"}',
        b'{"rows": [5], "text": "a\\u0000"}', b'{"rows": [5], "text": "\\u202ea"}',
        b'{"rows": [5], "text": "' + b"x" * 2001 + b'"}', b'{"rows": [5], "text": ["a"]}',
    ],
    "flag": [
        b"{}", b'{"rows": [5]}', b'{"rows": [5], "on": 1}', b'{"rows": [5], "on": "true"}',
        b'{"rows": [5, 6], "on": true}', b'{"rows": [-1], "on": true}', b'{"rows": 5, "on": true}',
    ],
    "audit": [
        b"{}", b'{"n": 0}', b'{"n": -5}', b'{"n": 1001}', b'{"n": 1.5}', b'{"n": "5"}',
        b'{"n": true}', b'{"n": ' + b"9" * 4000 + b"}", b'{"n": null}', b'{"n": [5]}', b'{"n": 5}x',
    ],
    "end_audit": [b"[]", b'{"user": "\\u0000"}'],
    "accuracies": [b"[]", b'{"user": 5}'],
}  # fmt: skip


UNUSABLE = [
    (name, act)
    for name, body in BODIES.items()
    for act in ("label", "skip", "wish")
    if act == "label" or b'"rows": [5]' not in body  # to skip or wish needs no more than rows
]


@pytest.mark.parametrize(("name", "act"), UNUSABLE)
def test_unusable_bodies_are_refused_with_a_reason(page, name, act):
    answer = request(page, "POST", f"/api/{act}", BODIES[name])
    assert is_safe(answer) == 400
    assert ";" in json.loads(answer[2])["error"]


@pytest.mark.parametrize(("act", "body"), [(a, b) for a, all in REMARKS.items() for b in all])
def test_unusable_remarks_and_audits_are_refused(page, act, body):
    before = len(page.session.store.records)
    answer = request(page, "POST", f"/api/{act}", body)
    assert is_safe(answer) == 400
    assert ";" in json.loads(answer[2])["error"]
    assert len(page.session.store.records) == before


@pytest.mark.parametrize("act", ["note", "flag", "audit", "end_audit", "accuracies"])
def test_new_changes_need_the_page_and_the_cookie(page, act):
    body, before = (
        b'{"rows": [5], "text": "x", "on": true, "n": 5}',
        len(page.session.store.records),
    )
    assert is_safe(request(page, "POST", f"/api/{act}", body, cookie=False)) == 403
    assert is_safe(request(page, "POST", f"/api/{act}", body, Origin="http://evil.example")) == 403
    assert is_safe(request(page, "POST", f"/api/{act}", body, Content_Type="text/plain")) == 415
    assert is_safe(request(page, path=f"/api/{act}")) == 405
    assert len(page.session.store.records) == before


@pytest.mark.parametrize("path", ["/report", "/log.csv", "/readings.csv", "/api/guidelines"])
def test_new_answers_need_the_cookie_and_run_nothing(page, path):
    assert is_safe(request(page, path=path, cookie=False)) == 403
    note = json.dumps({"rows": [5], "text": HOSTILE, "user": HOSTILE}).encode()
    assert is_safe(request(page, "POST", "/api/note", note)) == 200
    assert is_safe(label(page, label=HOSTILE, user=HOSTILE)) == 200
    status, headers, body = answer = request(page, path=path)
    assert is_safe(answer) == status == 200
    if headers["content-type"].startswith("text/html"):
        assert b"<script" not in body
    undo = json.dumps({"user": HOSTILE}).encode()
    assert json.loads(request(page, "POST", "/api/undo", undo)[2])["rows"] == [5]


def test_cells_of_the_log_are_no_formulas(page):
    note = json.dumps({"rows": [5], "text": "=cmd|' /C calc'!A0"}).encode()
    assert is_safe(request(page, "POST", "/api/note", note)) == 200
    table = pd.read_csv(io.BytesIO(request(page, path="/log.csv")[2]), dtype=str)
    assert table["text"].tolist()[-1] == "'=cmd|' /C calc'!A0"


def test_odd_names_of_classes_come_back_as_they_are(page):
    names = ["__proto__", "constructor", HOSTILE, "=1+1", "e\u0301", "日本", "'", '"', "\\", "100"]
    for name in names:
        assert is_safe(label(page, label=name, user="odd")) == 200
    shown = [c["name"] for c in json.loads(request(page)[2])["classes"]]
    assert names[-1] in shown
    for _ in names:
        assert is_safe(request(page, "POST", "/api/undo", b'{"user": "odd"}')) == 200
    assert json.loads(request(page, "POST", "/api/undo", b'{"user": "odd"}')[2])["rows"] == []


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "＝1", "-1.5"])
def test_cells_are_no_formulas(page, name):
    label(page, label=name)
    text = request(page, path="/labels.csv")[2].decode()
    request(page, "POST", "/api/undo", b"{}")
    cell = pd.read_csv(io.StringIO(text), dtype=str)["label"].tolist()[1]
    assert unmarked(cell) == name
    assert cell.startswith(FORMULA) == (name == "-1.5")
    assert marked(cell) != cell or not cell.startswith("'") or unmarked(cell) == name


@pytest.mark.parametrize("content", [
    b"", b"\r\n" * 100, b"GET", b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 5000,
    b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /\r\n\r\n",
    b"GET " + b"/" * 200_000 + b" HTTP/1.1\r\n\r\n", b"SSH-2.0-OpenSSH\r\n",
])  # fmt: skip
def test_what_is_no_request_is_refused(page, content):
    answer = raw(page, content, ends=True)
    assert answer[0] == 0 or is_safe(answer) in (400, 403, 404, 421)


def test_a_web_socket_is_not_opened(page):
    answer = request(page, Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13",
                     Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip
    assert is_safe(answer) == 200  # the ordinary answer


def test_half_open_connections_do_not_block_the_page(page):
    """More of them than a process may have files."""
    opened = []
    try:
        for _ in range(1100):
            opened.append(connect(page))
            opened[-1].sendall(b"GET / HTTP/1.1\r\nHost:")
        began = time.monotonic()
        assert is_safe(request(page)) == 200
        assert time.monotonic() - began < 5
        n = len(page._server.server_state.connections)
        assert n <= connections.MAX_CONNECTIONS + 1
    finally:
        for connection in opened:
            connection.close()


@pytest.mark.parametrize(
    "begin",
    [b"", b"G", b"POST /api/label HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"],
    ids=["nothing", "a letter", "a body"],
)
def test_a_request_that_never_ends_is_ended(page, monkeypatch, begin):
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    with connect(page) as connection:
        began = time.monotonic()
        try:
            connection.sendall(begin)
            while time.monotonic() - began < 15:
                time.sleep(0.1)
                connection.sendall(b"x")  # a byte now and then buys no time
        except OSError:
            pass
        assert 0.3 < time.monotonic() - began < 10


def test_a_client_that_does_not_read_is_ended(page, monkeypatch):
    monkeypatch.setattr(connections, "RESPONSE_S", 0.5)
    path = path_of(page.token)
    head = (f"GET {path}/static/label.js HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n"
            f"Cookie: graphuq={page.token}\r\n\r\n").encode()  # fmt: skip
    with connect(page) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(120)  # of a busy machine
        with pytest.raises(ConnectionError):
            connection.sendall(head * 100_000)


def test_labels_and_undos_of_many_people_at_once(page):
    """Each person labels and takes back in turn; the file holds each act, whole and in order."""
    failures = []

    def work(user):
        for k in range(6):
            if label(page, user=user, rows=[6 + k], label=f"{user} {k}")[0] != 200:
                failures.append((user, k))
        for _ in range(6):
            if request(page, "POST", "/api/undo", json.dumps({"user": user}).encode())[0] != 200:
                failures.append(user)

    before = len(page.session.store.records)
    threads = [threading.Thread(target=work, args=(f"person {i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    records = page.session.store.records[before:]
    assert len(records) == 8 * 12
    for i in range(8):
        own = [r.label for r in records if r.user == f"person {i}"]
        assert own == [f"person {i} {k}" for k in range(6)] + [None] * 6


def test_questions_at_once_are_all_answered(page):
    found = []
    paths = ["/api/state", "/api/queue", "/api/map", "/labels.csv", "/api/card/3", "/"] * 8
    threads = [
        threading.Thread(target=lambda path=path: found.append(request(page, path=path)[0]))
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * len(paths)


def test_a_hundred_requests_in_one_connection(page):
    path = path_of(page.token)
    one = (f"GET {path}/api/card/3 HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n"
           f"Cookie: graphuq={page.token}\r\n")  # fmt: skip
    last = f"{one}Connection: close\r\n\r\n"
    with connect(page) as connection:
        connection.sendall((f"{one}\r\n" * 99 + last).encode())
        _, _, body = answer_of(connection)
    assert body.count(b"HTTP/1.1 200 OK") == 99


def test_connections_that_break_off_leave_no_trace(page):
    for _ in range(50):
        connection = connect(page)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.sendall(b"POST /api/label HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n")
        connection.close()
    assert is_safe(request(page)) == 200


def test_names_of_files_that_are_no_text_are_shown(tmp_path):
    """A file name of any bytes, and one that a spreadsheet would run."""
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in (b"\xff.png", b"=1.png", b"plain.png"):
        try:
            with open(bytes(folder) + b"/" + name, "wb") as file:
                Image.new("L", (4, 4), 9).save(file, "PNG")
        except OSError:
            pytest.skip("this system has text as names of files")
    X = gq.datasets.two_moons(3, n_features=2).features
    with gq.label(X, sorted(folder.iterdir()), labels=tmp_path / "labels.jsonl",
                  open_browser=False) as page:  # fmt: skip
        page.session.wait_until_current()
        cards = json.loads(request(page, path="/api/queue")[2])
        assert len(cards) == 3
        body = json.dumps({"rows": [0, 1, 2], "label": "a"}).encode()
        assert request(page, "POST", "/api/label", body)[0] == 200
        table = request(page, path="/labels.csv")[2]
        assert b"\xff.png" in table
        assert b"\n'=1.png" in table
        assert request(page, path="/predictions.csv")[0] == 200
