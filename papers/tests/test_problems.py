"""Problems that several papers share: their distances."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from graphuq.cli.app import run
from graphuq.datasets import load_voting
from graphuq.errors import InvalidInput
from graphuq.graphs import complete_graph, knn_graph
from graphuq_papers.base import Context
from graphuq_papers.problems import space

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(("p", "norm"), [(1.0, "cityblock"), (3.0, "minkowski")])
@pytest.mark.parametrize("q", [1.0, 2.5])
def test_weights_are_functions_of_the_distance_that_is_chosen(p, q, norm):
    """They are exp(−‖x − y‖_p^q / 2l²), and the neighbours are those of the norm."""
    options = {"p": p} if norm == "minkowski" else {}
    distances = squareform(pdist(X, norm, **options)) ** q
    points, metric = space(Context(distance=(p, q)), X)
    graph = complete_graph(points, "gaussian", scale=0.8, metric=metric)
    expected = np.exp(-distances / (2 * 0.8**2))
    np.fill_diagonal(expected, 0)
    # Tiny ones are left out.
    np.testing.assert_allclose(graph.weights, expected, rtol=1e-9, atol=1e-11)
    near = knn_graph(points, 4, "unweighted", metric=metric).weights.toarray()
    among = (np.argsort(distances, axis=1)[:, 1:5, None] == np.arange(40)).any(axis=1)
    np.testing.assert_array_equal(near > 0, among | among.T)


def test_distances_of_the_papers_are_squared_euclidean_ones():
    points, metric = space(Context(), X)
    assert points is X
    assert metric == "euclidean"
    almost = space(Context(distance=(2.0, 2.0 + 1e-12)), X)
    graphs = [
        complete_graph(one, "self-tuning", n_neighbors=5, metric=kind).weights
        for one, kind in ((points, metric), almost)
    ]
    np.testing.assert_allclose(*graphs, rtol=1e-9)


@pytest.mark.parametrize("distance", [(0.5, 1.0), (1.0, 0.0), (np.nan, 2.0), (2.0, np.inf)])
def test_what_is_no_distance_is_refused(distance):
    with pytest.raises(InvalidInput, match="distance"):
        Context(distance=distance)


@pytest.mark.parametrize("paper", ["bertozzi", "chen"])
def test_the_graph_of_the_votes_has_the_distances(paper, data_folder):
    setup = pytest.importorskip(f"graphuq_papers.{paper}.setup")
    scale = {"bertozzi": 1.25, "chen": 1.0}[paper]
    context = Context(folder=data_folder, distance=(1.0, 1.0))
    votes = squareform(pdist(load_voting(data_folder).features, "cityblock"))
    weights = np.exp(-votes / (2 * scale**2))
    degrees = weights.sum(axis=1) - 1
    np.testing.assert_allclose(setup.voting(context).spectrum.degrees, degrees, rtol=1e-9)


def test_the_command_has_the_distances(tmp_path, capsys):
    assert run(["reproduce", "chen", "figure1", "--distance", "0.5", "2", "-o", str(tmp_path)]) == 2
    assert "use p ≥ 1 and q > 0" in capsys.readouterr().err
