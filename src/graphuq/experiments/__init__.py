"""Floor 7: the papers' tables and figures, one package a paper, one file a study."""

from graphuq.experiments.base import Context, Experiment, Outcome
from graphuq.experiments.bertozzi import EXPERIMENTS as BERTOZZI

PAPERS = {"bertozzi": BERTOZZI}

__all__ = ["PAPERS", "Context", "Experiment", "Outcome"]
