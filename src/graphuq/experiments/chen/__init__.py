"""Chen: figures 1 to 12, of two classes."""

from graphuq.experiments.base import registered
from graphuq.experiments.chen.eigenvectors import figure1, figure2, figure3, figure4
from graphuq.experiments.chen.learning import figure8, figure9, figure10, figure11, figure12
from graphuq.experiments.chen.models import figure5, figure6, figure7

EXPERIMENTS = registered(
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    figure12,
)
