"""Figures 1 to 10 of Hartog and van Zanten."""

from graphuq_papers.base import registered
from graphuq_papers.hartog import digits, simulated, tracking

EXPERIMENTS = registered(
    *(getattr(simulated, f"figure{k}") for k in range(1, 5)),
    digits.figure5,
    *(getattr(tracking, f"figure{k}") for k in range(6, 11)),
)
