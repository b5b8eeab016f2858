"""Files return what was saved, also a user's own parts; otherwise saving is refused."""

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import GraphuqWarning, InvalidInput, StorageError
from graphuq.utils.serialization import from_json, from_plain, to_json, to_plain


class Cauchy(gq.likelihoods.Likelihood):
    """Likelihood of a user, with fields of every kind that can be stored."""

    noise_std: Any = 0.5
    levels: tuple = (0.0, 1.0)
    table: Any = None
    has_gradient: ClassVar[bool] = True

    def log_prob(self, u, y):
        return jnp.log(0.5 + jnp.arctan(y * u / self.noise_std) / jnp.pi)


class Steep(gq.priors.Prior):
    """Prior of a user, with a hyperparameter to learn."""

    alpha: Any = 2.0
    include_constant: bool | None = None

    def log_variances(self, eigenvalues):
        return -self.alpha * jnp.log(jnp.asarray(eigenvalues) + 0.1)


@dataclass(frozen=True)
class Inverse:
    """A weight function of a user."""

    power: float = 2.0
    metric: str = "euclidean"

    def weight(self, distance, scale_rows, scale_columns):
        return 1 / (1 + distance) ** self.power


class Walk(gq.inference.PCN):
    """A sampler of a user."""


@dataclass(frozen=True)
class NotAPart:
    """A class that is neither prior nor likelihood."""


FEATURES = gq.datasets.two_moons(80, n_features=2, noise_std=0.1)
SPECTRUM = gq.laplacian_spectrum(gq.graphs.knn_graph(FEATURES.data, 8), n_eigenpairs=10)


def posterior_of(prior=None, likelihood=None, spectrum=SPECTRUM):
    return gq.Posterior(
        spectrum,
        prior or gq.priors.Matern(),
        likelihood or gq.likelihoods.Probit(),
        np.arange(8),
        2 * FEATURES.target[:8] - 1,
    )


def sampled(posterior, method=None):
    return gq.infer(posterior, method or gq.inference.PCN(), n_samples=60, n_chains=4)


def fitted(**options):
    y = np.where(np.arange(80) < 10, FEATURES.target, -1)
    names = np.where(y < 0, "", np.array(["lower", "upper"])[y])
    options = {"inference": "expectation-propagation"} | options
    return gq.GraphClassifier(n_neighbors=8, **options).fit(FEATURES.data, names)


pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")


@pytest.mark.slow
def test_likelihood_of_a_user_comes_back(tmp_path):
    likelihood = Cauchy(0.3, (1, 2.5), np.eye(3))
    result = sampled(posterior_of(likelihood=likelihood))
    result.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    found = again.posterior.likelihood
    assert type(found) is Cauchy
    assert found.levels == (1, 2.5)
    np.testing.assert_array_equal(found.table, np.eye(3))
    np.testing.assert_array_equal(gq.credible_interval(again), gq.credible_interval(result))


@pytest.mark.slow
def test_prior_of_a_user_with_something_learnt_comes_back(tmp_path):
    prior = Steep(gq.Uniform(1.0, 4.0))
    posterior = posterior_of(prior=prior)
    result = sampled(posterior, gq.inference.MetropolisWithinGibbs(gq.inference.Hamiltonian()))
    result.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    assert again.posterior.prior == prior
    np.testing.assert_array_equal(again.hyperparameters["alpha"], result.hyperparameters["alpha"])


@pytest.mark.slow
def test_sampler_of_a_user_saves_draws(tmp_path):
    result = sampled(posterior_of(), Walk())
    result.save(tmp_path / "fit.nc")
    stored = gq.load(tmp_path / "fit.nc").answer
    np.testing.assert_array_equal(stored.white, result.answer.white)


def test_weights_of_a_user_come_back(tmp_path):
    classifier = fitted(weights=Inverse(3.0))
    classifier.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    assert again.weights == Inverse(3.0)
    new = FEATURES.data[:5] + 0.01
    np.testing.assert_allclose(again.predict_proba(new), classifier.predict_proba(new))


