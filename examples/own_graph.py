"""A graph of your own: mutual nearest neighbours."""

import numpy as np
from sklearn.neighbors import kneighbors_graph

import graphuq as gq


def mutual_knn_graph(features, n_neighbors=15):
    """Return the graph that joins two rows if each is a near neighbour of the other."""
    directed = kneighbors_graph(features, n_neighbors)
    weights = directed.minimum(directed.T)
    return gq.graphs.from_adjacency(weights)


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, seed=1)
    labelled = np.arange(10)
    graph = mutual_knn_graph(moons.features)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=20)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.Matern(),
        gq.likelihoods.Probit(),
        labelled,
        moons.signs(1)[labelled],
    )
    result = gq.infer(posterior, n_samples=500, seed=0)
    right = (gq.results.labels(result) == moons.signs(1)).mean()
    print(f"{graph.n_nodes} nodes, {graph.n_components} component(s), accuracy {right:.2f}")
