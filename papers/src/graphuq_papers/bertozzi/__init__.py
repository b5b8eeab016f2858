"""Figures and tables of Bertozzi, Luo, Stuart & Zygalakis (2018), and two studies of ours."""

from graphuq.experiments.base import registered
from graphuq.experiments.bertozzi.algorithms import figure9
from graphuq.experiments.bertozzi.dimension import dimension
from graphuq.experiments.bertozzi.hyperspectral import figure10, figure11
from graphuq.experiments.bertozzi.marginals import figure4
from graphuq.experiments.bertozzi.optimization import figure13, figure14
from graphuq.experiments.bertozzi.pictures import figure1, figure2, figure3, figure5
from graphuq.experiments.bertozzi.plume_optimum import figure12
from graphuq.experiments.bertozzi.timing import table2
from graphuq.experiments.bertozzi.truncation import truncation
from graphuq.experiments.bertozzi.variance import figure6, figure7, figure8, table1

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
    truncation,
)
