"""Wrong parts are refused by name, with the function to call instead."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput

X = np.abs(np.random.default_rng(0).normal(size=(12, 3)))
GRAPH = gq.graphs.knn_graph(X, 6)
PARTS = {
    "np": np,
    "gq": gq,
    "X": X,
    "W": sparse.csr_array(gq.graphs.complete_graph(X).weights),
    "graph": GRAPH,
    "laplacian": gq.Laplacian(GRAPH),
    "spectrum": gq.laplacian_spectrum(GRAPH, n_eigenpairs=4),
}
NO_GRAPHS = {
    "X": r"ndarray of shape \(12, 3\) is not a Graph; make a graph first, gq.graphs.knn_graph\(X\)",
    "X.tolist()": "list of length 12 is not a Graph; make a graph first, gq.graphs.knn_graph",
    "W": r"csr_array of shape .* is not a Graph; .*gq.graphs.from_adjacency\(W\)",
    "laplacian": "an object of type Laplacian is not a Graph; pass its graph, laplacian.graph",
    "spectrum": "an object of type Spectrum is not a Graph; it has its eigenpairs already",
    "None": "None is not a Graph",
}
CASES = {
    f"gq.{call}": f"graph: {message}"
    for value, message in NO_GRAPHS.items()
    for call in (
        f"laplacian_spectrum({value})",
        f"Laplacian({value})",
        f"harmonic_function({value}, [0], [1.0])",
    )
} | {
    "gq.nystrom_spectrum(graph)": r"X: .*Graph is not .*; .* gq.laplacian_spectrum\(graph\)",
    "gq.nystrom_spectrum(laplacian)": r"X: .*Laplacian is not .*\(laplacian.graph\)",
    "gq.nystrom_spectrum(spectrum)": "X: .*Spectrum is not an array of features; pass the features",
    "gq.fiedler_signs(graph)": r"spectrum: .*Graph is not .*; .*gq.laplacian_spectrum\(graph\)",
    "gq.fiedler_signs(X)": "spectrum: ndarray",
    "gq.laplacian_spectrum(graph, n_eigenpairs=True)": "n_eigenpairs: True is not an integer",
    "gq.laplacian_spectrum(graph, n_eigenpairs='8')": "n_eigenpairs: '8' is not an integer",
    "gq.laplacian_spectrum(graph, n_eigenpairs=[8])": "n_eigenpairs: list of length 1 is not an",
    "gq.laplacian_spectrum(graph, n_eigenpairs=8.5)": "n_eigenpairs: 8.5 is not an integer",
    "gq.laplacian_spectrum(graph, spectrum)": "laplacian: an object of type Spectrum is unknown",
    "gq.laplacian_spectrum(graph, X)": "laplacian: ndarray .* is unknown",
    "gq.laplacian_spectrum(graph, solver=['dense'])": "solver: list of length 1 is unknown",
    "gq.laplacian_spectrum(graph, algorithm=['full'])": "algorithm: list of length 1 is unknown",
    "gq.laplacian_spectrum(graph, tolerance=True)": "tolerance: True is not a number",
    "gq.laplacian_spectrum(graph, tolerance='1')": "tolerance: '1' is not a number",
    "gq.laplacian_spectrum(graph, tail_eigenvalue=[1.0])": "tail_eigenvalue: list of length 1 is",
    "gq.laplacian_spectrum(graph, tail_eigenvalue=None)": "tail_eigenvalue: None is not a number",
    "gq.nystrom_spectrum(X, n_eigenpairs=True)": "n_eigenpairs: True is not an integer",
    "gq.nystrom_spectrum(X, n_eigenpairs=2, n_landmarks=5.5)": "n_landmarks: 5.5 is not an integer",
    "gq.nystrom_spectrum(X, n_eigenpairs=2, tail_eigenvalue='last')": "tail_eigenvalue: 'last' is",
}


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("expression", CASES)
def test_wrong_parts_and_options_are_refused(expression):
    with pytest.raises(InvalidInput, match=f"^{CASES[expression]}"):
        eval(expression, PARTS)


def test_covariance_columns_are_no_series():
    graph = gq.graphs.from_adjacency(np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1))
    posterior = gq.Posterior(
        gq.Laplacian(graph),
        gq.priors.RegularizedLaplacian(),
        gq.likelihoods.Probit(),
        [0, 5],
        [1, -1],
    )
    with pytest.raises(IncompatibleParts, match="have no eigenvalues"):
        _ = posterior.std
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    with pytest.raises(IncompatibleParts, match="no eigenvectors to plot"):
        gq.plots.plot_embedding(result)
