"""The garbage collector is as it was after imports, and finds what became garbage meanwhile."""

import gc
import weakref

import pytest

from graphuq.utils.lazy_imports import paused_collection


class Node:
    """An object that can refer to itself."""

    own: "Node"


def test_the_collector_is_off_meanwhile_and_on_again():
    assert gc.isenabled()
    with paused_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), paused_collection():
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with paused_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.fixture
def thawed():
    """Undo that the suite froze what it has collected."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_new_objects_count_as_old_and_their_cycles_are_still_found():
    gc.collect()
    with paused_collection():
        kept = [Node() for _ in range(1000)]
        lost = Node()
        lost.own, seen = lost, weakref.ref(lost)
        del lost
    assert any(one is kept[-1] for one in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert seen() is None


@pytest.mark.usefixtures("thawed")
def test_what_the_program_froze_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with paused_collection():
        pass
    assert gc.get_freeze_count() == frozen
