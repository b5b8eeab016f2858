"""Random requests to the page: an answer in words, and never a fault of the server.

``GRAPHUQ_FUZZ`` sets the largest number of requests of the slow test, and ``GRAPHUQ_FUZZ_SECONDS``
its time.
"""

import asyncio
import itertools
import json
import os
import sys
import time
import urllib.parse

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="pip install graphuq[label], to test the page")
from graphuq.errors import MAX_MESSAGE
from graphuq.labelling.application import PageOptions, _routes
from graphuq.labelling.forecast import Forecasts

FEW, MANY = 60, int(os.environ.get("GRAPHUQ_FUZZ", "3000"))
SECONDS = float(os.environ.get("GRAPHUQ_FUZZ_SECONDS", "20"))
ROUND = 100  # examples of one seed
ACTS = ("label", "undo", "skip", "wish", "note", "flag", "audit", "end_audit")
PAGES = ("queue", "card/{n}", "alike/{n}", "search", "views", "map", "state", "guidelines")
TEXTS = st.one_of(
    st.sampled_from(["ada", "bob", "cat", "dog", "label", "blind", "decision", "note", "", "=1+1",
                     "\ud800", "a\0", "x" * 3000, "label:cat", '"', "-1", "1e9", "nan"]),
    st.text(max_size=12),
)  # fmt: skip
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(-2, 70), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
ROWS = st.lists(st.integers(-1, 60), max_size=3)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "rows": st.one_of(ROWS, ROWS, VALUES),
        "label": st.one_of(TEXTS, VALUES),
        "probabilities": st.one_of(st.lists(st.floats(0, 1), max_size=3), VALUES),
        "version": VALUES,
        "kind": st.one_of(TEXTS, VALUES),
        "text": st.one_of(TEXTS, VALUES),
        "on": VALUES,
        "n": VALUES,
        "user": st.one_of(TEXTS, VALUES),
    },
)
SENT = st.one_of(
    BODIES.map(json.dumps).map(str.encode),
    BODIES.map(json.dumps).map(str.encode),
    VALUES.map(json.dumps).map(str.encode),
    st.binary(max_size=30),
    st.integers(1, 20_000).map(lambda n: b"[" * n),
)
QUERIES = st.dictionaries(
    st.sampled_from(["n", "held", "user", "tab", "label", "text", "by", "state", "order", "least",
                     "most", "rows", "x"]),
    st.one_of(TEXTS, st.integers().map(str), st.lists(st.integers(-1, 70)).map(
        lambda rows: ",".join(map(str, rows)))),
    max_size=4,
)  # fmt: skip


def ask(app, method, path, query, body=b""):
    """Return status and content of an answer, by ASGI; a fault of the application is raised."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
        "query_string": query, "headers": [], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])


def check_requests(app, n_examples, seconds=60.0):
    """Ask, in rounds of their own seeds, until there are enough examples or the time is over."""
    end, n_asked = time.monotonic() + seconds, 0

    def right(status, content):
        nonlocal n_asked
        n_asked += 1
        assert status in (200, 400), content
        if status == 400:
            assert 0 < len(json.loads(content)["error"]) <= MAX_MESSAGE

    @settings(max_examples=min(ROUND, n_examples), deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.sampled_from(ACTS), SENT, st.sampled_from(PAGES), QUERIES, st.integers(-1, 70))
    def check(act, body, page, query, n):
        right(*ask(app, "POST", f"/api/{act}", b"", body))
        encoded = urllib.parse.urlencode(query, errors="surrogatepass").encode()
        right(*ask(app, "GET", f"/api/{page.format(n=n)}", encoded))

    for number in itertools.count():
        seed(number)(check)()
        if n_asked >= 2 * n_examples or time.monotonic() > end:
            break
    status, content = ask(app, "GET", "/api/state", b"")
    assert (status, "revision" in json.loads(content)) == (200, True)
    return n_asked


@pytest.fixture
def app(open_session):
    session = open_session()
    return _routes(session, PageOptions("title", "ada"), Forecasts(session), "")


def test_rows_that_a_page_only_claims_to_hold_are_offered_to_nobody(app):
    """Found by random requests: all later queues of others ended in an IndexError."""
    assert ask(app, "GET", "/api/queue", b"user=bob&held=3,3226,-5&n=2")[0] == 200
    status, content = ask(app, "GET", "/api/queue", b"user=ada&n=70")
    assert status == 200
    assert {card["row"] for card in json.loads(content)} <= set(range(60))


def test_few_requests(app):
    assert check_requests(app, FEW) >= FEW


@pytest.mark.slow
def test_many_requests(app):
    n_asked = check_requests(app, MANY, SECONDS)
    sys.stdout.write(f"{n_asked} requests\n")
    assert n_asked > FEW
