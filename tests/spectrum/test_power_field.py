"""The Gaussian field on the whole graph, against all eigenpairs."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

import graphuq as gq
from graphuq.distributions import Hyperparameter, parameter
from graphuq.errors import IncompatibleParts, InvalidInput, NotConvergedWarning
from graphuq.inference import ExpectationPropagation
from graphuq.likelihoods import Probit
from graphuq.priors import Diffusion, Matern, RegularizedLaplacian
from graphuq.spectrum import lanczos, laplacian_power, power_field
from graphuq.spectrum.laplacian import LAPLACIANS

PRIORS = {
    "default": Matern(),
    "own constant": Matern(0.1, 2.0, include_constant=True),
    "fraction": Matern(0.3, 2.5, include_constant=True),
    "no range": Matern(0.0, 3.0),
    "Markov": Matern(0.5, 1.0, include_constant=True),
}


class GivenScale(Matern):
    """Matérn prior on all nodes whose β is not estimated."""

    beta: Hyperparameter = parameter(1.0)

    @property
    def precision(self):
        """Precision with β."""
        return super().precision._replace(beta=self.beta)


def clouds(n_nodes, n_neighbors=10, shift=2.0):
    """Return a graph of two clouds, eight labelled nodes and their labels."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(n_nodes, 5))
    features[n_nodes // 2 :] += shift
    labelled = np.arange(0, n_nodes, n_nodes // 8)[:8]
    labels = np.where(labelled < n_nodes // 2, -1.0, 1.0)
    return gq.graphs.knn_graph(features, n_neighbors), labelled, labels


def answer(basis, prior, labelled, labels):
    return gq.infer(
        gq.Posterior(basis, prior, Probit(), labelled, labels), ExpectationPropagation()
    )


def covariance(result):
    factor = result.posterior.field.factor
    return factor @ factor.T


def as_if_large(monkeypatch):
    """Compute no graph from all of its eigenpairs, and put nodes in another order."""
    monkeypatch.setattr(power_field, "EXACT_UP_TO", 10)
    monkeypatch.setattr(lanczos, "MANY_NODES", 1)


@pytest.fixture
def by_series(monkeypatch):
    as_if_large(monkeypatch)


def check_series(exact, series, most=0.01):
    """Compare columns, scale and deviations by a series with those by all eigenpairs."""
    ratio = series.posterior.spectrum.beta / exact.posterior.spectrum.beta
    settings = series.posterior.spectrum.settings
    assert settings["solver"] == "Chebyshev series"
    assert 0 < settings["scale_error"] < most
    assert abs(ratio - 1) < 4 * settings["scale_error"]
    np.testing.assert_allclose(
        covariance(series) * ratio, covariance(exact), atol=1e-9 * covariance(exact).max()
    )
    free = np.ones(exact.posterior.spectrum.n_nodes, bool)
    free[exact.posterior.labelled] = False
    own, other = (r.posterior.spectrum.columns[free, -1] for r in (series, exact))
    error = settings["deviation_error"]
    assert 0.002 < error < 0.06
    relative = own[other > 0] * np.sqrt(ratio) / other[other > 0] - 1
    assert np.sqrt((relative**2).mean()) < 1.5 * error
    assert abs(relative.mean()) < error


@pytest.mark.parametrize("kind", LAPLACIANS)
@pytest.mark.parametrize("name", PRIORS)
def test_agrees_with_all_eigenpairs(kind, name, monkeypatch):
    graph, labelled, labels = clouds(400)
    everything = gq.laplacian_spectrum(graph, kind, graph.n_nodes)
    expected = answer(everything, PRIORS[name], labelled, labels)
    operator = gq.Laplacian(graph, kind)
    exact = answer(operator, PRIORS[name], labelled, labels)
    assert exact.settings["solver"] == "all eigenpairs"
    assert exact.settings["scale_error"] == exact.settings["deviation_error"] == 0
    assert exact.log_evidence == pytest.approx(expected.log_evidence, abs=1e-9)
    np.testing.assert_allclose(exact.latent_mean, expected.latent_mean, atol=1e-9)
    np.testing.assert_allclose(exact.latent_std, expected.latent_std, rtol=1e-8)
    as_if_large(monkeypatch)
    check_series(exact, answer(operator, PRIORS[name], labelled, labels))


@pytest.mark.slow
@pytest.mark.usefixtures("by_series")
def test_two_thousand_nodes():
    """Covariance, means and evidence agree within 1e-6 without a single eigenvalue of the rest."""
    graph, labelled, labels = clouds(2_000)
    std = Matern().spectral_std(spectrum := gq.laplacian_spectrum(graph, n_eigenpairs=2_000))
    beta = (spectrum.eigenvalues[5] + 0.09) ** -4 / std.modes[5] ** 2
    expected = answer(spectrum, Matern(), labelled, labels)
    found = answer(gq.Laplacian(graph), GivenScale(beta=beta), labelled, labels)
    np.testing.assert_allclose(covariance(found), covariance(expected), atol=1e-8)
    np.testing.assert_allclose(found.latent_mean, expected.latent_mean, atol=1e-7)
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-7)
    error = found.settings["deviation_error"]
    assert abs(found.latent_std / expected.latent_std - 1).mean() < 2 * error < 0.05


@pytest.fixture
def parted():
    """Return a graph of two clouds, a triangle, and two isolated nodes; and its labels."""
    rng = np.random.default_rng(3)
    parts = [gq.graphs.knn_graph(rng.normal(size=(150, 4)), 6).weights for _ in range(2)]
    parts += [np.ones((3, 3)) - np.eye(3), np.zeros((2, 2))]
    weights = sparse.block_diag([*map(sparse.csr_array, parts)]).tocsr()
    return weights, np.r_[0:5, 150:155, 300, 303], np.r_[np.ones(5), -np.ones(5), 1.0, -1.0]


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
@pytest.mark.parametrize("kind", LAPLACIANS)
@pytest.mark.parametrize("constant", [None, True, False])
def test_disconnected_graph(parted, kind, constant, monkeypatch):
    weights, labelled, labels = parted
    prior = Matern(0.3, 2.0, include_constant=constant)
    if kind == "random-walk" or constant is False:  # neither has a variance for isolated nodes
        weights, labelled, labels = weights[:303, :303], labelled[:-1], labels[:-1]
    graph = gq.graphs.from_adjacency(weights)
    expected = answer(gq.laplacian_spectrum(graph, kind, graph.n_nodes), prior, labelled, labels)
    exact = answer(gq.Laplacian(graph, kind), prior, labelled, labels)
    np.testing.assert_allclose(exact.latent_mean, expected.latent_mean, atol=1e-7)
    np.testing.assert_allclose(exact.latent_std, expected.latent_std, rtol=1e-6)
    assert exact.log_evidence == pytest.approx(expected.log_evidence, abs=1e-7)
    as_if_large(monkeypatch)
    series = answer(gq.Laplacian(graph, kind), prior, labelled, labels)
    check_series(exact, series)
    np.testing.assert_array_equal(series.posterior.has_evidence, exact.posterior.has_evidence)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_power_one_is_the_regularized_laplacian(kind, monkeypatch):
    """Solved by Cholesky, by all eigenpairs and by a series."""
    graph, labelled, labels = clouds(300)
    operator = gq.Laplacian(graph, kind)
    for few in (2_000, 10):
        monkeypatch.setattr(power_field, "EXACT_UP_TO", few)
        found = answer(operator, Matern(0.2, 1.0, include_constant=True), labelled, labels)
        same = RegularizedLaplacian(found.posterior.spectrum.beta, 1 / 0.2)
        expected = answer(operator, same, labelled, labels)
        assert expected.settings["solver"] == "cholesky"
        np.testing.assert_allclose(covariance(found), covariance(expected), atol=1e-8)
        np.testing.assert_allclose(found.latent_mean, expected.latent_mean, atol=1e-7)
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-7)
        error = found.settings["deviation_error"]
        ratio = found.latent_std / expected.latent_std
        assert abs(ratio - 1).mean() < 1e-8 + 2 * error


@pytest.mark.usefixtures("by_series")
def test_saved_and_changed(tmp_path):
    graph, labelled, labels = clouds(200)
    result = answer(gq.Laplacian(graph), Matern(), labelled, labels)
    result.save(tmp_path / "fit.nc")
    loaded = gq.load(tmp_path / "fit.nc")
    before, after = result.posterior.spectrum, loaded.posterior.spectrum
    assert repr(loaded.posterior) == repr(result.posterior)
    assert repr(after) == repr(before)
    assert (after.precision, after.beta) == (before.precision, before.beta)
    assert after.settings == before.settings
    np.testing.assert_array_equal(after.columns, before.columns)
    np.testing.assert_array_equal(loaded.latent_mean, result.latent_mean)
    with pytest.raises(IncompatibleParts, match="columns of a covariance"):
        dataclasses.replace(loaded.posterior, prior=Matern(alpha=2.0))
    changed = dataclasses.replace(result.posterior, prior=Matern(alpha=2.0))
    anew = gq.Posterior(gq.Laplacian(graph), Matern(alpha=2.0), Probit(), labelled, labels)
    np.testing.assert_array_equal(changed.spectrum.columns, anew.spectrum.columns)
    assert abs(changed.spectrum.columns - before.columns).max() > 0.01


def test_values_weighed_by_the_evidence():
    """A few (τ, α) on all nodes, weighed by their evidence, are a mixture on all eigenpairs."""
    graph, labelled, labels = clouds(200, shift=1.0)
    priors = [Matern(0.1, 2.0), Matern(0.3, 4.0), Matern(1.0, 2.0)]
    results = [answer(gq.Laplacian(graph), prior, labelled, labels) for prior in priors]
    weights = softmax([result.log_evidence for result in results])
    assert (weights > 0.02).all()
    mean = weights @ [gq.results.label_mean(result) for result in results]
    terms = [gq.models.Term(1.0, prior) for prior in priors]
    mixture = gq.models.Mixture(terms, gq.Categorical(np.full(3, 1 / 3)))
    expected = answer(gq.laplacian_spectrum(graph, n_eigenpairs=200), mixture, labelled, labels)
    # The mixture corrects the evidence of expectation propagation, by .05 at most.
    np.testing.assert_allclose(mean, gq.results.label_mean(expected), atol=0.02)
    assert abs(gq.results.label_mean(results[0]) - mean).max() > 0.1


def test_evidence_chooses_what_is_not_solved_for():
    """The noise is chosen as with all eigenpairs, and a hyperparameter of the prior is refused."""
    graph, labelled, labels = clouds(100, shift=1.0)
    posteriors = [
        gq.Posterior(basis, Matern(), Probit(0.3), labelled, labels)
        for basis in (gq.Laplacian(graph), gq.laplacian_spectrum(graph, n_eigenpairs=100))
    ]
    found = [gq.maximize_evidence(posterior, ["noise_std"]) for posterior in posteriors]
    assert found[0].values == pytest.approx(found[1].values, rel=1e-3)
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, abs=1e-6)
    with pytest.raises(InvalidInput, match=r"'tau' of a prior .* choose it with eigenpairs"):
        gq.maximize_evidence(posteriors[0], ["tau"])


