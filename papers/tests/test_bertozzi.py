"""Studies of Bertozzi et al.: their parts, and the command that runs them."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.cli.app import run
from graphuq.errors import InvalidInput
from graphuq.inference.chains import run_chains
from graphuq_papers.base import Context
from graphuq_papers.bertozzi import hyperspectral, optimization, setup
from graphuq_papers.bertozzi.dimension import NOISE, _gibbs, _loadings, _pcn, _random_walk
from graphuq_papers.bertozzi.gas_plume import gas_plume
from graphuq_papers.bertozzi.optimum import EPSILON, MAX_STEPS, WELL_NOISE, algorithm4
from graphuq_papers.bertozzi.setup import protocol, truncated, voting
from graphuq_papers.catalogue import PAPERS
from graphuq_papers.problems import choose, share


def test_all_tables_and_figures_are_registered():
    figures = {f"figure{k}" for k in range(1, 15)}
    others = {"table1", "table2", "dimension", "optimum", "truncation"}
    assert set(PAPERS["bertozzi"]) == figures | others
    assert all(e.title and e.name == name for name, e in PAPERS["bertozzi"].items())


@pytest.mark.parametrize("model", ["probit", "Ginzburg-Landau"])
def test_the_gradient_flow_as_printed_reaches_the_optimum(model):
    """Algorithm 4 with a fixed step ends where Newton's method does."""
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(random_adjacency(20, 0)))
    likelihood = gq.likelihoods.Probit(0.1)
    if model != "probit":
        likelihood = gq.likelihoods.GinzburgLandau(EPSILON, WELL_NOISE)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), likelihood, [0, 1, 2, 3], [1, -1, 1, -1]
    )
    start = gq.infer(posterior, gq.inference.MAP()).latent_mean
    found, n_steps = algorithm4(posterior, model, np.zeros(20) + 0.5 * start)
    assert 10 < n_steps < MAX_STEPS - 1
    np.testing.assert_allclose(found, start, atol=1e-5)


def test_likelihood_of_one_label():
    """Figure 1 agrees with the formulas: 2/γ² = 4, −log p, −log(1 − q), −log q, −log(1 − p)."""
    outcome = PAPERS["bertozzi"]["figure1"].run(Context())
    found = {(row["model"], row["u"]): row["Φ"] for row in outcome.rows}
    assert found["probit, y = 1", -1.0] == pytest.approx(-norm.logcdf(-np.sqrt(2)), rel=0.01)
    assert [found["level set, y = 1", u] for u in (-1.0, 1.0)] == pytest.approx([4, 0])
    for y, levels in (("1", (0.3, 0.8)), ("−1", (0.7, 0.2))):
        phi = [found[f"atomic noise, y = {y}", u] for u in (-1.0, 1.0)]
        np.testing.assert_allclose(phi, -np.log(levels))


def test_list(capsys):
    assert run(["reproduce", "bertozzi", "--list"]) == 0
    assert "table1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hooke"], "'hooke' is unknown"),
        (["bertozzi"], "nothing to run"),
        (["bertozzi", "figure99"], "'figure99' is unknown"),
    ],
)
def test_invalid_arguments(arguments, message, capsys):
    assert run(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_one_figure_from_the_command_line(tmp_path, data_folder, capsys):
    folder = str(data_folder)
    arguments = ["bertozzi", "figure3", "--quick", "-o", str(tmp_path), "--folder", folder]
    assert run(["reproduce", *arguments]) == 0
    table = pd.read_csv(tmp_path / "figure3.csv")
    accuracy = table["Fiedler accuracy"].to_numpy()
    assert np.all(np.diff(accuracy) > 0), "each pair separates better than the one before"
    assert (tmp_path / "figure3.png").stat().st_size > 10_000
    assert "Fiedler" in (tmp_path / "figure3.txt").read_text()
    assert "figure3.csv" in capsys.readouterr().out


@pytest.mark.slow
def test_long_chain_of_the_paper_agrees_with_the_posterior(data_folder):
    """A long chain of the paper's protocol agrees with converged chains; a short one need not."""
    context = Context(quick=True, folder=data_folder)
    for algorithm, n_eigenpairs in (("full", None), ("approximation", 30)):
        problem = voting(context, algorithm, n_eigenpairs)
        posterior = problem.posterior(gq.likelihoods.Probit(0.5), choose(problem.truth, 3, 2, 0))
        chain = protocol(posterior, 100_000, 0.4, seed=1)
        exact = gq.infer(posterior, n_samples=500, rng=0)
        assert 0.1 < chain.acceptance < 0.9
        assert np.abs(chain.label_mean - gq.results.label_mean(exact)).mean() < 0.05
    few = truncated(problem, 10)
    assert few.spectrum.n_eigenpairs == 10


@pytest.mark.slow
@pytest.mark.parametrize("tail", [pytest.param(False, marks=pytest.mark.slow), 0.9])
def test_protocol_equals_chain_of_the_whole_field(tail, monkeypatch):
    """Estimates of 150 short chains have the mean and variance of those of N-dimensional chains.

    With residuals that are independent between draws, the variance would be far smaller.
    """
    graph = gq.graphs.from_adjacency(random_adjacency(20, seed=1))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=12, tail_eigenvalue=tail)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.5), [0, 5, 9], [1, -1, 1]
    )
    n_steps, step_size, n_seeds = 60, 0.3, 150
    draws = run_chains(
        posterior.node_target,
        gq.inference.PCN(step_size=step_size),
        n_samples=n_steps,
        n_chains=n_seeds,
        n_warmup=0,
        thin=1,
    )
    u = jax.vmap(jax.vmap(posterior.node_target.field.at_nodes))(draws.white)
    whole = np.where(np.asarray(u) >= 0, 1.0, -1.0).mean(axis=1)

    def spread():
        chains = [protocol(posterior, n_steps, step_size, seed) for seed in range(n_seeds)]
        found = np.array([chain.label_mean for chain in chains])
        error = np.sqrt((found.var(axis=0) + whole.var(axis=0)) / n_seeds)
        assert (np.abs(found.mean(axis=0) - whole.mean(axis=0)) < 4 * error + 1e-12).all()
        return found.var(axis=0).mean() / whole.var(axis=0).mean()

    # The ratio of two variances of 150 estimates has a standard error of 0.16 at one node, and the
    # mean over 20 correlated nodes one of about 0.1.
    assert 0.75 < spread() < 1.35
    independent = lambda rng, std, kept: std * rng.normal(size=(n_steps, 20))  # noqa: E731
    monkeypatch.setattr(setup, "residuals", independent)
    assert spread() < 0.7


