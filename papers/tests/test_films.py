"""Frames of a moving object, simulated or read from pictures."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import graphuq as gq
from graphuq.cli.app import run
from graphuq.errors import InvalidInput, StorageError
from graphuq_papers.films import frame_panels, load_frames, moving_ball, plot_frames


def write(folder, pictures):
    folder.mkdir(exist_ok=True)
    for t, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"frame{t:02}.png")
    return folder


def bright(frames):
    return [np.where(f > 0, 255, 0).astype(np.uint8) for f in frames]


def test_the_ball_moves_and_pixels_are_missing():
    frames = moving_ball()
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
    frames = moving_ball(3, (12, 14), missing=0.0, corrupted=None)
    folder = write(tmp_path / "frames", bright(frames.labels))
    np.testing.assert_array_equal(load_frames(folder).labels, frames.labels)
    mask = np.full((12, 14), 255, np.uint8)
    mask[:, :5] = 0
    Image.fromarray(mask).save(tmp_path / "mask.png")
    for where in (tmp_path / "mask.png", write(tmp_path / "masks", [mask] * 3)):
        found = load_frames(folder, where).labels
        assert not found[:, :, :5].any()
        np.testing.assert_array_equal(found[:, :, 5:], frames.labels[:, :, 5:])


def test_transparent_pixels_are_missing(tmp_path):
    pictures = []
    for f in moving_ball(2, (12, 12), missing=0.0, corrupted=None).labels:
        opaque = np.full(f.shape, 255, np.uint8)
        opaque[0] = 0
        pictures.append(np.stack([bright([f])[0]] * 3 + [opaque], axis=2))
    labels = load_frames(write(tmp_path / "rgba", pictures)).labels
    assert not labels[:, 0].any()
    assert labels[:, 1:].all()


def test_frames_are_saved_and_read(tmp_path):
    frames = moving_ball(3, (12, 14), corrupted=None)
    frames.save(tmp_path / "film")
    found = load_frames(tmp_path / "film")
    np.testing.assert_array_equal(found.labels, frames.labels)
    assert found.names == frames.names == ("frame1", "frame2", "frame3")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_a_folder_is_tracked_from_the_command_line(tmp_path, capsys, monkeypatch):
    frames = moving_ball(3, (20, 24), missing=0.3, corrupted=None)
    frames.save(tmp_path / "film")
    arguments = ["track", str(tmp_path / "film"), "-o", str(tmp_path / "out")]
    arguments += ["--n-eigenpairs", "30", "--n-samples", "100", "--n-chains", "2"]
    arguments += ["--n-warmup", "200"]
    with monkeypatch.context() as stopped:
        stopped.setattr("graphuq.inference.reversible_jump.gibbs.GibbsUpdates.kept", _interrupt)
        assert run(arguments) == 130
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".track.npz"]
    assert run([*arguments, "--resume"]) == 0
    assert "pixels" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "frames.csv")
    truth = np.array([np.argwhere(t).mean(axis=0) for t in frames.truth])
    np.testing.assert_allclose(table[["row", "column"]], truth, atol=1.0)
    assert (table["missing"] == (frames.labels == 0).sum(axis=(1, 2))).all()
    with Image.open(tmp_path / "out" / "probability_frame2.png") as picture:
        shown = np.asarray(picture) > 127
    assert (shown != frames.truth[1]).mean() < 0.1
    result = gq.load(tmp_path / "out" / "posterior.nc")
    np.testing.assert_array_equal(frames.maps(gq.results.soft_label_mean(result))[1] > 0.5, shown)
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "overview_probability.png",
        "overview_width.png",
        "location_frame3.png",
        "width_frame1.png",
    }


def _interrupt(*_):
    raise KeyboardInterrupt


def test_the_frames_of_the_ball_are_written_by_a_command(tmp_path, capsys):
    assert run(["moving-ball", str(tmp_path / "ball"), "--random-state", "1"]) == 0
    assert "9 frames of 100 × 100" in capsys.readouterr().out
    found = load_frames(tmp_path / "ball").labels
    np.testing.assert_array_equal(found, moving_ball(seed=1).labels)


def test_frames_are_drawn_into_the_given_axes():
    maps = np.linspace(0, 1, 60).reshape(3, 4, 5)
    axes = frame_panels(4, 4, 5)
    drawn = plot_frames(maps, "share", (0.0, 0.5), names=["a", "b", "c"], axes=axes)
    assert list(drawn) == list(axes[:3])
    assert [ax.get_title() for ax in drawn] == ["a", "b", "c"]
    for ax, values in zip(drawn, maps, strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), values)
        assert ax.images[0].get_clim() == (0.0, 0.5)
    bar = axes[0].figure.axes[-1]
    assert (bar.get_label(), bar.get_ylabel()) == ("<colorbar>", "share")
    assert not axes[3].has_data()
    with pytest.raises(InvalidInput, match="2 panels for 3 frames"):
        plot_frames(maps, "share", axes=axes[:2])


def test_bad_frames_are_refused(tmp_path):
    with pytest.raises(StorageError, match="two or more"):
        load_frames(tmp_path)
    black = np.zeros((12, 12), np.uint8)
    with pytest.raises(InvalidInput, match="all of one kind"):
        load_frames(write(tmp_path / "black", [black, black]))
    with pytest.raises(InvalidInput, match="one size"):
        load_frames(write(tmp_path / "sizes", [black, black[:10]]))
    with pytest.raises(InvalidInput, match="there is no"):
        load_frames(tmp_path / "black", tmp_path / "nothing.png")
    (tmp_path / "black" / "frame00.png").write_bytes(b"no picture")
    with pytest.raises(StorageError, match="not a readable picture"):
        load_frames(tmp_path / "black")
    with pytest.raises(InvalidInput, match="missing"):
        moving_ball(missing=1.0)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_frames": "a"}, "n_frames: 'a' is not an integer"),
        ({"n_frames": 1}, "n_frames: 1; use 2 or more"),
        ({"seed": -1}, "seed: -1; use 0 or more"),
        ({"shape": (9, 20)}, "shape"),
        ({"corrupted": 9}, "corrupted: 9 of 9 frames"),
    ],
)
def test_wrong_arguments_are_refused_by_name(settings, words):
    with pytest.raises(InvalidInput, match=words):
        moving_ball(**settings)


def test_the_representation_is_short():
    frames = moving_ball(2, (20, 30), missing=0.0, corrupted=None)
    assert repr(frames) == "Frames(2 frames of 20 × 30 pixels, 0 % missing)"


@pytest.mark.slow
def test_a_small_film_end_to_end():
    frames = moving_ball(5, (20, 20), corrupted=None)
    spectrum = gq.laplacian_spectrum(frames.graph(), "unnormalized", 60)
    prior = gq.priors.RandomSeries()
    posterior = gq.Posterior(
        spectrum, prior, gq.likelihoods.Probit(1.0), frames.known, frames.signs
    )
    with pytest.warns(gq.errors.GraphuqWarning):
        result = gq.infer(posterior, n_samples=50, n_chains=2, n_warmup=200)
    located = frames.maps(gq.results.soft_label_mean(result)) > 0.5
    assert (located != frames.truth).mean() < 0.03


@pytest.mark.slow
def test_the_example_runs(monkeypatch):
    matplotlib.use("agg")
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    names = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "film.py"))
    assert names["accuracy"] > 0.95
    assert names["kept"] < 0.5
    matplotlib.pyplot.close("all")
