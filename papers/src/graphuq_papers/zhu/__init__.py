"""Tables 1 and 2 and figures 1 to 5 of Zhu, Lafferty and Ghahramani, and two further studies."""

from graphuq_papers.base import registered
from graphuq_papers.zhu import approximations, curves, outside, tables

EXPERIMENTS = registered(
    tables.table1,
    tables.table2,
    *(getattr(curves, f"figure{k}") for k in range(1, 6)),
    approximations.approximations,
    outside.outside,
)