def test_shares():
    truth = np.where(np.arange(100) < 30, 1.0, -1.0)
    nodes = share(truth, 0.1, seed=0)
    assert (truth[nodes] == 1).sum() == 3
    assert (truth[nodes] == -1).sum() == 7
    assert len(share(truth, 0.001, seed=0)) == 2, "one of each class at least"


@pytest.mark.slow
def test_maximum_a_posteriori_study():
    problem = optimization.moons(Context(), 0.06, 0)
    found = optimization._accuracies(problem, 0.03, 0)
    assert set(found) == set(optimization.METHODS)
    assert found["probit"] > 0.8
    assert found["GL, probit start"] > 0.8


@pytest.fixture
def small_plume(monkeypatch):
    """Use frames of 48 × 64 pixels, which are enough for all parts of the study."""
    monkeypatch.setattr(hyperspectral, "QUICK_FRAME", (48, 64))
    hyperspectral.plume.cache_clear()
    yield Context(quick=True)
    hyperspectral.plume.cache_clear()


@pytest.mark.slow
def test_plume_maps(small_plume):
    outcome = hyperspectral.figure11.run(small_plume)
    chain, *others = (row for row in outcome.rows if row.get("q_0"))
    assert chain["how"].startswith("the paper's chain")
    assert chain["accuracy"] > 0.8
    assert all(row["accuracy"] > 0.95 for row in others)
    assert others[0]["share of uncertain on edge"] > 0.5, "uncertain pixels lie on the plume's edge"
    stages = [row["stage"] for row in outcome.rows if "stage" in row]
    assert stages[:2] == ["simulation", "graph and spectrum (Nyström)"]
    assert outcome.figure is not None


def test_simulated_plume():
    video = gas_plume(3, (24, 40), seed=2)
    assert video.features.shape == (3 * 24 * 40, 129)
    assert (video.features > 0).all()
    frames = (video.classes == "plume").reshape(3, -1)
    assert not frames[0].any()
    assert video.target_names.tolist() == ["background", "plume"]
    assert 0.02 < frames[1:].mean() < 0.4
    # Gas absorbs at its spectral lines only.
    quiet = gas_plume(2, (24, 40), noise_std=0.0, seed=2)
    direction = quiet.features / np.linalg.norm(quiet.features, axis=1, keepdims=True)
    before, after = direction.reshape(2, -1, 129)
    thick = (quiet.classes == "plume").reshape(2, -1)[1]
    change = (np.log(after) - np.log(before))[thick].mean(axis=0)
    wavelengths = np.linspace(7830, 11700, 129)
    assert abs(wavelengths[np.argmin(change)] - 10_300) < 100
    same = gas_plume(3, (24, 40), seed=2)
    np.testing.assert_array_equal(same.features, video.features)
    for settings, message in (
        ({"n_frames": 1}, "n_frames: 1"),
        ({"shape": (4, 40)}, "shape: 4"),
        ({"n_channels": 2}, "n_channels: 2"),
        ({"noise_std": -1.0}, "noise_std"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gas_plume(**settings)


@pytest.mark.parametrize("make", [_pcn, _random_walk, _gibbs])
def test_samplers_of_the_whole_field_agree_with_the_closed_form(make):
    """P(u_0 > 0) given labels 1 and −1 is a ratio of orthant probabilities of u_0, z_0 and −z_1."""
    graph = gq.graphs.from_adjacency(random_adjacency(15, seed=3))
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=15),
        gq.priors.InverseLaplacian(),
        gq.likelihoods.Probit(NOISE),
        [4, 9],
        [1, -1],
    )
    loadings = _loadings(posterior)
    shares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        step, xi, positive = make(posterior, rng), rng.normal(size=15), 0
        for k in range(800):
            xi, _ = step(xi)
            positive += (k >= 100) & (loadings[0] @ xi > 0)
        shares.append(positive / 700)
    signed = np.stack([loadings[0], loadings[0], -loadings[1]])
    covariance = signed @ signed.T + np.diag([0, NOISE**2, NOISE**2])
    deviations = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviations, deviations)
    angles = np.arcsin(correlations[[0, 0, 1], [1, 2, 2]])
    exact = (1 / 8 + angles.sum() / (4 * np.pi)) / (1 / 4 + angles[2] / (2 * np.pi))
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert error < 0.03
    assert abs(np.mean(shares) - exact) < 4 * error
