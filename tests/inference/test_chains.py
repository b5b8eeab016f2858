"""The driver of chains: adaptation, seeds, blocks, interruption and stop rules."""

import dataclasses

import jax
import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput, NotConvergedWarning, StorageError
from graphuq.inference import chains
from graphuq.inference.chains import run_chains
from graphuq.inference.draws import is_check
from graphuq.posterior.target import with_noise_sampled
from graphuq.results.convergence import convergence_of

OPTIONS = {"n_samples": 200, "n_chains": 4, "n_warmup": 500, "thin": 5}


def test_warm_up_reaches_the_target_and_freezes(posterior):
    for target in (0.2, 0.5):
        kernel = gq.inference.PCN(target_acceptance=target)
        draws = run_chains(posterior.target, kernel, **{**OPTIONS, "n_samples": 1000})
        assert draws.acceptance.mean() == pytest.approx(target, abs=0.05)
        assert draws.step_size != 0.3


def test_without_warm_up_the_step_size_is_fixed(posterior):
    draws = run_chains(posterior.target, gq.inference.PCN(0.17), **{**OPTIONS, "n_warmup": 0})
    assert draws.step_size == pytest.approx(0.17, rel=1e-12)


def test_same_seed_same_draws(posterior):
    runs = [run_chains(posterior.target, gq.inference.PCN(), rng=s, **OPTIONS) for s in (7, 7, 8)]
    np.testing.assert_array_equal(runs[0].white, runs[1].white)
    assert not np.array_equal(runs[0].white, runs[2].white)
    generators = [np.random.default_rng(3) for _ in range(2)]
    first, second = (
        run_chains(posterior.target, gq.inference.PCN(), rng=g, **OPTIONS) for g in generators
    )
    np.testing.assert_array_equal(first.white, second.white)


def test_chains_differ_and_a_shorter_run_is_a_beginning(posterior):
    long = run_chains(posterior.target, gq.inference.PCN(), **{**OPTIONS, "n_samples": 130})
    short = run_chains(posterior.target, gq.inference.PCN(), **{**OPTIONS, "n_samples": 60})
    np.testing.assert_array_equal(long.white[:, :60], short.white)
    assert len(np.unique(long.white[:, -1], axis=0)) == 4


@pytest.mark.parametrize("kernel", [gq.inference.PCN(), gq.inference.ExactHamiltonian()])
def test_interrupted_run_resumes_to_the_same_numbers(posterior, tmp_path, kernel):
    """Runs resume for a kernel that JAX compiles and for one that compiles its own steps."""
    path, target = tmp_path / "run.npz", posterior.target
    if kernel.requires_step:
        target = with_noise_sampled(target)
    whole = run_chains(target, kernel, **OPTIONS)
    for stop_at in (1, 3, 5):  # during warm-up, and during sampling
        path.unlink(missing_ok=True)
        calls = []

        def interrupt(*args, stop_at=stop_at, calls=calls):
            calls.append(args)
            if len(calls) == stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_chains(target, kernel, progress=interrupt, checkpoint=path, **OPTIONS)
        assert path.exists()
        resumed_calls = []
        resumed = run_chains(
            target,
            kernel,
            progress=lambda *args, c=resumed_calls: c.append(args),
            checkpoint=path,
            **OPTIONS,
        )
        np.testing.assert_array_equal(resumed.white, whole.white)
        np.testing.assert_array_equal(resumed.acceptance, whole.acceptance)
        assert len(resumed_calls) + stop_at == 6  # 2 blocks of warm-up, 4 of sampling


def test_interruption_while_a_block_is_awaited_loses_no_draws(posterior, tmp_path, monkeypatch):
    """Position and draws remain consistent if a block is dispatched but its draws are awaited."""
    path = tmp_path / "run.npz"
    whole = run_chains(posterior.target, gq.inference.PCN(), **OPTIONS)
    kept, count = chains._Kept, []

    class Awaited(kept):
        def __new__(cls, *args):
            count.append(1)
            if len(count) == 4:  # after two blocks of warm-up and one of sampling
                raise KeyboardInterrupt
            return kept(*args)

    _run_block = chains._run_block

    def run_block(*args):
        with monkeypatch.context() as patch:
            patch.setattr(chains, "_Kept", kept)
            return _run_block(*args)

    monkeypatch.setattr(chains, "_run_block", run_block)
    monkeypatch.setattr(chains, "_Kept", Awaited)
    with pytest.raises(KeyboardInterrupt):
        run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, **OPTIONS)
    monkeypatch.undo()
    resumed = run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, **OPTIONS)
    np.testing.assert_array_equal(resumed.white, whole.white)


