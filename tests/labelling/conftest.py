"""Items and a store of labels for the tests of labelling."""

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
