"""Tables and figures of four papers, recomputed: one package per paper, one module per study."""

from graphuq.experiments.base import Context, Experiment, Outcome
from graphuq.experiments.bertozzi import EXPERIMENTS as BERTOZZI
from graphuq.experiments.chen import EXPERIMENTS as CHEN
from graphuq.experiments.hartog import EXPERIMENTS as HARTOG
from graphuq.experiments.zhu import EXPERIMENTS as ZHU

PAPERS = {"bertozzi": BERTOZZI, "chen": CHEN, "hartog": HARTOG, "zhu": ZHU}

__all__ = ["PAPERS", "Context", "Experiment", "Outcome"]