def test_what_cannot_be_solved_is_refused(monkeypatch):
    graph, labelled, labels = clouds(200)

    def posterior(prior, laplacian=None):
        return gq.Posterior(laplacian or gq.Laplacian(graph), prior, Probit(), labelled, labels)

    learnt = Matern(tau=gq.Uniform(0.1, 1.0))
    with pytest.raises(IncompatibleParts, match=r"tau of Matern.* is learnt; give a number"):
        _ = learnt.precision
    with pytest.raises(IncompatibleParts, match="give numbers, or pass laplacian_spectrum"):
        posterior(learnt)
    with pytest.raises(IncompatibleParts, match="truncation=70 leaves out eigenvectors"):
        posterior(Matern(truncation=70))
    with pytest.raises(IncompatibleParts, match="is no power of the Laplacian; use Matern"):
        posterior(Diffusion())
    with pytest.raises(InvalidInput, match="alpha: 200 gives the constant a variance"):
        posterior(Matern(1e-3, 200.0, include_constant=True))
    monkeypatch.setattr(power_field, "EXACT_UP_TO", 10)
    monkeypatch.setattr(laplacian_power, "MAX_DEGREE", 100)
    with pytest.raises(IncompatibleParts, match=r"needs more than 100 products.*larger tau"):
        posterior(Matern(0.001, 2.0), gq.Laplacian(graph, "unnormalized"))


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_isolated_nodes_without_variance_are_refused():
    weights = np.zeros((5, 5))
    weights[0, 1] = weights[1, 0] = 1.0
    graph = gq.graphs.from_adjacency(weights)
    prior = Matern(include_constant=False)
    with pytest.raises(IncompatibleParts, match="leaves u = 0 at 3 isolated node"):
        gq.Posterior(gq.Laplacian(graph), prior, Probit(), [0, 1], [-1, 1])


