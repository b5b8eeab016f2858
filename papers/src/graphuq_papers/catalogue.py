"""All papers, by name, with their tables and figures."""

from graphuq_papers.base import Experiment
from graphuq_papers.bertozzi import EXPERIMENTS as BERTOZZI
from graphuq_papers.chen import EXPERIMENTS as CHEN
from graphuq_papers.hartog import EXPERIMENTS as HARTOG
from graphuq_papers.zhu import EXPERIMENTS as ZHU

PAPERS: dict[str, dict[str, Experiment]] = {
    "bertozzi": BERTOZZI,
    "chen": CHEN,
    "hartog": HARTOG,
    "zhu": ZHU,
}
