"""Posts to newsgroups, as many as the paper has."""

from collections import Counter

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError


@pytest.mark.slow
def test_newsgroups_have_the_sizes_of_the_paper(data_folder):
    """The paper has 994, 999, 982, 961, 628 and 799 posts; not every cross-post is detectable."""
    data = gq.datasets.load_newsgroups(folder=data_folder)
    counts = Counter(data.classes.tolist())
    assert [counts[name] for name in gq.datasets.newsgroups.GROUPS] == [
        994,
        1000,
        981,
        960,
        562,
        799,
    ]
    norms = np.sqrt(np.asarray(data.features.power(2).sum(axis=1)).ravel())
    np.testing.assert_allclose(norms, 1)
    with pytest.raises(InvalidInput, match="groups"):
        gq.datasets.load_newsgroups(("sci.space", "sci.med"), folder=data_folder)


@pytest.mark.slow
def test_classical_weights_of_words(data_folder):
    """They are log(N/df) where the default is log(N/df) + 1, and rows have unit length."""
    pair = ("talk.religion.misc", "alt.atheism")
    plain = gq.datasets.load_newsgroups(pair, folder=data_folder)
    classical = gq.datasets.load_newsgroups(pair, folder=data_folder, classical_idf=True)
    assert plain.feature_names == classical.feature_names
    idf = np.log(len(plain.classes) / np.diff(plain.features.tocsc().indptr))
    counts = plain.features.toarray()[:50] / (idf + 1)  # up to a factor for each row
    expected = counts * idf
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(classical.features.toarray()[:50], expected, atol=1e-12)


def test_missing_newsgroups(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(StorageError, match="in no data folder"):
        gq.datasets.load_newsgroups(folder=tmp_path)
