"""Truncation certificate: how far label means move if the eigenpairs left out are added.

A spectrum of ℓ of N eigenpairs without a tail leaves the directions beyond ℓ without variance. If
their eigenvalues were all λ, each would have the prior variance s̄², on the scale of the variances
s_j² of the kept eigenpairs. The field at node i would gain the variance

    t_i = scale_i² s̄² (1 − |q_i|²),    q_i the row of kept eigenvectors.

To first order, labels elsewhere do not inform this part of an unlabelled node. Its label mean
becomes that of a Gaussian with variance ``v_i + t_i`` in place of v_i. For more than two classes,
each class's field gains t_i.

- The estimate takes ``λ = λ̄``, the mean of the eigenvalues left out; the trace of the Laplacian
  gives it (Bertozzi et al. 2018, Algorithm 3, with ``tail_eigenvalue="mean"``).
- The bound takes ``λ = λ_ℓ``, the smallest value that they can have. For a decreasing variance
  function no larger variance is possible.

The first order ignores that labels become less informative, too, and that variances are normalised
again, so that it is mostly too small. Up to 1,000 labels times fields, the posterior is therefore
fitted again with each tail (`second_fit`). A tail at one eigenvalue is too small where eigenvalues
left out differ much, so that the larger of the two, on average over nodes, is what is stated.
"""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Modes, Prior
from graphuq.results.reported import label_means_as_reported
from graphuq.results.summaries.base import slices
from graphuq.results.summaries.ordered import one_link
from graphuq.results.trust.base import Check, Level, not_computed
from graphuq.results.trust.gaussian_labels import label_means_of
from graphuq.results.trust.second_fit import label_means_of_tails
from graphuq.spectrum import SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS, spectrum_of
from graphuq.spectrum.multiple_eigenvalue import CUT
from graphuq.utils.part import unchecked

if TYPE_CHECKING:
    from graphuq.results.result import Result

# A move of 0.05 of a label mean is five times the Monte-Carlo error at which sampling stops.
MAX_MOVE = 0.05
LARGE_MOVE = 0.15  # three times as much: the answer is another one
# Unlabelled nodes of the verdict; the standard error of their mean move is below 0.005.
CHECKED_NODES = 4_000
CHECKED_NUMBERS = 100_000  # nodes × classes of the verdict, which take some tenths of a second
PRIOR_DRAWS = 50  # draws of learnt hyperparameters over which the tail variance is averaged
BLOCK_ELEMENTS = 500_000  # nodes × classes × cells of one block, which fits the CPU cache
MIN_VARIANCE = 1e-6  # prior variance, relative to the mean, below which a node has none
QUESTION = "What the eigenpairs left out would change"


@dataclasses.dataclass(frozen=True)
class TruncationEffect:
    """Moves of label means if the eigenpairs left out had their share of the prior.

    A move is ``|change of label_mean|`` for two classes. For more, it is the largest change of a
    class probability.

    Attributes
    ----------
    nodes : numpy.ndarray of int, shape (M,)
        Unlabelled nodes.
    estimate : numpy.ndarray, shape (M,)
        Move of each if the eigenvalues left out all have their mean λ̄.
    bound : numpy.ndarray, shape (M,)
        Move of each if they all equal λ_ℓ, the largest one computed.
    mean_eigenvalue, last_eigenvalue : float
        λ̄ and λ_ℓ of the graph; another graph of an average has its own.
    refitted : bool
        Whether there were second fits. If not, the moves are first-order estimates, which are
        mostly too small.
    """

    nodes: Int[np.ndarray, " M"]
    estimate: Float[np.ndarray, " M"]
    bound: Float[np.ndarray, " M"]
    mean_eigenvalue: float
    last_eigenvalue: float
    refitted: bool = True

    def __repr__(self) -> str:
        return (
            f"TruncationEffect({len(self.nodes)} nodes; estimate: mean {_mean(self.estimate):.3f}, "
            f"largest {_largest(self.estimate):.3f}; bound: mean {_mean(self.bound):.3f}, "
            f"largest {_largest(self.bound):.3f})"
        )