@pytest.mark.slow
def test_another_process_finds_the_class(tmp_path):
    """A file is read by a process that can import the module, and refused by one that cannot."""
    (tmp_path / "my_parts.py").write_text(
        "import jax.numpy as jnp\nfrom typing import ClassVar\nimport graphuq as gq\n"
        "class Cauchy(gq.likelihoods.Likelihood):\n"
        "    noise_std: float = 0.5\n"
        "    has_gradient: ClassVar[bool] = True\n"
        "    def log_prob(self, u, y):\n"
        "        return jnp.log(0.5 + jnp.arctan(y * u / self.noise_std) / jnp.pi)\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from my_parts import Cauchy as Found

        sampled(posterior_of(likelihood=Found(0.25))).save(tmp_path / "fit.nc")
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["my_parts"]
    file = str(tmp_path / "fit.nc")
    code = f"import graphuq; print(graphuq.load({file!r}, ['my_parts']).posterior.likelihood)"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
    )
    assert "Cauchy(noise_std=0.25)" in run.stdout, run.stderr
    with pytest.raises(StorageError, match=r"'Cauchy' of module 'my_parts': not imported"):
        gq.load(tmp_path / "fit.nc")
    with pytest.raises(InvalidInput, match=r"parts: 'my_parts' cannot be imported.*PYTHONPATH"):
        gq.load(tmp_path / "fit.nc", ["my_parts"])


def test_no_file_makes_load_import_a_module(tmp_path, monkeypatch):
    """Importing runs code, which a file from somebody else must not choose."""
    trace = tmp_path / "imported"
    (tmp_path / "some_parts.py").write_text(
        "import dataclasses, pathlib\nimport graphuq as gq\n"
        f"pathlib.Path({str(trace)!r}).touch()\n"
        "class Own(gq.likelihoods.Probit):\n    pass\n"
        "@dataclasses.dataclass\nclass Plain:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("some_parts")
    result = sampled(posterior_of(likelihood=own.Own(0.3)))
    result.save(tmp_path / "fit.nc")
    assert type(gq.load(tmp_path / "fit.nc").posterior.likelihood) is own.Own
    del sys.modules["some_parts"]
    trace.unlink()
    for read in (
        lambda: gq.load(tmp_path / "fit.nc"),
        lambda: gq.results.load(tmp_path / "fit.nc"),
        lambda: from_plain({"class": "some_parts:Plain"}),
        lambda: from_json('{"class": "some_parts:Own", "noise_std": 1.0}', gq.likelihoods.Probit),
    ):
        with pytest.raises(StorageError, match="'some_parts': not imported; if you trust"):
            read()
    assert not trace.exists()
    loaded = gq.load(tmp_path / "fit.nc", parts=["some_parts"])
    assert trace.exists()
    np.testing.assert_array_equal(loaded.probabilities, result.probabilities)
    with pytest.raises(InvalidInput, match="parts: 'some_parts'; give a list"):
        gq.load(tmp_path / "fit.nc", parts="some_parts")


def local_class():
    class Local(Cauchy):
        pass

    return Local()


def class_of_the_script():
    return type("Scripted", (Cauchy,), {"__module__": "__main__"})()


def function_as_field():
    return Cauchy(table=np.sin)


def renamed_class():
    kind = type("Moved", (Cauchy,), {"__module__": __name__})
    return kind()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (local_class, "likelihood: .*Local is local to a function; define it at the top level"),
        (class_of_the_script, "Scripted of the running script.*; define it at the top level"),
        (function_as_field, r"likelihood.table: a ufunc cannot be written; use numbers"),
        (renamed_class, "'Moved' of module .*: not found"),
    ],
)
def test_parts_that_cannot_be_loaded_are_refused_before_writing(tmp_path, make, words):
    result = sampled(posterior_of(likelihood=make()))
    with pytest.raises(StorageError, match=words):
        result.save(tmp_path / "fit.nc")
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Changeable(Inverse):
    """A class whose constructor changes a field."""

    def __post_init__(self):
        object.__setattr__(self, "power", self.power + 1)


def test_part_that_changes_when_rebuilt_is_refused():
    with pytest.raises(StorageError, match="differs from the original"):
        to_json(Changeable(), "weights")


