"""Figures and tables of Bertozzi, Luo, Stuart & Zygalakis (2018), and three studies of ours."""

from graphuq_papers.base import registered
from graphuq_papers.bertozzi.algorithms import figure9
from graphuq_papers.bertozzi.dimension import dimension
from graphuq_papers.bertozzi.hyperspectral import figure10, figure11
from graphuq_papers.bertozzi.marginals import figure4
from graphuq_papers.bertozzi.optimization import figure13, figure14
from graphuq_papers.bertozzi.optimum import optimum
from graphuq_papers.bertozzi.pictures import figure1, figure2, figure3, figure5
from graphuq_papers.bertozzi.plume_optimum import figure12
from graphuq_papers.bertozzi.timing import table2
from graphuq_papers.bertozzi.truncation import truncation
from graphuq_papers.bertozzi.variance import figure6, figure7, figure8, table1

EXPERIMENTS = registered(
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    table1,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    figure12,
    figure13,
    figure14,
    table2,
    dimension,
    optimum,
    truncation,
)
