"""Floor 6: data sets.

Two moons and digits need no file. Voting records and MNIST come from a folder that you name
(``folder=...`` or the environment variable ``GRAPHUQ_DATA``), else from a checksummed download.
"""

from graphuq.datasets.base import Dataset
from graphuq.datasets.mnist import load_mnist
from graphuq.datasets.plume import gas_plume
from graphuq.datasets.synthetic import load_digits, two_moons
from graphuq.datasets.voting import load_voting

__all__ = ["Dataset", "gas_plume", "load_digits", "load_mnist", "load_voting", "two_moons"]
