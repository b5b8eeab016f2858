"""Features of texts and pictures for which none are given."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling.features import (
    SIDE,
    default_classifier,
    features_and_classifier,
    picture_features,
    reduced_pixels,
    text_features,
)
from graphuq.labelling.items import PictureArrays, PictureFiles, TableItems, TextItems


def test_tf_idf_by_hand():
    """A word that df of N texts have has weight 1 + log((1 + N) / (1 + df)), before scaling."""
    found = text_features(["apple apple tree", "tree", "road"]).toarray()
    assert found.shape == (3, 3)  # "tree" is in more than half of the texts; the last is "no word"
    np.testing.assert_allclose(sorted(found[0]), [0, 0, 1.0])  # unit length
    assert found[1].tolist() == [0, 0, 1]
    two = text_features(["red apple", "red car", "blue sky", "grey sea", "old"]).toarray()
    red, apple = 1 + np.log(6 / 3), 1 + np.log(6 / 2)
    expected = np.array([red, apple]) / np.hypot(red, apple)
    np.testing.assert_allclose(sorted(two[0][two[0] > 0]), sorted(expected))


def test_texts_without_words_are_alike_and_do_not_fail():
    texts = ["red apple", "red apple pie", "blue car", "blue car wheel", "", "?!"]
    features = text_features(texts)
    assert (features.toarray()[4] == features.toarray()[5]).all()
    X, settings = features_and_classifier(None, TextItems(texts), None)
    assert settings.metric == "cosine"
    y = np.array(["fruit", "", "car", "", "", ""], dtype=object)
    settings.set_params(n_neighbors=2)
    fitted = settings.fit(X, y)
    assert fitted.transduction_[[1, 3]].tolist() == ["fruit", "car"]
    with pytest.raises(InvalidInput, match="share no words"):
        text_features(["?", "!"])


def test_words_tell_topics_apart():
    """Texts of two topics with eight words each, four of them in a text, two labels."""
    rng = np.random.default_rng(0)
    topics = [[f"{topic}{k}" for k in range(8)] for topic in ("ball", "disk")]
    truth = np.arange(80) % 2
    shared = [f"word{k}" for k in range(8)]
    texts = [" ".join([*rng.choice(topics[t], 4), *rng.choice(shared, 2)]) for t in truth]
    X, settings = features_and_classifier(None, TextItems(texts), None)
    y = np.full(80, -1)
    y[:2] = truth[:2]
    assert (settings.fit(X, y).transduction_ == truth).mean() > 0.95


def test_pictures_are_reduced_to_pixels(tmp_path):
    flat = np.zeros((2, 56, 56), np.uint8)
    flat[1, :28] = 200
    grey = reduced_pixels(PictureArrays(flat))
    assert grey.shape == (2, SIDE * SIDE)
    expected = np.zeros((28, 28))
    expected[:14] = 200 / 255
    np.testing.assert_allclose(grey[1].reshape(28, 28), expected, atol=1e-6)
    red = np.zeros((30, 60, 4), np.uint8)
    red[..., 0] = red[..., 3] = 255
    red[:, 30:, 3] = 0  # transparent: white
    for name, picture in (("a.png", Image.fromarray(red)), ("b.jpg", Image.new("L", (500, 9)))):
        picture.save(tmp_path / name)
    colours = reduced_pixels(PictureFiles.in_folder(tmp_path)).reshape(2, 28, 28, 3)
    np.testing.assert_allclose(colours[0, :, 0], np.tile([1.0, 0, 0], (28, 1)))
    np.testing.assert_allclose(colours[0, :, -1], 1.0)
    assert colours[1].max() == 0
    (tmp_path / "c.png").write_bytes(b"no picture")
    with pytest.raises(StorageError, match=r"'c\.png' is not a readable picture"):
        picture_features(PictureFiles.in_folder(tmp_path))


def test_picture_features_keep_the_distances_of_pixels():
    """All components of centred pixels: a rotation."""
    pixels = np.random.default_rng(0).integers(0, 255, (12, 28, 28)).astype(np.uint8)
    found = picture_features(PictureArrays(pixels))
    assert found.shape == (12, 12)
    wanted = np.linalg.norm(pixels[3].astype(float) - pixels[7]) / 255
    np.testing.assert_allclose(np.linalg.norm(found[3] - found[7]), wanted, rtol=1e-4)


def test_features_and_graphs_of_the_user_are_kept():
    moons = gq.datasets.two_moons(20, n_features=2, noise_std=0.05)
    texts = TextItems([f"text {row}" for row in range(20)])
    X, settings = features_and_classifier(moons.features, texts, None)
    assert X is moons.features
    assert settings.metric is None
    graph = gq.graphs.knn_graph(moons.features, 4)
    X, _ = features_and_classifier(None, texts, gq.GraphClassifier(graph))
    assert X is None
    own = default_classifier().set_params(metric="euclidean")
    assert features_and_classifier(None, texts, own)[1].metric == "euclidean"
    table = TableItems(pd.DataFrame(moons.features))
    with pytest.raises(InvalidInput, match="X: not given"):
        features_and_classifier(None, table, None)
