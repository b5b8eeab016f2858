"""Data sets for examples and measurements.

`two_moons` and `load_digits` need no file. `load_voting` and `load_mnist` read a data folder
(``folder=...`` or the environment variable ``GRAPHUQ_DATA``) or download the files and verify
their checksums. `load_newsgroups` reads a data folder only.
"""

from graphuq.datasets.base import Dataset
from graphuq.datasets.mnist import load_mnist
from graphuq.datasets.newsgroups import load_newsgroups
from graphuq.datasets.synthetic import load_digits, two_moons
from graphuq.datasets.voting import load_voting

__all__ = [
    "Dataset",
    "load_digits",
    "load_mnist",
    "load_newsgroups",
    "load_voting",
    "two_moons",
]
