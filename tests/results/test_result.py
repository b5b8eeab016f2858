"""The numbers of a result, and their storage in a file."""

import json

import numpy as np
import pytest
import xarray as xr

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError
from graphuq.results import storage
from graphuq.results.storage import to_tree
from graphuq.results.summaries.base import slices


@pytest.fixture(scope="module")
def result():
    from conftest import random_adjacency

    graph = gq.graphs.from_adjacency(random_adjacency(30, seed=4))
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=12, tail_eigenvalue=True),
        gq.priors.InverseLaplacian(),
        gq.likelihoods.LevelSet(0.6),
        [0, 5, 9, 14],
        [1, -1, 1, -1],
    )
    return gq.infer(posterior, gq.inference.PCN(), n_samples=500, n_chains=4, rng=0)


def test_numbers_are_consistent(result):
    np.testing.assert_allclose(
        gq.results.label_variance(result), 1 - gq.results.label_mean(result) ** 2
    )
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(result.probabilities[:, 1], (1 + gq.results.label_mean(result)) / 2)
    assert gq.results.mean_label_variance(result) == pytest.approx(
        gq.results.label_variance(result).mean()
    )
    narrow, wide = gq.credible_interval(result, 0.5), gq.credible_interval(result, 0.95)
    assert np.all(wide[:, 0] < narrow[:, 0])
    assert np.all(narrow[:, 1] < wide[:, 1])
    certainty = np.abs(gq.results.label_mean(result))
    uncertain = gq.most_uncertain(result, 5)
    assert not np.isin(uncertain, result.posterior.labelled).any()
    assert np.all(np.diff(certainty[uncertain]) >= 0)
    assert np.all(np.diff(certainty[gq.results.most_certain(result, 5)]) <= 0)
    assert set(gq.results.rank_by_uncertainty(result)) == set(range(30))
    with pytest.raises(InvalidInput, match="probability"):
        gq.credible_interval(result, 95.0)


def test_ties_are_not_broken_by_order():
    from graphuq.results.uncertainty import rank_by_uncertainty

    order = rank_by_uncertainty(np.zeros(1000))
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1
    np.testing.assert_array_equal(order, rank_by_uncertainty(np.zeros(1000)))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("size", [0, 64, 300])
def test_parts_cover_all_nodes_once(n, size):
    """Parts are disjoint; otherwise the result would depend on the order of threads."""
    parts = [np.arange(n)[part] for part in slices(n, size)]
    np.testing.assert_array_equal(np.concatenate([np.arange(0), *parts]), np.arange(n))
    assert all(0 < len(part) <= max(64, size) for part in parts)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_monte_carlo_error_is_that_of_repeated_runs(result):
    """The spread of 24 independent runs agrees with the error that each reports."""
    runs = [
        gq.infer(result.posterior, gq.inference.PCN(), n_samples=300, n_chains=4, rng=seed)
        for seed in range(24)
    ]
    spread = np.std([run.probabilities for run in runs], axis=0, ddof=1)
    reported = np.sqrt(np.mean([run.mcse**2 for run in runs], axis=0))
    # A deviation of 24 runs is accurate to 15 %; the report is the larger of two estimates.
    ratio = np.median(reported / spread)
    assert 0.75 < ratio < 1.6


def test_rao_blackwell_means_agree_with_means_of_signs(result):
    """Signs of completed draws have the same mean; ignoring the deviation changes it."""
    rng = np.random.default_rng(0)
    from graphuq.results.diagnostics import node_rows
    from graphuq.results.summaries import conditional_moments

    rows = node_rows(result.posterior)
    white = result.answer.white.reshape(-1, result.posterior.dimension)
    mean, std = conditional_moments(result.posterior.field, white, rows)
    signs = np.where(mean + std[:, None] * rng.normal(size=mean.shape) >= 0, 1.0, -1.0)
    error = np.hypot(gq.results.label_mcse(result), signs.std(axis=1) / np.sqrt(len(white) / 4))
    assert np.all(np.abs(signs.mean(axis=1) - gq.results.label_mean(result)) < 5 * error)
    smooth = 2 * np.vectorize(lambda m: m > 0)(mean) - 1.0
    assert not np.allclose(
        smooth.mean(axis=1), gq.results.label_mean(result), atol=1e-3
    )  # negative control


