"""Tasks of Zhu et al., and the computations behind their tables and figures."""

import numpy as np
import pytest

from graphuq_papers.base import Context
from graphuq_papers.zhu.tasks import accuracies, classifier, evidence_search, task

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def context(folder):
    return Context(quick=True, folder=folder)


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