def test_without_eigenpairs(monkeypatch):
    """Where Lanczos does not converge all is drawn, unless τ = 0 needs an eigenvalue."""
    graph, labelled, labels = clouds(400)
    exact = answer(gq.Laplacian(graph), Matern(), labelled, labels)
    as_if_large(monkeypatch)

    def pairs(*_):
        raise InvalidInput("graph", "eigenpairs did not converge", "use more neighbours")

    monkeypatch.setattr(power_field, "nonnull_pairs", pairs)
    with pytest.warns(NotConvergedWarning, match="all of the field is drawn"):
        series = answer(gq.Laplacian(graph), Matern(), labelled, labels)
    assert series.settings["scale_error"] > 0.02  # more than with eigenpairs
    check_series(exact, series, 0.2)
    with pytest.raises(InvalidInput, match="did not converge"):
        answer(gq.Laplacian(graph), Matern(0.0, 3.0), labelled, labels)


@pytest.mark.parametrize("shift", [0.0, 0.01])
@pytest.mark.parametrize("exponent", [0.5, 4.0])
def test_error_of_a_series_is_its_tolerance(shift, exponent):
    graph, *_ = clouds(120)
    laplacian = gq.Laplacian(graph)
    values, vectors = np.linalg.eigh(laplacian.dense())
    powered = laplacian_power.LaplacianPower(laplacian, shift, 0.9 * values[1])
    function = ((values[1:] + shift) / (0.9 * values[1] + shift)) ** -exponent
    vectors = vectors[:, 1:]
    errors = []
    for tolerance in (1e-3, 1e-6, 1e-12):
        error = powered(vectors, exponent, tolerance) - vectors * function
        errors.append(np.linalg.norm(error, axis=0).max())
        assert errors[-1] < tolerance
    assert errors[0] > 1e-6  # a series of all terms would not test the tolerance


def test_three_classes():
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(40, 3)) + 3 * np.eye(3)[k] for k in range(3)])
    graph, labelled = gq.graphs.knn_graph(features, 8), np.arange(0, 120, 12)
    likelihood = Probit(0.3, n_classes=3)
    found, expected = (
        gq.infer(
            gq.Posterior(basis, Matern(), likelihood, labelled, labelled // 40),
            ExpectationPropagation(),
        )
        for basis in (gq.Laplacian(graph), gq.laplacian_spectrum(graph, n_eigenpairs=120))
    )
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-6)
    np.testing.assert_allclose(found.latent_mean, expected.latent_mean, atol=1e-5)
    own, same = (r.answer.labelled_mean for r in (found, expected))
    np.testing.assert_allclose(own, same, atol=1e-5)
