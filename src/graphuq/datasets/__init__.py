"""Data sets for examples and measurements.

`two_moons`, `simulated_tissue` and `load_digits` need no file. `load_voting` and `load_mnist` read
a data folder (``folder=...`` or the environment variable ``GRAPHUQ_DATA``) or download the files
and verify their checksums. `load_newsgroups` reads a data folder only, `load_indian_pines` and
`load_penguins` what other packages bring.
"""

from graphuq.datasets.base import Dataset
from graphuq.datasets.mnist import load_mnist
from graphuq.datasets.newsgroups import load_newsgroups
from graphuq.datasets.packaged import PixelDataset, load_indian_pines, load_penguins
from graphuq.datasets.synthetic import load_digits, two_moons
from graphuq.datasets.tissues import Tissue, simulated_tissue
from graphuq.datasets.voting import load_voting

__all__ = [
    "Dataset",
    "PixelDataset",
    "Tissue",
    "load_digits",
    "load_indian_pines",
    "load_mnist",
    "load_newsgroups",
    "load_penguins",
    "load_voting",
    "simulated_tissue",
    "two_moons",
]
