"""Data sets for examples and experiments.

`two_moons`, `load_digits`, `gas_plume` and `moving_ball` need no file. `load_voting` and
`load_mnist` read a data folder (``folder=...`` or the environment variable ``GRAPHUQ_DATA``) or
download the files and verify their checksums. `load_newsgroups` reads a data folder only.
"""

from graphuq.datasets.base import Dataset
from graphuq.datasets.frames import Frames, load_frames, moving_ball
from graphuq.datasets.mnist import load_mnist
from graphuq.datasets.newsgroups import load_newsgroups
from graphuq.datasets.plume import gas_plume
from graphuq.datasets.synthetic import load_digits, two_moons
from graphuq.datasets.voting import load_voting

__all__ = [
    "Dataset",
    "Frames",
    "gas_plume",
    "load_digits",
    "load_frames",
    "load_mnist",
    "load_newsgroups",
    "load_voting",
    "moving_ball",
    "two_moons",
]
