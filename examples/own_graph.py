"""A graph of your own: mutual nearest neighbours."""

import dataclasses

import numpy as np
from sklearn.neighbors import kneighbors_graph

import graphuq as gq


@dataclasses.dataclass(frozen=True)
class MutualNeighbors(gq.graphs.GraphBuilder):
    """Two rows are joined if each is a near neighbour of the other."""

    n_neighbors: int = 15

    def build(self, X, weights=None):
        """Return the graph of the rows."""
        directed = kneighbors_graph(X, self.n_neighbors)
        return gq.graphs.from_adjacency(directed.minimum(directed.T))


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    y = np.where(np.arange(200) < 10, moons.classes, -1)
    classifier = gq.GraphClassifier(MutualNeighbors(), inference="expectation-propagation")
    right = (classifier.fit(moons.features, y).transduction_ == moons.classes).mean()
    print(f"{classifier.graph}: {classifier.graph_.n_edges} edges, accuracy {right:.2f}")
    classifier.set_params(graph__n_neighbors=30).fit(moons.features, y)
    right = (classifier.transduction_ == moons.classes).mean()
    print(f"{classifier.graph}: {classifier.graph_.n_edges} edges, accuracy {right:.2f}")