def test_checkpoint_of_another_run_is_refused(posterior, tmp_path):
    path = tmp_path / "run.npz"
    run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, **OPTIONS)
    with pytest.raises(InvalidInput, match="belongs to another run"):
        run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, rng=1, **OPTIONS)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StorageError, match="is not a readable checkpoint"):
        run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, **OPTIONS)


def test_stopping_does_not_depend_on_interruption(posterior, tmp_path):
    path = tmp_path / "run.npz"
    rule = lambda draws: "enough" if draws.n_samples >= 200 else None  # noqa: E731
    options = {**OPTIONS, "n_samples": 1000, "stop": rule}
    whole = run_chains(posterior.target, gq.inference.PCN(), **options)
    calls = []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_chains(
            posterior.target, gq.inference.PCN(), progress=interrupt, checkpoint=path, **options
        )
    resumed = run_chains(posterior.target, gq.inference.PCN(), checkpoint=path, **options)
    assert whole.stopped_by == resumed.stopped_by == "enough"
    np.testing.assert_array_equal(resumed.white, whole.white)


def test_stops_once_converged(posterior):
    result = gq.infer(posterior, gq.inference.PCN(), n_samples=20_000, thin=10, stop=gq.Converged())
    assert result.answer.n_samples < 20_000
    assert result.diagnostics.converged
    assert "R-hat below 1.01" in result.diagnostics.stopped_by


def test_too_short_a_run_warns(posterior):
    with pytest.warns(NotConvergedWarning, match=r"NOT converged .* Do not rely"):
        result = gq.infer(posterior, gq.inference.PCN(), n_samples=10, n_chains=2, thin=1)
    assert not result.diagnostics.converged


def test_equation_17_against_the_n_dimensional_running_mean(posterior):
    """The rule, which uses ℓ coefficients, agrees with its computation on all nodes."""
    draws = run_chains(posterior.target, gq.inference.PCN(), **{**OPTIONS, "n_samples": 400})
    one = {n: getattr(draws, n)[:1] for n in ("white", "log_likelihood", "acceptance")}
    draws = dataclasses.replace(draws, **one)
    with jax.enable_x64(True):
        coefficients = np.asarray(posterior.field.mean_coefficients(draws.white[0]))
        u = coefficients @ posterior.spectrum.eigenvectors.T
        u[:, posterior.labelled] = np.asarray(jax.vmap(posterior.field.at_labelled)(draws.white[0]))
    running = np.cumsum(u, axis=0) / np.arange(1, 401)[:, None]
    every = 100  # steps: 20 kept draws
    moved = np.linalg.norm(np.diff(running[19::20], axis=0), axis=1)
    tolerance = float(np.sort(moved)[3])
    first = (np.flatnonzero(moved <= tolerance)[0] + 2) * every
    rule = gq.CumulativeMean(tolerance=tolerance * (1 + 1e-9), every=every)
    assert f"first at step {first}" in rule(posterior, draws)
    assert gq.CumulativeMean(tolerance=moved.min() * 0.99, every=every)(posterior, draws) is None


def test_diagnostics_see_a_stuck_chain(posterior):
    draws = run_chains(posterior.target, gq.inference.PCN(), **OPTIONS)
    values = draws.white[..., 0].copy()
    good = convergence_of({"x": values})["x"]
    values[0] += 3
    bad = convergence_of({"x": values})["x"]
    assert good["rhat"] < 1.1 < 1.3 < bad["rhat"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 1}, "n_samples: 1; use 4 or more"),
        ({"n_chains": 0}, "n_chains: 0"),
        ({"thin": 0}, "thin: 0"),
        ({"n_samples": 10**9}, r"fill 192 GB; keep \d+ or fewer and raise thin"),
        ({"n_warmup": -1}, "n_warmup: -1"),
        ({"precision": "float16"}, "'float16' is unknown"),
    ],
)
def test_bad_lengths(posterior, options, words):
    with pytest.raises(InvalidInput, match=words):
        run_chains(posterior.target, gq.inference.PCN(), **options)


@pytest.mark.parametrize("options", [{"step_size": 0.0}, {"step_size": 1.5}])
def test_bad_step_size(options):
    with pytest.raises(InvalidInput, match="use β in"):
        gq.inference.PCN(**options)


def test_global_settings_of_jax_are_unchanged(posterior):
    run_chains(posterior.target, gq.inference.PCN(), **OPTIONS)
    assert jax.numpy.ones(1).dtype == np.float32


def test_memory_of_a_run_is_below_draws_times_nodes(posterior):
    draws = run_chains(posterior.target, gq.inference.PCN(), **OPTIONS)
    assert draws.white.shape == (4, 200, posterior.dimension)
    assert posterior.dimension <= len(posterior.labelled)


def test_stop_rules_are_checked_at_fixed_counts():
    asked = [done for done in range(50, 2001, 50) if is_check(done)]
    assert asked[0] == 100
    assert len(asked) < 15
