"""Frames of a moving object, simulated and read from pictures."""

import numpy as np
import pytest
from PIL import Image

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError


def write(folder, pictures):
    folder.mkdir(exist_ok=True)
    for t, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"frame{t:02}.png")
    return folder


def bright(frames):
    return [np.where(f > 0, 255, 0).astype(np.uint8) for f in frames]


def test_the_ball_moves_and_pixels_are_missing():
    frames = gq.datasets.moving_ball()
    assert frames.labels.shape == (9, 100, 100)
    assert (frames.labels == 0).mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 90_000))
    assert frames.false[4].sum() > 0
    assert not frames.false[[0, 1, 2, 3, 5, 6, 7, 8]].any()
    seen = frames.labels != 0
    np.testing.assert_array_equal(frames.labels[seen] > 0, (frames.truth | frames.false)[seen])
    centers = [np.argwhere(t).mean(axis=0) for t in frames.truth]
    assert (np.diff(centers, axis=0) > 0).all()
    np.testing.assert_array_equal(frames.labels.ravel()[frames.known], frames.signs)


def test_pictures_are_read_with_and_without_a_mask(tmp_path):
    frames = gq.datasets.moving_ball(3, (12, 14), missing=0.0, corrupted=None)
    folder = write(tmp_path / "frames", bright(frames.labels))
    np.testing.assert_array_equal(gq.datasets.load_frames(folder).labels, frames.labels)
    mask = np.full((12, 14), 255, np.uint8)
    mask[:, :5] = 0
    Image.fromarray(mask).save(tmp_path / "mask.png")
    for where in (tmp_path / "mask.png", write(tmp_path / "masks", [mask] * 3)):
        found = gq.datasets.load_frames(folder, where).labels
        assert not found[:, :, :5].any()
        np.testing.assert_array_equal(found[:, :, 5:], frames.labels[:, :, 5:])


def test_transparent_pixels_are_missing(tmp_path):
    pictures = []
    for f in gq.datasets.moving_ball(2, (12, 12), missing=0.0, corrupted=None).labels:
        opaque = np.full(f.shape, 255, np.uint8)
        opaque[0] = 0
        pictures.append(np.stack([bright([f])[0]] * 3 + [opaque], axis=2))
    labels = gq.datasets.load_frames(write(tmp_path / "rgba", pictures)).labels
    assert not labels[:, 0].any()
    assert labels[:, 1:].all()


def test_bad_frames_are_refused(tmp_path):
    with pytest.raises(StorageError, match="two or more"):
        gq.datasets.load_frames(tmp_path)
    black = np.zeros((12, 12), np.uint8)
    with pytest.raises(InvalidInput, match="all of one kind"):
        gq.datasets.load_frames(write(tmp_path / "black", [black, black]))
    with pytest.raises(InvalidInput, match="one size"):
        gq.datasets.load_frames(write(tmp_path / "sizes", [black, black[:10]]))
    with pytest.raises(InvalidInput, match="there is no"):
        gq.datasets.load_frames(tmp_path / "black", tmp_path / "nothing.png")
    (tmp_path / "black" / "frame00.png").write_bytes(b"no picture")
    with pytest.raises(StorageError, match="not a readable picture"):
        gq.datasets.load_frames(tmp_path / "black")
    with pytest.raises(InvalidInput, match="missing"):
        gq.datasets.moving_ball(missing=1.0)


def test_a_small_film_end_to_end():
    frames = gq.datasets.moving_ball(5, (20, 20), corrupted=None)
    spectrum = gq.laplacian_spectrum(frames.graph(), "unnormalized", 60)
    prior = gq.priors.RandomSeries()
    posterior = gq.Posterior(
        spectrum, prior, gq.likelihoods.Probit(1.0), frames.known, frames.signs
    )
    with pytest.warns(gq.errors.GraphuqWarning):
        result = gq.infer(posterior, n_samples=50, n_chains=2, n_warmup=200)
    located = frames.maps(result.soft_label_mean) > 0.5
    assert (located != frames.truth).mean() < 0.03
