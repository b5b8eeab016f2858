"""The mean log score of the corpus stays what it was, unless the model is meant to change."""

import json

import pytest

from frozen.corpus_score import METHODS, RATES, SCORES, SETS, corpus, mean, score_of

FROZEN = json.loads(SCORES.read_text(encoding="utf-8"))
BOUND = {1: 3e-3, 5: 2e-3}  # nats: five Monte-Carlo errors of a mean over sets, by labels a class


def test_all_sets_are_frozen():
    for method in METHODS:
        for rate in RATES:
            assert list(FROZEN[method][str(rate)]) == SETS


@pytest.mark.slow
@pytest.mark.skipif(not corpus.DATA.is_dir(), reason="some sets are read from the folder of data")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("per_class", RATES)
@pytest.mark.parametrize("method", METHODS)
def test_mean_log_score(method, per_class):
    found = {name: score_of(name, per_class, method) for name in SETS}
    frozen = FROZEN[method][str(per_class)]
    moved = {name: round(found[name] - frozen[name], 4) for name in SETS}
    assert mean(found) == pytest.approx(mean(frozen), abs=BOUND[per_class]), moved
