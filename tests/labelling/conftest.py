"""Items, a store of labels, and a browser for the tests of labelling."""

import pytest

from graphuq.labelling.items import TextItems
from graphuq.labelling.store import LabelStore


@pytest.fixture
def items():
    return TextItems([f"text {row}" for row in range(10)])


@pytest.fixture
def store(tmp_path, items):
    opened = LabelStore(tmp_path / "labels.jsonl", items)
    yield opened
    opened.close()


@pytest.fixture
def tab(browser):
    """A tab whose script errors, refused contents and requests of other machines fail the test."""
    context = browser.new_context(viewport={"width": 1180, "height": 860})
    opened, problems = context.new_page(), []
    opened.set_default_timeout(20_000)
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