def test_file_holds_everything(result, tmp_path):
    result.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    for name in ("probabilities", "mcse", "latent_mean", "latent_std", "has_evidence"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    np.testing.assert_array_equal(
        gq.credible_interval(again, 0.9), gq.credible_interval(result, 0.9)
    )
    assert again.diagnostics == result.diagnostics
    assert again.settings == result.settings
    assert again.settings["graphuq_version"]
    assert repr(again.posterior) == repr(result.posterior)
    assert repr(again) == repr(result)


def test_arviz_reads_it(result, tmp_path):
    import arviz
    import xarray as xr

    data = gq.to_arviz(result)
    assert dict(data["posterior"].sizes)["chain"] == 4
    assert dict(data["posterior"].sizes)["draw"] == 500
    rhat = arviz.rhat(data["posterior"]["u"])  # a Dataset before ArviZ 1, then a DataArray
    assert float((rhat["u"] if isinstance(rhat, xr.Dataset) else rhat).max()) < 1.1
    result.save(tmp_path / "fit.nc")
    stored = gq.to_arviz(gq.load(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(stored["posterior"]["u"], data["posterior"]["u"])
    np.testing.assert_array_equal(stored["observed_data"]["label"], data["observed_data"]["label"])


@pytest.mark.parametrize("damage", ["truncated", "missing", "text", "foreign", "future", "gutted"])
def test_damaged_files_are_refused(result, tmp_path, damage, monkeypatch):
    path = tmp_path / "fit.nc"
    result.save(path)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif damage == "missing":
        path.unlink()
    elif damage == "text":
        path.write_text("not NetCDF")
    elif damage == "foreign":
        xr.Dataset({"a": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf")
    elif damage == "future":
        with monkeypatch.context() as patched:
            patched.setattr(storage, "FORMAT", 99)
            result.save(path)
    else:
        tree = to_tree(result)
        del tree["nodes"]
        storage.write_tree(tree, path)
    words = {"future": "format 99", "foreign": "not written by graphuq", "missing": "no file"}
    with pytest.raises(StorageError, match=words.get(damage)):
        gq.load(path)


def test_settings_are_plain_data(result):
    assert json.loads(json.dumps(result.settings)) == result.settings


@pytest.mark.slow
def test_marginals_at_nodes(posterior):
    result = gq.infer(posterior, gq.inference.PCN(), n_samples=2000, rng=0)
    draws = gq.results.latent_draws(result, [2, 5, 11])
    assert draws.shape == (3, result.answer.n_chains * 2000)
    mean, std = result.latent_mean[[2, 5, 11]], result.latent_std[[2, 5, 11]]
    for values, expected in (
        (draws, mean),
        (draws**2, mean**2 + std**2),
        (np.sign(draws), gq.results.label_mean(result)[[2, 5, 11]]),
    ):
        by_chain = values.reshape(3, result.answer.n_chains, -1).mean(axis=2)
        error = by_chain.std(axis=1, ddof=1) / np.sqrt(result.answer.n_chains)
        assert error.max() < 0.05
        assert np.all(np.abs(by_chain.mean(axis=1) - expected) < 4.5 * error)
    axes = gq.plots.plot_marginals(result, np.array([2, 5]), axes=gq.plots.panels(2)[1])
    assert "node 2" in axes[0].get_title()
    ax = gq.plots.panels()[1][0]
    line = gq.plots.plot_order(result, ax=ax).lines[0].get_ydata()
    assert np.all(np.diff(line) >= 0)


def test_a_result_is_a_record_of_few_names(result):
    """Everything else is a function of a result, found at `graphuq.results`."""
    names = [name for name in dir(result) if not name.startswith("_")]
    assert len(names) == 15, names
    assert result.probabilities.shape == result.mcse.shape == (len(result.has_evidence), 2)
    functions = set(gq.results.__all__) - {"Result"}
    assert not functions & set(names)
    for name in functions:
        assert callable(getattr(gq.results, name)), name
    assert not hasattr(result, "label_mean")