def check_truncation(result: "Result") -> Check:
    """Check that more eigenpairs would move label means by at most 0.05 on average.

    The mean is over unlabelled nodes whose component has a label, up to 4,000 random ones;
    fewer from 25 classes on. The check is amber, too, if some copies of a multiple eigenvalue are
    cut off, or if the eigenpairs leave a node without prior variance.
    """
    posterior = result.posterior
    if reason := _reason_for_no_tail(posterior):
        return Check(0.0, MAX_MOVE, "green", reason)
    free = unlabelled_nodes(result)
    free = free[result.has_evidence[free]]
    n_checked = max(100, min(CHECKED_NODES, CHECKED_NUMBERS // posterior.n_classes))
    if len(free) > n_checked:
        free = np.sort(np.random.default_rng(0).choice(free, n_checked, replace=False))
    try:
        found = truncation_effect(result, free)
    except (IncompatibleParts, InvalidInput) as error:
        return not_computed(QUESTION, error)
    move, spectrum = _mean(found.estimate), posterior.spectrum
    level: Level = "green" if move <= MAX_MOVE else "amber" if move <= LARGE_MOVE else "red"
    numbers = (
        f"the eigenpairs beyond the first {spectrum.n_eigenpairs} of {spectrum.n_nodes} would move "
        f"label means by {move:.3f} on average (largest {_largest(found.estimate):.2f}; "
        f"{_mean(found.bound):.2f} on average if they have the largest variance they can"
        f"{'' if found.refitted else '; to first order, which is mostly too small'})"
    )
    unequal = _unequal_nodes(result)
    if level != "green":
        sentence = (
            f"The spectrum is cut off where it matters: {numbers}. Use more eigenpairs "
            "(n_eigenpairs), or tail_eigenvalue='mean'."
        )
        return Check(move, MAX_MOVE, level, f"{unequal} {sentence}".strip())
    if unequal:
        return Check(move, MAX_MOVE, "amber", unequal)
    return Check(move, MAX_MOVE, level, f"The spectrum is long enough: {numbers}.")


def _unequal_nodes(result: "Result") -> str:
    """Return what is wrong if the prior treats nodes as only the cut of the spectrum does."""
    posterior, remedy = result.posterior, "Leave n_eigenpairs out, or use tail_eigenvalue='mean'."
    spectrum = posterior.spectrum
    if spectrum.settings.get("multiple_eigenvalue") == CUT:
        return (
            f"The last of {spectrum.n_eigenpairs} eigenvalues, {last_eigenvalue(spectrum):.4g}, "
            "has more copies that were left out, so that nodes that nothing tells apart get "
            f"different probabilities. {remedy}"
        )
    fixed = np.flatnonzero(nodes_without_variance(result) & result.has_evidence)
    if len(fixed):
        return (
            f"The eigenpairs leave {len(fixed)} of {spectrum.n_nodes} nodes, such as node "
            f"{fixed[0]}, without prior variance, so that their probabilities say nothing, even "
            f"where they have labels. {remedy}"
        )
    return ""


def nodes_without_variance(result: "Result") -> Bool[np.ndarray, " N"]:
    """Return the nodes whose field has a prior variance below 1e-6 of the mean one."""
    posterior = result.posterior
    modes, spectrum = posterior.modes, posterior.spectrum
    if posterior.is_weighted:
        prior: Any = posterior.prior
        of_columns = np.exp(prior.log_probabilities) @ np.asarray(modes.stds) ** 2
    else:
        stds = [p.std_of(modes).modes for each in _priors(posterior, result.answer) for p in each]
        of_columns = np.mean(np.square(stds), axis=0)
    variance = np.empty(spectrum.n_nodes)
    n_columns = len(of_columns)
    for part in slices(spectrum.n_nodes, BLOCK_ELEMENTS // n_columns):
        rows = np.asarray(spectrum.basis[part][:, :n_columns], dtype=np.float64)
        variance[part] = np.einsum("nl,nl,l->n", rows, rows, of_columns)
    variance *= spectrum.node_scale**2
    return np.asarray(variance < MIN_VARIANCE * variance.mean())


def truncation_effect(
    result: "Result", nodes: Int[np.ndarray, " M"] | None = None
) -> TruncationEffect:
    """Return how far label means move if the eigenpairs left out are added.

    The posterior is fitted again by expectation propagation, with a tail in place of the
    eigenpairs left out; of an average, the most probable components of each block. A first-order
    estimate from the marginal means and variances of u takes its place where it is larger on
    average, beyond 1,000 labels times fields, and where expectation propagation cannot serve; see
    `graphuq.results.trust.truncation`.

    Parameters
    ----------
    result : Result
    nodes : array_like of int, shape (M,), optional
        Unlabelled nodes; all by default.

    Returns
    -------
    TruncationEffect
        Moves are 0 if nothing is left out: with all eigenpairs, with a tail, without
        eigenpairs, or if the prior chooses its own truncation.

    Raises
    ------
    IncompatibleParts
        If the number of classes is learnt, or hyperparameters of the prior are learnt and
        there are no draws of them.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=5)
    >>> posterior = gq.Posterior(spectrum, gq.priors.Matern(), gq.likelihoods.Probit(),
    ...                          np.arange(20), 2 * moons.classes[:20] - 1)
    >>> result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    >>> effect = gq.truncation_effect(result)
    >>> effect.estimate.shape
    (180,)
    >>> bool(effect.estimate.mean() < effect.bound.mean())
    True
    """
    posterior = result.posterior
    chosen = unlabelled_nodes(result) if nodes is None else np.asarray(nodes)
    if _reason_for_no_tail(posterior):
        last = last_eigenvalue(posterior.spectrum) if posterior.spectrum.has_eigenpairs else np.nan
        nothing = np.zeros(len(chosen))
        return TruncationEffect(chosen, nothing, nothing, float("nan"), float(last))
    if "n_classes" in result.answer.hyperparameters:
        raise IncompatibleParts("it is not defined with a learnt number of classes")
    spectrum = posterior.spectrum
    cut = spectrum.n_eigenpairs < spectrum.n_nodes
    mean = mean_omitted_eigenvalue(spectrum) if cut else float("nan")
    eigenvalues = mean, last_eigenvalue(spectrum)
    refits = label_means_of_tails(result, chosen, (mean_omitted_eigenvalue, last_eigenvalue))
    nothing = np.zeros(len(chosen))
    moves = [nothing, nothing]
    if cut:  # a power changes small differences by itself at most
        power = posterior.sharpness
        moves = [power * one for one in _first_order(result, chosen, eigenvalues)]
    if refits is not None:
        before, *later = (label_means_as_reported(means, result) for means in refits)
        again = [_largest_changes(after - before) for after in later]
        moves = [max(pair, key=_mean) for pair in zip(again, moves, strict=True)]
    estimate, bound = moves
    return TruncationEffect(chosen, estimate, bound, *eigenvalues, refitted=refits is not None)


def _first_order(
    result: "Result", chosen: Int[np.ndarray, " M"], eigenvalues: tuple[float, ...]
) -> list[Float[np.ndarray, " M"]]:
    """Return the moves of nodes to first order, with a tail at each of some eigenvalues."""
    posterior, spectrum = result.posterior, result.posterior.spectrum
    share = spectrum.node_scale[chosen] ** 2 * _omitted_share(spectrum, chosen)
    mean, std = result.latent_mean[chosen], result.latent_std[chosen]
    link = one_link(posterior.likelihood.link, result.answer)
    before = label_means_of(mean, std, link)
    moves = []
    for eigenvalue in eigenvalues:
        tail = _tail_variance(result, eigenvalue)  # () or (K,)
        added = np.multiply.outer(share, tail).reshape(len(share), *[-1] * (std.ndim - 1))
        after = label_means_of(mean, np.sqrt(std**2 + added), link)
        moves.append(_largest_changes(after - before))
    return moves


def _largest_changes(changes: Float[np.ndarray, "M *K"]) -> Float[np.ndarray, " M"]:
    """Return the largest change at each node."""
    axes = tuple(range(1, changes.ndim))
    return np.asarray(np.abs(changes).max(axis=axes, initial=0.0) if axes else np.abs(changes))


def unlabelled_nodes(result: "Result") -> Int[np.ndarray, " M"]:
    """Return the nodes without a label."""
    return np.setdiff1d(np.arange(len(result.has_evidence)), result.posterior.labelled)


def mean_omitted_eigenvalue(spectrum: SpectralBasis) -> float:
    """Return λ̄, the mean of the eigenvalues that were not computed, from the trace.

    The trace is the sum of the degrees for the unnormalised Laplacian, and the number of nodes with
    an edge for the others. It is at least λ_ℓ.
    """
    degrees = spectrum.degrees
    unnormalized = spectrum.settings["laplacian"] == "unnormalized"
    trace = degrees.sum() if unnormalized else (degrees > 0).sum()
    n_omitted = spectrum.n_nodes - spectrum.n_eigenpairs
    computed = spectrum.eigenvalues
    return max((float(trace) - float(computed.sum())) / n_omitted, float(computed[-1]))


def last_eigenvalue(spectrum: SpectralBasis) -> float:
    """Return λ_ℓ, the largest eigenvalue that was computed."""
    return float(spectrum.eigenvalues[-1])


def _reason_for_no_tail(posterior: Posterior) -> str:
    """Return why nothing of the prior is cut off, or "" if something may be."""
    spectrum = posterior.spectrum
    if not spectrum.has_eigenpairs:
        return "The prior is exact: it needs no eigenpairs."
    graphs = [spectrum_of(spectrum, name) for name in (EIGENPAIRS, *_blocks(spectrum))]
    if all(one is None or one.n_eigenpairs >= one.n_nodes for one in graphs):
        return "All eigenpairs are used."
    if spectrum.tail_eigenvalue is not None:
        return "The prior has a tail, which stands for the eigenpairs left out."
    if getattr(posterior.prior, "truncation", None) is not None:
        return "The prior itself chooses how many eigenpairs it has."
    return ""


def _blocks(spectrum: SpectralBasis) -> list[str]:
    return [block.name for block in spectrum.blocks]


def _omitted_share(
    spectrum: SpectralBasis, nodes: Int[np.ndarray, " M"]
) -> Float[np.ndarray, " M"]:
    """Return ``1 − |q_i|²``, the share of a node's unit vector outside the kept eigenvectors."""
    inside = np.empty(len(nodes))
    for part in slices(len(nodes), BLOCK_ELEMENTS // spectrum.n_eigenpairs):
        rows = np.asarray(spectrum.eigenvectors[nodes[part]], dtype=np.float64)
        inside[part] = np.einsum("nl,nl->n", rows, rows)
    return np.maximum(1 - inside, 0.0)


def _tail_variance(result: "Result", eigenvalue: float) -> Float[np.ndarray, "*K"]:
    """Return s̄² of eigenvectors left out, at a common eigenvalue.

    With learnt hyperparameters it is the posterior mean over draws; with hyperparameters of each
    class there is one for each class.

    Raises
    ------
    IncompatibleParts
        If hyperparameters of the prior are learnt and the answer has no draws of them.
    """
    posterior = result.posterior
    with_tail = posterior.prior.modes(posterior.spectrum.with_tail(eigenvalue))
    variances = [
        [_variance_at(prior, posterior.modes, with_tail) for prior in of_classes]
        for of_classes in _priors(posterior, result.answer)
    ]
    mean = np.mean(variances, axis=0)
    return np.asarray(mean if len(mean) > 1 else mean[0])


def _variance_at(prior: Prior, modes: Modes, with_tail: Modes) -> float:
    """Return s̄² of a prior, on the scale of the variances that it has without a tail."""
    kept, full = prior.std_of(modes), prior.std_of(with_tail)
    largest = int(np.argmax(kept.modes))
    return float(full.tail * kept.modes[largest] / full.modes[largest]) ** 2


def _priors(posterior: Posterior, answer: object) -> Iterator[list[Prior]]:
    """Yield the priors of some draws: one for all classes, or one for each class."""
    prior = posterior.prior
    drawn: Any = getattr(answer, "hyperparameters", {})
    names = [name for name in drawn if hasattr(prior, name)]
    if missing := set(prior.learnt) - set(names):
        raise IncompatibleParts(f"{', '.join(sorted(missing))} of the prior has no draws")
    if not names:
        yield [prior]
        return
    flat = {name: drawn[name].reshape(-1, *drawn[name].shape[2:]) for name in names}
    n_draws = len(flat[names[0]])
    for draw in np.unique(np.linspace(0, n_draws - 1, PRIOR_DRAWS).astype(int)):
        values = {name: flat[name][draw].astype(np.float64) for name in names}
        if posterior.per_class:
            classes = range(posterior.n_classes)
            yield [unchecked(prior, {n: v[k] for n, v in values.items()}) for k in classes]
        else:
            yield [unchecked(prior, values)]


def _mean(moves: Float[np.ndarray, " M"]) -> float:
    return float(moves.mean()) if len(moves) else 0.0


def _largest(moves: Float[np.ndarray, " M"]) -> float:
    return float(moves.max(initial=0.0))
