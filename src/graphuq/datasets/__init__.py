"""Floor 6: data sets.

Two moons and digits need no file. Voting records and MNIST come from a folder that you name
(``folder=...`` or the environment variable ``GRAPHUQ_DATA``), else from a checksummed download;
newsgroups from a folder only.
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
