"""The mean log score of the default on fixed sets of the corpus, which no test of parts would see.

The sets are those that need no further package. Less is better. The figures are of commit 5abb056;
a change of the model gets new ones, with what it does to the whole corpus (bench_corpus.py).
"""

import warnings

import numpy as np
import pytest

import corpus
from corpus_peers import Problem, default_graph
from corpus_peers import graphuq as fitted
from corpus_scores import evaluate
from peers import DATA

SETS = [name for name in corpus.NAMES if name not in (*corpus.KEEL, *corpus.AEON)]
FROZEN = {1: np.nan, 5: np.nan}  # mean log score over the sets, by labels a class
TOLERANCE = 0.003  # Monte-Carlo errors of probabilities are at most 0.01 at 99 % of the rows


def log_score(name, per_class, **settings):
    """Return the log score of the first draw of labels of a set."""
    X, codes = corpus.load(name)
    rows = corpus.draw_labels(codes, per_class, 0)
    problem = Problem(name, X, codes, default_graph(X), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(fitted(problem, **settings), codes, rows)["log"]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets of the benchmarks are not here")
@pytest.mark.parametrize("per_class", FROZEN)
def test_the_default_keeps_its_log_score(per_class):
    found = np.mean([log_score(name, per_class) for name in SETS])
    assert abs(found - FROZEN[per_class]) < TOLERANCE
