"""A page behind a proxy: passwords, logins, and attacks on them."""

import contextlib
import io
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time

import pytest

import graphuq as gq
from graphuq.cli.app import run
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling.accounts import COST, Accounts, remove_user, set_password
from graphuq.labelling.forecast import Forecasts
from graphuq.labelling.hosting import Hosting

pytest.importorskip("starlette.testclient", reason="pip install graphuq[dev], to test the page")
from starlette.testclient import TestClient

from graphuq.labelling import logins
from graphuq.labelling.application import PageOptions, hosted_application
from graphuq.labelling.guard import HEADERS
from graphuq.labelling.items import TextItems
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore

ORIGIN = "https://labels.example.org"
PASSWORD, OTHER = "correct horse battery", "another long password"
TRUE_COST = dict(COST)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module", autouse=True)
def quick_hashes():
    """Make passwords quick to try: slow hashes, two a page, would take most of the time here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COST, "n", 2**10)
        yield


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    path = tmp_path_factory.mktemp("accounts") / "users.json"
    set_password(path, "ada", PASSWORD)
    set_password(path, "bob", OTHER)
    return path


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    moons = gq.datasets.two_moons(40, n_features=2, noise_std=0.05)
    items = TextItems([f"text {row}" for row in range(40)])
    store = LabelStore(tmp_path_factory.mktemp("labels") / "labels.jsonl", items)
    opened = Session(items, Model(moons.features), store, {0: "a", 39: "b"}).start()
    opened.wait_until_current()
    yield opened
    opened.close()


def client_of(app):
    return TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})


def hosted(session, users, title="Page"):
    """Return the application of a page whose people log in."""
    options = PageOptions(title, "ada")
    return hosted_application(session, Hosting(users, ORIGIN), options, Forecasts(session))


@pytest.fixture
def stranger(session, users):
    app = hosted(session, users, HOSTILE)
    with client_of(app) as client:
        yield client


def log_in(client, name="ada", password=PASSWORD):
    return client.post("/login", json={"user": name, "password": password})


@pytest.fixture
def page(stranger):
    assert log_in(stranger).status_code == 200
    return stranger


def is_safe(answer):
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert answer.headers["strict-transport-security"]
    assert "Traceback" not in answer.text
    return answer.status_code


# ---- the file of users


def test_the_file_holds_salted_hashes_that_only_its_owner_reads(users):
    entries = json.loads(users.read_text())["users"]
    assert PASSWORD not in users.read_text()
    assert set(entries) == {"ada", "bob"}
    assert len({entry["salt"] for entry in entries.values()}) == 2
    if sys.platform != "win32":
        assert stat.S_IMODE(users.stat().st_mode) == 0o600
    known = Accounts(users)
    assert known.knows("ada", PASSWORD)
    assert not known.knows("ada", OTHER)
    assert not known.knows("ada", "")
    assert not known.knows("eve", PASSWORD)


def test_the_hash_is_that_of_rfc_7914(monkeypatch):
    """Section 12, third example: N = 1024, r = 8, p = 16."""
    from graphuq.labelling import accounts

    entry = {"salt": b"NaCl".hex(), "n": 1024, "r": 8, "p": 16}
    assert accounts._hashed("password", entry).startswith("fdbabe1c9d3472007856e7190d01e9fe")
    assert TRUE_COST["n"] * TRUE_COST["r"] * 128 >= 2**25  # bytes of memory for each try


def test_passwords_change_and_people_leave(tmp_path):
    path = tmp_path / "users.json"
    set_password(path, "ada", PASSWORD)
    known = Accounts(path)
    mark = known.mark_of("ada")
    set_password(path, "ada", OTHER)
    assert known.knows("ada", OTHER)
    assert not known.knows("ada", PASSWORD)
    assert known.mark_of("ada") != mark
    set_password(path, "bob", OTHER)
    remove_user(path, "ada")
    assert known.mark_of("ada") is None
    with pytest.raises(InvalidInput, match="no user 'ada'; use bob"):
        remove_user(path, "ada")


@pytest.mark.parametrize("password", ["", "short", "x" * 1001])
def test_poor_passwords_are_refused(tmp_path, password):
    with pytest.raises(InvalidInput, match="use 10 to 1000 characters"):
        set_password(tmp_path / "users.json", "ada", password)
    assert not (tmp_path / "users.json").exists()


@pytest.mark.parametrize("content", [
    "", "[]", "{}", '{"format": "graphuq users", "version": 1, "users": []}',
    '{"format": "graphuq users", "version": 1, "users": {"a": {}}}',
    '{"format": "graphuq users", "version": 1, "users": {"a": {"salt": "00", "hash": "00", '
    '"n": 2, "r": 1, "p": 1}}}',  # a hash that costs nothing
    "[" * 100_000,
])  # fmt: skip
def test_other_files_are_no_files_of_users(tmp_path, content):
    path = tmp_path / "users.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(StorageError, match="is not a file of users"):
        Accounts(path)
    with pytest.raises(StorageError, match="is not a file of users"):
        set_password(path, "ada", PASSWORD)
    assert path.read_text() == content


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_file_that_others_read_is_refused(tmp_path):
    path = tmp_path / "users.json"
    set_password(path, "ada", PASSWORD)
    path.chmod(0o640)
    with pytest.raises(StorageError, match=r"others can read .*; run: chmod 600"):
        Accounts(path)
    with pytest.raises(StorageError, match="cannot read"):
        Accounts(tmp_path / "nothing.json")


def test_users_from_the_command_line(tmp_path, monkeypatch, capsys):
    path = tmp_path / "users.json"
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    assert run(["label-user", str(path), "ada"]) == 0
    assert Accounts(path).knows("ada", PASSWORD)
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    assert run(["label-user", str(path), "ada"]) == 2
    assert "use 10 to 1000 characters" in capsys.readouterr().err
    assert run(["label-user", str(path), "ada", "--remove"]) == 0
    with pytest.raises(StorageError, match="has no user"):
        Accounts(path)


# ---- where the page is


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"origin": "http://labels.example.org"}, "has no TLS"),
        ({"origin": "labels.example.org"}, "give scheme and name"),
        ({"origin": "https://labels.example.org/path"}, "give scheme and name"),
        ({"origin": "https://a b"}, "give scheme and name"),
        ({"origin": "https://ada@evil.example"}, "give scheme and name"),
        ({"origin": ORIGIN, "host": "labels"}, "give an address"),
    ],
)
def test_places_that_are_refused(users, arguments, reason):
    with pytest.raises(InvalidInput, match=reason):
        Hosting(users, **arguments)
    Hosting(users, "http://labels.example.org", plain_http=True)


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "0.0.0.0"],
        ["--origin", ORIGIN],
        ["--plain-http"],
        ["--users", "{users}"],
        ["--users", "{users}", "--origin", "http://labels.example.org"],
        ["--users", "{users}", "--origin", ORIGIN, "--host", "example.org"],
        ["--users", "missing.json", "--origin", ORIGIN],
    ],
)
def test_the_command_refuses_a_page_for_others_without_passwords_or_tls(tmp_path, users, options):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "\n".join(f"{k * k % 7}.5,{k % 5}.5" for k in range(20)))
    given = [option.format(users=users) for option in options]
    assert run(["label", str(table), "-o", str(tmp_path / "out"), "--no-browser", *given]) == 2
    assert not (tmp_path / "out" / "labels.jsonl").exists()


# ---- logins


@pytest.mark.parametrize("path", [
    "/static/label.js", "/labels.csv", "/log.csv", "/readings.csv", "/predictions.csv", "/report",
    "/api/state", "/api/queue", "/api/card/3", "/api/alike/3", "/api/search?text=t", "/api/map",
    "/api/views?rows=1", "/api/guidelines", "/item/0/picture", "/nothing", "/login", "/logout",
])  # fmt: skip
def test_nothing_is_read_before_the_login(stranger, path):
    assert is_safe(stranger.get(path)) in ((405,) if path == "/login" else (403,))
    welcome = stranger.get("/")
    assert is_safe(welcome) == 200
    assert "text 1" not in welcome.text
    assert "Log in" in welcome.text
    assert "<script>alert" not in welcome.text


@pytest.mark.parametrize("act", [
    "label", "undo", "skip", "wish", "note", "flag", "audit", "end_audit", "accuracies",
])  # fmt: skip
def test_nothing_is_changed_before_the_login(stranger, session, act):
    before = list(session.store.records)
    body = {"rows": [5], "label": "x", "text": "x", "on": True, "n": 5, "user": "ada"}
    assert is_safe(stranger.post(f"/api/{act}", json=body)) == 403
    assert session.store.records == before


def test_a_login_opens_the_page_under_its_own_name(page, session):
    assert "<b>ada</b>" in page.get("/").text
    assert is_safe(page.get("/api/queue", params={"user": "ada"})) == 200
    for answer in (
        page.get("/api/queue", params={"user": "bob"}),
        page.get("/api/state", params={"user": "bob", "after": "-1"}),
        page.post("/api/label", json={"rows": [5], "label": "a", "user": "bob"}),
        page.post("/api/undo", json={"user": "bob"}),
        page.post("/api/audit", json={"n": 5, "user": "bob"}),
    ):
        assert is_safe(answer) == 400
        assert "log in as bob" in answer.json()["error"]
    assert page.post("/api/label", json={"rows": [5], "label": "a"}).status_code == 200
    assert session.store.records[-1].user == "ada"
    assert page.post("/api/undo", json={}).json()["rows"] == [5]


def test_the_cookie_is_for_this_host_and_tls_alone(stranger):
    cookie = log_in(stranger).headers["set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-graphuq=")
    assert set(attributes) == {"HttpOnly", "Path=/", "SameSite=Strict", "Max-Age=43200", "Secure"}
    assert log_in(stranger).headers["set-cookie"] != cookie


def test_log_out_ends_a_login(page):
    kept = page.cookies["__Host-graphuq"]
    assert is_safe(page.post("/logout", json={})) == 200
    assert page.get("/api/queue", headers={"Cookie": f"__Host-graphuq={kept}"}).status_code == 403


def test_logins_end_when_idle_and_when_the_password_changes(session, tmp_path, monkeypatch):
    path = tmp_path / "users.json"
    set_password(path, "ada", PASSWORD)
    app = hosted(session, path)
    with client_of(app) as client:
        log_in(client)
        assert client.get("/api/queue").status_code == 200
        set_password(path, "ada", OTHER)
        assert client.get("/api/queue").status_code == 403
        assert log_in(client).status_code == 401
        log_in(client, password=OTHER)
        assert client.get("/api/queue").status_code == 200
        monkeypatch.setattr(logins, "IDLE_S", -1.0)
        assert client.get("/api/queue").status_code == 403


def test_nobody_is_let_in_while_the_file_of_users_cannot_be_read(session, tmp_path):
    path = tmp_path / "users.json"
    set_password(path, "ada", PASSWORD)
    app = hosted(session, path)
    with client_of(app) as client:
        log_in(client)
        assert client.get("/api/queue").status_code == 200
        path.write_text("{}")
        assert is_safe(client.get("/api/queue")) == 403
        path.unlink()
        answer = log_in(client)
        assert is_safe(answer) == 401
        assert str(path) not in answer.text
        assert is_safe(client.get("/")) == 200


TRIES = [
    {"user": "ada", "password": OTHER},
    {"user": "ada", "password": ""},
    {"user": "ada", "password": PASSWORD + " "},
    {"user": "ADA", "password": PASSWORD},
    {"user": "eve", "password": PASSWORD},
    {"user": "", "password": PASSWORD},
    {"user": "__proto__", "password": PASSWORD},
    {"user": "ada\x00", "password": PASSWORD},
    {"user": "x" * 100_000, "password": PASSWORD},
    {"user": "ada", "password": "x" * 900_000},
    {"user": "ada", "password": "\ud800"},
    {"user": "' OR 1=1 --", "password": "' OR 1=1 --"},
]


@pytest.mark.parametrize("body", TRIES, ids=lambda body: repr(body)[:45])
def test_wrong_logins_are_refused_in_the_same_words(stranger, body):
    answer = stranger.post("/login", content=json.dumps(body).encode(),
                           headers={"Content-Type": "application/json"})  # fmt: skip
    assert is_safe(answer) == 401
    assert answer.json() == {"error": "Name or password is wrong."}
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b'"text"', b"{", b"{}", b'{"user": "ada"}', b'{"password": "x"}',
    b'{"user": ["ada"], "password": {"$ne": 1}}', b'{"user": "ada", "password": 1}',
    b"[" * 100_000, b"\xff", b'{"user": null, "password": null}',
])  # fmt: skip
def test_unusable_logins_are_refused(stranger, body):
    answer = stranger.post("/login", content=body, headers={"Content-Type": "application/json"})
    assert is_safe(answer) in (400, 411)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "http://labels.example.org"},
    {"Origin": "https://labels.example.org.evil.example"}, {"Origin": "null"}, {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    {"Content-Type": "text/plain"}, {"Content-Length": "2000000"},
    {"Transfer-Encoding": "chunked"}, {"Host": "evil.example"}, {"Host": "127.0.0.1"},
    {"Host": "labels.example.org:444"}, {"Host": ""},
    {"Host": "evil.example", "X-Forwarded-Host": "labels.example.org"},
    {"Host": "evil.example", "Forwarded": "host=labels.example.org"},
])  # fmt: skip
@pytest.mark.parametrize("path", ["/login", "/api/label", "/logout"])
def test_requests_of_other_sites_and_hosts_are_refused(page, session, headers, path):
    before = list(session.store.records)
    body = {"rows": [5], "label": "x", "user": "ada", "password": PASSWORD}
    assert is_safe(page.post(path, json=body, headers=headers)) in (400, 403, 411, 413, 415, 421)
    assert session.store.records == before
    assert page.get("/api/queue").status_code == 200  # nobody was logged out


@pytest.mark.parametrize("cookie", [
    "__Host-graphuq=", "__Host-graphuq=x", "__Host-graphuq=ada", "__host-graphuq={token}",
    "graphuq={token}", "graphuq-login={token}", "__Host-graphuq={token}x",
    "x=__Host-graphuq={token}",
])  # fmt: skip
def test_other_cookies_are_no_login(page, cookie):
    token = page.cookies["__Host-graphuq"]
    page.cookies.clear()
    found = page.get("/api/queue", headers={"Cookie": cookie.format(token=token)})
    assert is_safe(found) == 403


def test_many_wrong_passwords_must_wait(stranger, monkeypatch):
    for _ in range(logins.MAX_TRIES):
        assert log_in(stranger, password="wrong").status_code == 401
    assert log_in(stranger).status_code == 429  # the right one, too
    assert log_in(stranger, "bob", OTHER).status_code == 200  # and nobody else
    monkeypatch.setattr(logins, "PAUSE_S", 0.0)
    assert log_in(stranger).status_code == 200
    assert log_in(stranger, password="wrong").status_code == 401  # counted from none again


def test_wrong_passwords_at_the_same_time_are_counted(session, users):
    """More tries at once than are allowed do not get through before the first one is answered."""
    app = hosted(session, users)
    found = []
    with client_of(app) as client:
        threads = [
            threading.Thread(target=lambda: found.append(log_in(client, password="no").status_code))
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert set(found) == {401, 429}
    assert found.count(401) <= logins.MAX_TRIES


def test_names_and_logins_that_are_kept_are_limited(stranger, monkeypatch):
    monkeypatch.setattr(logins, "MAX_LOGINS", 2)
    log_in(stranger)
    first = stranger.cookies["__Host-graphuq"]
    for _ in range(2):
        log_in(stranger)
    answer = stranger.get("/api/queue", headers={"Cookie": f"__Host-graphuq={first}"})
    assert answer.status_code in (200, 403)
    stranger.cookies.clear()
    found = stranger.get("/api/queue", headers={"Cookie": f"__Host-graphuq={first}"})
    assert found.status_code == 403


def test_a_page_is_served_for_people_who_log_in(users, tmp_path):
    import httpx2

    moons = gq.datasets.two_moons(40, n_features=2, noise_std=0.05)
    hosting = Hosting(users, "http://labels.example.org", plain_http=True)
    with gq.label(moons.features, labels=tmp_path / "labels.jsonl", open_browser=False,
                  hosting=hosting) as page:  # fmt: skip
        assert page.address == "http://labels.example.org/"
        headers = {"Host": "labels.example.org", "Origin": "http://labels.example.org"}
        with httpx2.Client(base_url=page.origin, headers=headers) as client:
            assert "Log in" in client.get("/").text
            assert client.get("/api/queue").status_code == 403
            body = {"user": "ada", "password": PASSWORD}
            cookie = client.post("/login", json=body).headers["set-cookie"]
            assert "Secure" not in cookie
            kept = {"Cookie": cookie.partition(";")[0]}
            assert client.get("/api/queue", headers=kept).status_code == 200
            local = client.get(f"/?token={page.token}", headers={"Host": "127.0.0.1"})
            assert local.status_code == 421
        with pytest.raises(InvalidInput, match="hosting: given beside a widget"):
            page.widget()
    os.remove(tmp_path / "labels.jsonl")
    with pytest.raises(StorageError, match="cannot read"):
        gq.label(moons.features, labels=tmp_path / "labels.jsonl", open_browser=False,
                 hosting=Hosting(tmp_path / "none.json", ORIGIN))  # fmt: skip
    assert not (tmp_path / "labels.jsonl").exists()


class TlsProxy:
    """Takes the TLS of a browser off, and passes all bytes on, as a proxy before the page does."""

    def __init__(self, folder):
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
             "-days", "2", "-keyout", str(key), "-out", str(certificate)],
            capture_output=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.behind = self._listener.getsockname()[1], 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        with contextlib.ExitStack() as stack:
            stack.enter_context(plain)
            try:
                outer = stack.enter_context(self._context.wrap_socket(plain, server_side=True))
                inner = stack.enter_context(socket.create_connection(("127.0.0.1", self.behind)))
            except OSError:
                return
            back = threading.Thread(target=self._pass_on, args=(inner, outer), daemon=True)
            back.start()
            self._pass_on(outer, inner)
            back.join(20)

    @staticmethod
    def _pass_on(source, sink):
        with contextlib.suppress(OSError):
            while part := source.recv(65_536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self._listener.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_the_page_behind_tls_in_a_browser(browser, users, tmp_path):
    """A browser takes the cookie through TLS, labels, loads the page again, and logs out."""
    proxy = TlsProxy(tmp_path)
    origin = f"https://127.0.0.1:{proxy.port}"
    moons = gq.datasets.two_moons(40, n_features=2, noise_std=0.05)
    with gq.label(moons.features, labels=tmp_path / "labels.jsonl", open_browser=False,
                  hosting=Hosting(users, origin), classes=["a", "b"]) as page:  # fmt: skip
        proxy.behind = page.port
        context = browser.new_context(ignore_https_errors=True)
        tab = context.new_page()
        tab.set_default_timeout(60_000)
        tab.goto(page.address)
        tab.fill("#name", "ada")
        tab.fill("#password", PASSWORD)
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#classes button")
        (cookie,) = context.cookies()
        assert cookie["name"] == "__Host-graphuq"
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        assert tab.evaluate("document.cookie") == ""
        named = "() => !['', 'Item'].includes(document.getElementById('item-name').textContent)"
        tab.wait_for_function(named)
        tab.keyboard.press("a")  # a class of one letter has that key
        until = time.monotonic() + 20
        while not page.session.store.records and time.monotonic() < until:
            time.sleep(0.05)
        assert [(r.user, r.label) for r in page.session.store.records] == [("ada", "a")]
        tab.reload()
        tab.wait_for_function(named)
        tab.click("#log-out")
        tab.wait_for_selector("#login")
        assert context.request.get(f"{origin}/api/queue").status == 403
        context.close()
    proxy.close()