def test_class_in_a_file_must_be_of_the_right_kind():
    text = to_json(NotAPart())
    with pytest.raises(StorageError, match="not a Prior; derive the class from Prior"):
        from_json(text, gq.priors.Prior)
    with pytest.raises(StorageError, match="not a WeightFunction"):
        from_json(text, gq.graphs.weights.WeightFunction)
    with pytest.raises(StorageError, match="a class of Python itself"):
        from_plain({"class": "subprocess:Popen", "args": {"list": ["true"]}})
    with pytest.raises(StorageError, match="not a dataclass"):
        from_plain({"class": "sklearn.svm:SVC", "C": 1.0})
    with pytest.raises(StorageError, match="does not take the fields"):
        from_plain({"class": "graphuq.priors:Matern", "gone": 1})


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        "text",
        (1, 2.0, "a"),
        [1, (2,)],
        {"a": 1},
        np.float32(0.5),
        np.arange(6).reshape(2, 3),
        np.zeros((0, 3)),
        np.array(["a", "bc"]),
        np.array(["a", 1], dtype=object),
        jnp.ones(2),
        gq.Gamma(0.5, 0.125),
    ],
    ids=repr,
)
def test_values_survive_json(value):
    again = from_plain(json.loads(json.dumps(to_plain(value))))
    if isinstance(value, np.ndarray | jax.Array):
        assert again.dtype == value.dtype
        assert again.shape == value.shape
        np.testing.assert_array_equal(again, value)
    else:
        assert again == value
        assert isinstance(again, float | type(value))


def test_own_classes_are_stored_by_the_package_that_exports_them():
    assert json.loads(to_json(gq.priors.Matern()))["class"] == "graphuq.priors:Matern"


def test_load_returns_what_was_saved(tmp_path):
    classifier = fitted(class_proportions=[0.5, 0.5], missing_label="", out_of_sample="nearest")
    classifier.save(tmp_path / "c.nc")
    again = gq.load(tmp_path / "c.nc")
    assert isinstance(again, gq.GraphClassifier)
    new = FEATURES.data[:5] + 0.01
    np.testing.assert_array_equal(again.predict(new), classifier.predict(new))
    assert again.get_params() == classifier.get_params()
    assert again.classes_.tolist() == again.result_.classes.tolist() == ["lower", "upper"]
    again.add_labels([30], ["upper"])
    only = gq.results.load(tmp_path / "c.nc")
    np.testing.assert_array_equal(
        gq.results.label_mean(only), gq.results.label_mean(classifier.result_)
    )
    classifier.result_.save(tmp_path / "r.nc")
    assert type(gq.load(tmp_path / "r.nc")) is type(only)


def test_parameters_of_one_run_are_not_stored(tmp_path):
    seen = []
    classifier = fitted(
        inference=gq.inference.MCMC(n_samples=50, on_first_result=seen.append),
        random_state=np.random.default_rng(0),
    )
    assert seen[0].classes.tolist() == ["lower", "upper"]
    classifier.save(tmp_path / "c.nc")
    again = gq.load(tmp_path / "c.nc")
    assert again.inference == gq.inference.MCMC(n_samples=50)
    assert again.random_state == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "classes", [np.array([3, 7]), np.array([False, True]), np.array(["a", "b"], dtype=object)]
)
def test_classes_keep_their_type(tmp_path, classes):
    y = [classes[k] if i < 10 else None for i, k in enumerate(FEATURES.target)]
    classifier = gq.GraphClassifier(inference="expectation-propagation", missing_label=None)
    classifier.fit(FEATURES.data, np.array(y, dtype=object))
    classifier.save(tmp_path / "c.nc")
    again = gq.load(tmp_path / "c.nc")
    assert again.classes_.dtype == classifier.classes_.dtype
    np.testing.assert_array_equal(again.transduction_, classifier.transduction_)


def test_features_transformed_by_the_command_line_warn(tmp_path):
    from graphuq.cli.preprocessing import fit_preprocessing

    extra = fit_preprocessing(FEATURES.data, "standard", None).to_dataset()
    fitted().save(tmp_path / "c.nc", {"preprocessing": extra})
    with pytest.warns(GraphuqWarning, match="transform new rows in the same way"):
        gq.load(tmp_path / "c.nc")


def test_covariance_columns_and_sites_come_back(tmp_path):
    graph = gq.graphs.knn_graph(FEATURES.data, 8)
    posterior = posterior_of(gq.priors.RegularizedLaplacian(), spectrum=gq.Laplacian(graph))
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    result.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    assert repr(again.posterior) == repr(posterior)
    np.testing.assert_array_equal(again.answer.sites, result.answer.sites)
    assert again.diagnostics == result.diagnostics
