"""A checkpoint is used by the run that wrote it, unchanged, or refused in words."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import GraphuqError, InvalidInput, StorageError
from graphuq.inference.checkpoint import Checkpoint, checksum
from robustness import hostile

ARRAYS = {"n_steps": np.array(50), "state0": np.arange(6.0), "acceptance": np.ones((2, 3))}


def written(path, **changed):
    np.savez(path, **({"format": 2, "fingerprint": "f", "checksum": checksum(ARRAYS)}
                      | ARRAYS | changed))  # fmt: skip


@pytest.fixture
def checkpoint(tmp_path):
    Checkpoint(tmp_path / "c.npz", (), "settings").save(ARRAYS)
    return tmp_path / "c.npz"


def test_what_was_saved_is_loaded(checkpoint):
    again = Checkpoint(checkpoint, (), "settings").load()
    assert again.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(again[name], values)


def test_another_run_is_refused(checkpoint):
    for target, settings in (((), "others"), ((np.ones(3),), "settings")):
        with pytest.raises(InvalidInput, match="another run"):
            Checkpoint(checkpoint, target, settings).load()


@pytest.mark.parametrize("damage", hostile.DAMAGES)
def test_damage_is_refused(damage, checkpoint):
    checkpoint.write_bytes(hostile.DAMAGES[damage](checkpoint.read_bytes()))
    with pytest.raises(StorageError, match="not a readable checkpoint"):
        Checkpoint(checkpoint, (), "settings").load()


@pytest.mark.parametrize("change", [
    {"state0": np.arange(6.0) + 1e-9}, {"state0": np.arange(6)}, {"n_steps": np.array(51)},
    {"state0": np.arange(6.0).reshape(2, 3)}, {"more": np.zeros(1)}, {"acceptance": np.zeros(0)},
])  # fmt: skip
def test_every_change_is_refused(change, checkpoint):
    with np.load(checkpoint) as file:
        stored = dict(file)
    np.savez(checkpoint, **(stored | change))
    with pytest.raises(StorageError, match="changed since it was written"):
        Checkpoint(checkpoint, (), "settings").load()


def test_bits_that_flip_are_found(checkpoint):
    content = checkpoint.read_bytes()
    refused = 0
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        checkpoint.write_bytes(flipped)
        try:
            again = Checkpoint(checkpoint, (), "settings").load()
        except GraphuqError:
            refused += 1
        else:  # a byte that means nothing, such as a date in the archive
            assert checksum(again) == checksum(ARRAYS)
    assert refused > 0.7 * len(content) / 7


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("missing", ["n_steps", "state0", "white"])
def test_a_checkpoint_without_a_part_is_refused(missing, posterior, tmp_path, monkeypatch):
    """Someone computed the checksum anew: the structure is checked all the same."""
    path = tmp_path / "c.npz"
    options = {"n_samples": 100, "n_chains": 2, "n_warmup": 50, "thin": 1, "checkpoint": path}
    gq.infer(posterior, "pcn", **options)
    with np.load(path) as file:
        stored = dict(file)
    about = {name: stored.pop(name) for name in ("format", "fingerprint", "checksum")}
    del stored[missing]
    np.savez(path, **(about | {"checksum": checksum(stored)} | stored))
    with pytest.raises(StorageError, match="lacks a part"):
        gq.infer(posterior, "pcn", **options)
