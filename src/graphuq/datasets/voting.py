"""Voting records of the U.S. House of Representatives, 1984."""

from pathlib import Path

import numpy as np

from graphuq.datasets.base import Dataset, RemoteFile, locate
from graphuq.errors import StorageError

FILE = RemoteFile(
    path="voting/house-votes-84.data",
    sha256="c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e",
    address="https://archive.ics.uci.edu/ml/machine-learning-databases/voting-records/"
    "house-votes-84.data",
)
N_MEMBERS, N_VOTES = 435, 16


def load_voting(folder: str | Path | None = None) -> Dataset:
    """Load 16 votes of 435 members: yes +1, no −1, absent 0 (Bertozzi et al. 2018, §5.1.2).

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``voting/house-votes-84.data``; see `graphuq.datasets`.

    Returns
    -------
    Dataset
        Classes ``"democrat"`` (267) and ``"republican"`` (168).

    Raises
    ------
    StorageError
        If the file is missing or corrupt, or has another layout.
    """
    path = locate(FILE, folder)
    rows = [line.split(",") for line in path.read_text().split()]
    if len(rows) != N_MEMBERS or any(len(row) != N_VOTES + 1 for row in rows):
        raise StorageError(f"'{path}' is not the original file of {N_MEMBERS} records; replace it")
    codes = {"y": 1.0, "n": -1.0, "?": 0.0}
    return Dataset(
        features=np.array([[codes[vote] for vote in row[1:]] for row in rows]),
        classes=np.array([row[0] for row in rows]),
        name="voting",
        source="UCI Machine Learning Repository, CC BY 4.0",
        feature_names=tuple(f"vote{i}" for i in range(1, N_VOTES + 1)),
        description="Votes of the U.S. House of Representatives, 1984: yes +1, no −1, absent 0.",
    )
