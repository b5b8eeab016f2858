"""Tasks of Zhu et al., and the computations behind their tables and figures."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from graphuq_papers.base import Context
from graphuq_papers.zhu import curves
from graphuq_papers.zhu.tasks import Task, accuracies, classifier, evidence_search, task

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def context(folder):
    return Context(quick=True, folder=folder)


def test_length_scales_reach_where_the_evidence_is_flat(monkeypatch):
    """The grid of figure 5 ends where nearly all weights are 1, not before the optimum."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    pair = Task("1/2", pairwise_distances(rows), np.where(rows[:, 0] > 0, 1.0, -1.0), 10)
    chosen = []
    monkeypatch.setattr(curves, "_curves", lambda *given: chosen.append(given[4](pair)))
    for quick in (True, False):
        curves.figure5.run(Context(quick=quick))
    for scales in chosen:
        assert np.all(np.diff(scales) > 0)
        weights = np.exp(-(pair.distances**2) / (2 * scales[-1] ** 2))
        assert np.median(weights) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("graph", [pytest.param("epsilon", marks=pytest.mark.slow), "exp"])
def test_search_improves_on_its_start(data_folder, graph):
    pair = task("2/3", context(data_folder))
    labelled = pair.draw(0)
    assert len(np.unique(pair.truth[labelled])) == 2
    search = evidence_search(graph, pair, labelled, 0)
    start = classifier(graph, pair).fit(pair.distances, pair.given(labelled))
    assert search.best_score_ >= start.result_.log_evidence - 1e-6
    plain, tuned = accuracies(search.best_estimator_.result_, pair, labelled)
    assert tuned > 0.7
    assert 0.4 < plain <= 1
