"""The immutable answer: what is known of every node, whether to believe it, and how it was got."""

import dataclasses
import json
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.special import entr

from graphuq.errors import IncompatibleParts, NotConvergedWarning, require
from graphuq.inference import Approximation, GaussianApproximation, Point, Sampler
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import of_one_class
from graphuq.posterior.posterior import Posterior
from graphuq.results.class_proportions import (
    ClassThreshold,
    checked_proportions,
    tuning_of_several,
    tuning_of_two,
)
from graphuq.results.diagnostics import (
    ApproximationDiagnostics,
    Diagnostics,
    convergence_table,
    import_arviz,
    monitored_functionals,
    node_rows,
)
from graphuq.results.storage import (
    arrays_of,
    basis_group,
    draws_groups,
    gaussian_group,
    part_to_json,
    point_group,
    version,
    write_tree,
)
from graphuq.results.summaries import (
    NodeSummaries,
    Rows,
    credible_interval,
    latent_draws,
    soft_label_mean,
    soft_labels,
    summarize,
)
from graphuq.results.uncertainty import class_probabilities, margin, rank_by_uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """Posterior of every label; made by `infer`, read back by `load`.

    Attributes
    ----------
    label_mean : numpy.ndarray, shape (N,) or (N, K)
        ``E S(u_j)``. Two classes: ``E sign(u_j)``, in [−1, 1] (Bertozzi et al. 2018, (8)), or with
        `Logistic` the mean of a label drawn there. Several: S is the unit vector of the largest
        field, and these are the probabilities of the classes.
    label_mcse : numpy.ndarray, shape (N,) or (N, K)
        Monte-Carlo standard error of `label_mean`.
    latent_mean, latent_std : numpy.ndarray, shape (N,) or (N, K)
        Posterior mean and standard deviation of u.
    has_evidence : numpy.ndarray of bool, shape (N,)
        False where a node's component holds no label, so that its answer is the prior's.
    posterior : Posterior
    answer : Draws, Gaussian or Point
        What the sampler or approximation found; every number is computed from it.
    diagnostics : Diagnostics or ApproximationDiagnostics
    settings : dict
        How graph, spectrum, model and run were set, and the version that ran.
    """

    label_mean: Float[np.ndarray, "N *K"]
    label_mcse: Float[np.ndarray, "N *K"]
    latent_mean: Float[np.ndarray, "N *K"]
    latent_std: Float[np.ndarray, "N *K"]
    has_evidence: Bool[np.ndarray, " N"]
    posterior: Posterior
    answer: Draws | GaussianApproximation | Point
    diagnostics: Diagnostics | ApproximationDiagnostics
    settings: Mapping[str, Any]

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.label_mean)

    @property
    def draws(self) -> Draws:
        """The kept draws.

        Raises
        ------
        IncompatibleParts
            If the result is an approximation's.
        """
        if not isinstance(self.answer, Draws):
            raise IncompatibleParts(
                f"this result is an approximation ({self.answer.description}) and has no draws; "
                "use a sampler, such as PCN()"
            )
        return self.answer

    @property
    def hyperparameters(self) -> dict[str, np.ndarray]:
        """Draws, shape (C, S) or (C, S, m), of each hyperparameter that was learnt, by name."""
        return dict(self.answer.hyperparameters) if isinstance(self.answer, Draws) else {}

    @property
    def log_evidence(self) -> float | None:
        """Estimate of ``log p(labels)``; None where the method has none."""
        return self.answer.log_evidence if isinstance(self.answer, GaussianApproximation) else None

    @property
    def label_variance(self) -> Float[np.ndarray, " N"]:
        """``E|S(u_j)|² − |E S(u_j)|² = 1 − |label_mean|²``, in [0, 1]."""
        return 1 - (self.label_mean**2).reshape(self.n_nodes, -1).sum(axis=1)

    @property
    def mean_label_variance(self) -> float:
        """Label variance averaged over all nodes (Bertozzi et al. 2018, (9))."""
        return float(self.label_variance.mean())

    @property
    def class_probabilities(self) -> Float[np.ndarray, "N K"]:
        """Probability of each class at each node; of two, of −1 and of +1."""
        return class_probabilities(self.label_mean)

    @property
    def labels(self) -> Float[np.ndarray, " N"]:
        """The most probable label of each node: −1 or +1 (+1 on a tie), or the code of a class."""
        if self.label_mean.ndim == 2:
            return self.label_mean.argmax(axis=1).astype(np.float64)
        return np.where(self.label_mean >= 0, 1.0, -1.0)

    @property
    def entropy(self) -> Float[np.ndarray, " N"]:
        """``−Σ p log p`` over the classes of each node, in [0, log K]."""
        return np.asarray(entr(self.class_probabilities).sum(axis=1))

    @property
    def margin(self) -> Float[np.ndarray, " N"]:
        """Probability of the most probable class over that of the next, in [0, 1]."""
        return margin(self.label_mean)

    def credible_interval(self, probability: float = 0.95) -> Float[np.ndarray, "N *K 2"]:
        """Equal-tailed interval that holds u_j, or each of its fields, with a given probability.

        Raises
        ------
        InvalidInput
            If ``probability`` is not in (0, 1).
        """
        require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
        rows = node_rows(self.posterior)
        return credible_interval(self.answer, self.posterior.field, rows, probability)

    @cached_property
    def soft_label_mean(self) -> Float[np.ndarray, " N"]:
        """Posterior mean of the soft label ``ℓ(j) = p(y_j = +1 | u_j)``, of two classes.

        How often a label there would be +1, its noise included (Hartog & van Zanten 2018, §2.1),
        where `class_probabilities` say on which side of zero u lies.

        Raises
        ------
        IncompatibleParts
            If there are several classes, the noise is learnt, or the likelihood is of all nodes.
        """
        likelihood = self._link
        return soft_label_mean(
            self.answer, self.posterior.field, node_rows(self.posterior), likelihood
        )

    def soft_label_interval(self, probability: float = 0.95) -> Float[np.ndarray, "N 2"]:
        """Equal-tailed interval that holds the soft label with a given probability.

        Raises
        ------
        IncompatibleParts
            As `soft_label_mean`.
        InvalidInput
            If ``probability`` is not in (0, 1).
        """
        likelihood, ends = self._link, self.credible_interval(probability)
        return soft_labels(likelihood, ends)

    def tuning(self, proportions: Any) -> ClassThreshold:
        """How to move labels and probabilities so that classes have these shares.

        Among the unlabelled nodes (Zhu, Lafferty & Ghahramani 2003, §4); see
        `graphuq.results.class_proportions.ClassThreshold`.

        Parameters
        ----------
        proportions : array_like, shape (K,)
            Of two classes those of −1 and of +1.
        """
        free = np.setdiff1d(np.arange(self.n_nodes), self.posterior.labelled)
        shares = checked_proportions(proportions, self.posterior.n_classes)
        if self.label_mean.ndim == 2:
            return tuning_of_several(self.label_mean[free], shares)
        link = self.posterior.likelihood.link
        return tuning_of_two(self.latent_mean[free], self.latent_std[free], link, float(shares[1]))

    @property
    def _link(self) -> Likelihood:
        """The likelihood, where it says what a label of two classes would be at one node."""
        likelihood = self.posterior.likelihood
        if likelihood.is_multiclass or likelihood.uses_all_nodes or likelihood.learnt:
            raise IncompatibleParts(
                f"soft labels are those of two classes whose noise is known, and there is "
                f"{likelihood}; use class_probabilities"
            )
        return likelihood

    def latent_draws(self, nodes: Any) -> Float[np.ndarray, "n S *K"]:
        """Draws of u at some nodes, all chains one after the other: their marginal posteriors.

        Each row is a sample of its node's marginal; the signs are one of its label's.

        Raises
        ------
        IncompatibleParts
            If the result is an approximation's.
        """
        rows = node_rows(self.posterior)[np.atleast_1d(np.asarray(nodes))]
        return latent_draws(self.draws, self.posterior.field, rows)

    def rank_by_uncertainty(self) -> Int[np.ndarray, " N"]:
        """Node indices from the least to the most certain; see `rank_by_uncertainty`."""
        return rank_by_uncertainty(self.label_mean)

    def most_uncertain(self, n: int = 20) -> Int[np.ndarray, " n"]:
        """The n least certain unlabelled nodes, the least certain first."""
        return self._unlabelled_in(self.rank_by_uncertainty())[:n]

    def most_certain(self, n: int = 20) -> Int[np.ndarray, " n"]:
        """The n most certain unlabelled nodes, the most certain first."""
        return self._unlabelled_in(self.rank_by_uncertainty()[::-1])[:n]

    def at_rows(
        self, eigenvectors: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
    ) -> NodeSummaries:
        """Posterior of nodes outside the graph, from `Spectrum.extend` and `extend_scale`."""
        rows = Rows(eigenvectors, scale, np.full(len(scale), -1))
        return summarize(self.answer, self.posterior.field, rows, self.posterior.likelihood.link)

    def interval_at_rows(
        self,
        eigenvectors: Float[np.ndarray, "M L"],
        scale: Float[np.ndarray, " M"],
        probability: float = 0.95,
    ) -> Float[np.ndarray, "M *K 2"]:
        """Equal-tailed intervals of u at nodes outside the graph."""
        rows = Rows(eigenvectors, scale, np.full(len(scale), -1))
        return credible_interval(self.answer, self.posterior.field, rows, probability)

    def convergence_table(self) -> dict[str, dict[str, float]]:
        """R-hat and effective sample sizes of each monitored functional."""
        return convergence_table(self.functionals())

    def functionals(self) -> dict[str, Float[np.ndarray, "C S"]]:
        """What is monitored: log likelihood, what is learnt, u (its mean given a draw) at nodes."""
        return monitored_functionals(self.posterior, self.draws)

    def to_arviz(self) -> Any:
        """As ArviZ data: ``InferenceData`` before ArviZ 1, a ``DataTree`` from then on.

        Groups ``posterior`` (white coordinates; u at 50 monitored nodes; what was learnt, as
        ``hyperparameter_tau`` and so on), ``sample_stats``,
        ``observed_data`` and ``constant_data``.
        """
        groups = self._groups()
        arviz = import_arviz()
        if hasattr(arviz, "InferenceData"):
            return arviz.InferenceData(**groups)
        return xr.DataTree.from_dict(groups)

    def save(self, path: str | Path) -> None:
        """Write to one NetCDF file, whole or not at all; read it with `load`.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        write_tree(self.to_tree(), path)

    def to_tree(self) -> xr.DataTree:
        """All of it as groups of arrays: ArviZ's, and ``nodes``, ``spectrum``, ``field``."""
        node_arrays = {
            name: (("node", "class")[: getattr(self, name).ndim], getattr(self, name))
            for name in ("label_mean", "label_mcse", "latent_mean", "latent_std", "has_evidence")
        }
        tree = xr.DataTree.from_dict(
            {
                **self._groups(),
                "nodes": xr.Dataset(node_arrays),
                "spectrum": basis_group(self.posterior.spectrum),
                "field": arrays_of(of_one_class(self.posterior.field), "field"),
            }
        )
        tree.attrs |= {
            "prior": part_to_json(self.posterior.prior),
            "likelihood": part_to_json(self.posterior.likelihood),
            "per_class": int(self.posterior.per_class),
            "diagnostics": json.dumps(dataclasses.asdict(self.diagnostics)),
            "settings": json.dumps(dict(self.settings)),
        }
        return tree

    def _groups(self) -> dict[str, xr.Dataset]:
        observed = xr.Dataset({"label": ("labelled_node", self.posterior.labels)})
        constant = xr.Dataset({"labelled": ("labelled_node", self.posterior.labelled)})
        groups = {"observed_data": observed, "constant_data": constant}
        if isinstance(self.answer, GaussianApproximation):
            return {"gaussian": gaussian_group(self.answer), **groups}
        if isinstance(self.answer, Point):
            return {"point": point_group(self.answer), **groups}
        latent = {k: v for k, v in self.functionals().items() if k.startswith("u[")}
        return {**draws_groups(self.answer, latent), **groups}

    def _unlabelled_in(self, order: Int[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
        return order[~np.isin(order, self.posterior.labelled)]

    def __repr__(self) -> str:
        state = "converged" if self.diagnostics.converged else "NOT converged"
        if not isinstance(self.answer, Draws):
            state = "approximation"
        return (
            f"Result({self.n_nodes} nodes, {len(self.posterior.labels)} labelled, mean label "
            f"variance {self.mean_label_variance:.3f}, {state})"
        )


def run_settings(
    posterior: Posterior,
    method: Sampler | Approximation,
    seed: int | np.random.Generator,
    precision: str,
) -> dict[str, Any]:
    """What made a result, as plain data."""
    return {
        **posterior.spectrum.settings,
        "prior": repr(posterior.prior),
        "likelihood": repr(posterior.likelihood),
        "n_labelled": len(posterior.labelled),
        "inference": repr(method),
        "seed": seed if isinstance(seed, int) else "generator",
        "precision": precision,
        "graphuq_version": version(),
    }


def warn_unless_converged(diagnostics: Diagnostics | ApproximationDiagnostics) -> None:
    """Say in words that the numbers are not to be trusted yet."""
    if not diagnostics.converged:
        warnings.warn(diagnostics.verdict, NotConvergedWarning, stacklevel=3)
