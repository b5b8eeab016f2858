"""Figures 1 to 20 of Chen, and studies of the sampler's forms and of the number of classes."""

from graphuq_papers.base import registered
from graphuq_papers.chen import classes, eigenvectors, learning, models, number, pairs, updates

EXPERIMENTS = registered(
    *(getattr(eigenvectors, f"figure{k}") for k in range(1, 5)),
    *(getattr(models, f"figure{k}") for k in range(5, 8)),
    *(getattr(learning, f"figure{k}") for k in range(8, 13)),
    *(getattr(pairs, f"figure{k}") for k in range(13, 18)),
    *(getattr(classes, f"figure{k}") for k in range(18, 21)),
    updates.updates,
    number.number,
)
