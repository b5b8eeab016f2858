"""Items, a store of labels, and a browser for the tests of labelling."""

import faulthandler
import tempfile

import pytest

import graphuq as gq
from graphuq.labelling import forecast
from graphuq.labelling.items import TableItems, TextItems, items_of
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore


@pytest.fixture(autouse=True)
def stacks_of_a_stall(monkeypatch):
    """Show what all threads do where a page is not ready in time, as happened on busy machines."""
    wait = Session.wait_until_current

    def waiting(self, *given, **named):
        try:
            return wait(self, *given, **named)
        except gq.errors.InvalidInput as error:
            with tempfile.TemporaryFile() as file:
                faulthandler.dump_traceback(file)
                file.seek(0)
                error.add_note(file.read().decode())
            raise

    monkeypatch.setattr(Session, "wait_until_current", waiting)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """Answer again at once: a page rests for twice the time that an answer takes."""
    monkeypatch.setattr(forecast, "REST", 0.0)


@pytest.fixture
def items():
    return TextItems([f"text {row}" for row in range(10)])


@pytest.fixture
def store(tmp_path, items):
    opened = LabelStore(tmp_path / "labels.jsonl", items)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def moons():
    return gq.datasets.two_moons(60, n_features=2, noise_std=0.05)


@pytest.fixture
def open_session(moons, tmp_path):
    """Return a function that opens the same session again and again."""
    opened = []

    def open_(**arguments):
        items = items_of(None, moons.features)
        assert isinstance(items, TableItems)
        model = Model(moons.features, arguments.pop("classifier", None))
        store = LabelStore(tmp_path / "labels.jsonl", items)
        session = Session(items, model, store, **arguments).start()
        opened.append(session)
        session.wait_until_current()
        return session

    yield open_
    for session in opened:
        session.close()


@pytest.fixture
def tab(browser):
    """A tab whose script errors, refused contents and requests of other machines fail the test."""
    context = browser.new_context(viewport={"width": 1180, "height": 860})
    opened, problems = context.new_page(), []
    opened.set_default_timeout(60_000)  # a first fit compiles its kernels, on a busy machine
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    opened.on("dialog", lambda dialog: problems.append(dialog.message))
    opened.on(
        "request",
        lambda r: None if r.url.startswith("http://127.0.0.1:") else problems.append(r.url),
    )
    opened.problems = problems
    yield opened
    context.close()
    assert problems == []
