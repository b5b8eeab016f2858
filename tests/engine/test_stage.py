"""Stages that a kill interrupts: what is temporary goes, whenever the run dies."""

import numpy as np
import pytest

from graphuq.engine.store import SCRATCH, Stage, load_mapped
from graphuq.errors import StorageError
from robustness.hostile import npy_header


def names(stage):
    return sorted(path.name for path in stage.path("x").parent.iterdir())


def test_what_is_temporary_goes_in_the_next_run_at_the_latest(tmp_path, monkeypatch):
    stage = Stage.of(tmp_path, "stage", {})
    stage.save("kept", 0, np.zeros(2))
    stage.save("list", 0, np.zeros(2))
    stage.save_scratch(f"{SCRATCH}-1-0", 0, np.zeros(2))
    stage.path(f".{SCRATCH}-abcdefgh", suffix="").write_bytes(b"a write that was killed")

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "remove", die)
    with pytest.raises(KeyboardInterrupt):
        stage.finish({"n": 3}, temporary=["list", SCRATCH])
    monkeypatch.undo()
    assert stage.is_done
    assert stage.record == {"n": 3}
    assert len(names(stage)) == 5
    stage.clear()
    assert names(stage) == ["done.json", "kept-00000.npy"]
    stage.clear()


def test_objects_are_not_read(tmp_path):
    """A file would hold them as pointers, which nobody may follow."""
    path = tmp_path / "x.npy"
    path.write_bytes(npy_header((1,), "|O") + bytes(8))
    with pytest.raises(StorageError, match="cannot read"):
        load_mapped(path)
    path.write_bytes(npy_header((1,)) + bytes(8))
    assert load_mapped(path).tolist() == [0.0]
