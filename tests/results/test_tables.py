"""Output of a result: class names, summary, table, hyperparameters, evidence, ArviZ data."""

import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import summarize

MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.1)
NAMES = np.array(["lower", "upper"])
DIGITS = gq.datasets.load_digits((1, 4, 9))
DIGIT = np.array([1, 4, 9])[DIGITS.target]


@pytest.fixture(scope="module")
def fitted():
    y = np.where(np.arange(120) < 12, NAMES[MOONS.target], "")
    return gq.GraphClassifier(n_neighbors=8).fit(MOONS.data, y)


@pytest.fixture(scope="module")
def chosen():
    """A classifier whose hyperparameters the evidence chose."""
    y = np.where(np.arange(120) < 12, NAMES[MOONS.target], "")
    return gq.GraphClassifier(n_neighbors=8, model="largest-evidence").fit(MOONS.data, y)


@pytest.fixture(scope="module")
def several():
    y = np.where(np.arange(len(DIGIT)) % 5 == 0, DIGIT, -1)
    return gq.GraphClassifier(n_neighbors=15, n_eigenpairs=12).fit(DIGITS.data, y)


def test_version_is_that_of_the_project():
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert gq.__version__ == tomllib.loads(project.read_text())["project"]["version"]


def test_classes_have_names(fitted, chosen, several):
    assert fitted.result_.classes.tolist() == ["lower", "upper"]
    assert several.result_.classes.tolist() == [1, 4, 9]
    assert "lower, upper" in repr(fitted.result_)
    plain = gq.infer(chosen.result_.posterior, gq.inference.ExpectationPropagation())
    assert plain.classes.tolist() == [-1, 1]
    lines = str(gq.results.with_classes(plain, ["a", "b"])).splitlines()
    assert any(line.startswith("a ") for line in lines)
    with pytest.raises(InvalidInput, match="3 names of 2 classes"):
        gq.results.with_classes(plain, ["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_classes_without_labels_are_numbered():
    y = np.where(np.arange(90) % 6 == 0, DIGIT[:90], -1)
    classifier = gq.GraphClassifier(
        n_neighbors=8,
        n_eigenpairs=8,
        max_classes=5,
        inference=gq.inference.MCMC(n_samples=40, n_warmup=40, n_chains=2),
    )
    result = classifier.fit(DIGITS.data[:90], y).result_
    assert result.classes.tolist() == [1, 4, 9, "unseen 1", "unseen 2"]
    assert {"probability_1", "probability_unseen 2"} <= set(result.to_dataframe().columns)
    posterior = gq.to_arviz(result)["posterior"]
    total = posterior["class_probability"].sum("class")
    np.testing.assert_allclose(total, 1, rtol=1e-6)


def test_table_has_a_row_for_each_node(fitted, several):
    for classifier in (fitted, several):
        result = classifier.result_
        table = result.to_dataframe()
        assert len(table) == len(result.has_evidence)
        assert (table["label"].to_numpy() == classifier.transduction_).all()
        columns = [f"probability_{name}" for name in result.classes]
        np.testing.assert_array_equal(table[columns], result.probabilities)
        np.testing.assert_array_equal(table["probability"], table[columns].max(axis=1))
        np.testing.assert_array_equal(table["entropy"], gq.results.entropy(result))
        assert table.index[table["given"].notna()].tolist() == sorted(result.posterior.labelled)
    table, result = fitted.result_.to_dataframe(), fitted.result_
    assert {"latent_mean", "latent_std"} <= set(table.columns)
    np.testing.assert_array_equal(
        table[["latent_lower", "latent_upper"]], gq.credible_interval(result, 0.95)
    )
    least = table[table["given"].isna()].sort_values("rank")["id"][:5]
    np.testing.assert_array_equal(least, gq.most_uncertain(result, 5))
    assert "latent_mean" not in several.result_.to_dataframe().columns
    named = fitted.result_.to_dataframe(ids=[f"row {k}" for k in range(120)])
    assert named["id"].iloc[3] == "row 3"


def test_summary_reports_the_result(fitted):
    result, text = fitted.result_, str(fitted.result_)
    assert repr(text) == str(text)
    assert text.startswith(f"{result.trust}\n\n120 nodes, 12 labelled, 2 classes")
    upper = next(line.split() for line in text.splitlines() if line.startswith("upper"))
    assert upper[1] == str((MOONS.target[:12] == 1).sum())
    assert upper[2] == str((fitted.transduction_ == "upper").sum())
    free = np.setdiff1d(np.arange(120), result.posterior.labelled)
    uncertain = (result.probabilities[free].max(axis=1) < 0.95).sum()
    assert f"Uncertain: {uncertain} unlabelled nodes" in text
    assert result.diagnostics.verdict in text
    component = result.answer.hyperparameters["component"].astype(int)
    terms = [component[0] for component in result.posterior.prior.components]
    tau = np.array([getattr(term.prior, "tau", np.nan) for term in terms])[component]
    assert f"tau: median {np.nanmedian(tau):.4g}, 90 % interval" in text
    assert f"Log evidence: {result.log_evidence:.2f}" in text


def test_hyperparameters_report_what_the_evidence_chose(chosen, tmp_path):
    found = chosen.result_.hyperparameters
    posterior = chosen.result_.posterior
    noise = f"noise_std: {posterior.likelihood.noise_std:.4g}, chosen by"
    assert noise in str(chosen.result_)
    assert found["tau"] == posterior.prior.tau
    assert found["noise_std"] == posterior.likelihood.noise_std
    chosen.save(tmp_path / "fit.nc")
    assert gq.load(tmp_path / "fit.nc").result_.hyperparameters == found
    start = gq.Posterior(
        posterior.spectrum,
        gq.priors.Matern(),
        gq.likelihoods.Probit(),
        posterior.labelled,
        posterior.labels,
    )
    assert gq.infer(start, gq.inference.ExpectationPropagation()).hyperparameters == {}
    best = gq.maximize_evidence(start)
    result = gq.infer(best.posterior, gq.inference.ExpectationPropagation())
    assert result.hyperparameters == best.values


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_evidence_is_known_after_sampling(chosen, several, tmp_path):
    for classifier in (chosen, several):
        approximate = gq.infer(
            classifier.result_.posterior, gq.inference.ExpectationPropagation()
        ).log_evidence
        assert gq.results.is_sampled(classifier.result_)
        assert classifier.result_.log_evidence == pytest.approx(approximate, abs=1e-3)
    chosen.save(tmp_path / "fit.nc")
    assert gq.load(tmp_path / "fit.nc").result_.log_evidence == chosen.result_.log_evidence
    sampled = gq.infer(
        chosen.result_.posterior, gq.inference.PCN(), n_samples=60, n_chains=4, n_warmup=50
    )
    assert sampled.log_evidence is None
    assert gq.infer(chosen.result_.posterior, gq.inference.MAP()).log_evidence is None


def probabilities_of_gaussians(result, nodes):
    parts = [part._replace(leads=None) for part in result.answer.components]
    mixture, posterior = result.answer._replace(components=tuple(parts)), result.posterior
    rows = node_rows(posterior)[nodes]
    return summarize(mixture, posterior.field, rows, posterior.likelihood.link).label_mean


def test_arviz_shows_class_probabilities_first(fitted, several):
    for classifier in (fitted, several):  # draws, and a mixture of Gaussians
        result = classifier.result_
        data = gq.to_arviz(result)
        posterior = data["posterior"]
        probability = posterior["class_probability"]
        assert next(iter(posterior.data_vars)) == "class_probability"
        assert probability.dims == ("chain", "draw", "node", "class")
        assert posterior["class"].values.tolist() == [str(name) for name in result.classes]
        assert "white" not in posterior
        nodes = posterior["node"].values
        mean = probability.mean(("chain", "draw")).values
        error = gq.results.label_mcse(result)[nodes].reshape(len(nodes), -1).max()
        own = result.probabilities[nodes]
        if classifier is several:  # draws do not have the exact factors of labels
            own, error = probabilities_of_gaussians(result, nodes), 0.5 / np.sqrt(1_000)
        assert abs(mean - own).max() < 5 * error + 0.01
        u = posterior["u"]
        spread = abs(u.std(("chain", "draw")).values - result.latent_std[nodes])
        assert spread.max() < 0.15 * result.latent_std[nodes].max()
    white = gq.to_arviz(fitted.result_)["unconstrained_posterior"]["white"]
    assert white.shape == fitted.result_.answer.white.shape
    assert posterior.attrs["draws"] == "independent, of an approximation"
    assert not np.isin(nodes, several.result_.posterior.labelled).any()


def test_arviz_has_draws_of_gaussians_of_two_classes(chosen):
    result = gq.infer(chosen.result_.posterior, "expectation-propagation")
    posterior = gq.to_arviz(result)["posterior"]
    mean = posterior["class_probability"].mean(("chain", "draw")).values
    own = result.probabilities[posterior["node"].values]
    np.testing.assert_allclose(mean, own, atol=5 * 0.5 / np.sqrt(1_000))


@pytest.mark.slow
def test_arviz_has_learnt_hyperparameters_by_their_names(fitted):
    import arviz

    old = fitted.result_.posterior
    posterior = gq.Posterior(
        old.spectrum,
        gq.priors.Matern(tau=gq.Uniform(0.1, 1.0)),
        gq.likelihoods.Probit(),
        old.labelled,
        old.labels,
    )
    with pytest.warns(gq.GraphuqWarning):
        result = gq.infer(posterior, n_samples=60, n_chains=4)
    data = gq.to_arviz(result)
    np.testing.assert_array_equal(data["posterior"]["tau"], result.hyperparameters["tau"])
    with np.errstate(invalid="ignore"):  # ArviZ 1 divides by the variance of constant numbers
        rows = arviz.summary(data).index
    assert "tau" in rows
    assert not any(row.startswith("white") for row in rows)


@pytest.mark.slow
def test_summary_and_table_of_many_nodes_are_efficient(several):
    """A summary of 70,000 nodes is fast, and the table needs little more than its numbers."""
    from dataclasses import replace

    result, n = several.result_, 70_000
    names = ("probabilities", "mcse", "latent_mean", "latent_std")
    arrays = {name: np.resize(getattr(result, name), (n, 3)) for name in names}
    grown = replace(result, has_evidence=np.ones(n, dtype=bool), **arrays)
    vars(grown)["trust"] = result.trust  # its own checks would need a graph of as many nodes
    began = time.process_time()
    table, text = grown.to_dataframe(), str(grown)
    assert time.process_time() - began < 3.0
    assert isinstance(table, pd.DataFrame)
    assert table.memory_usage(deep=False).sum() < 120 * n
    assert sys.getsizeof(str(text)) < 5_000
