"""The result of inference: every node's label, its uncertainty, and the settings of the run."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import GaussianApproximation, Point
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Likelihood
from graphuq.posterior.posterior import Posterior
from graphuq.results.arviz_data import to_arviz
from graphuq.results.class_proportions import (
    ClassThreshold,
    checked_proportions,
    tuning_of_several,
    tuning_of_two,
)
from graphuq.results.convergence import convergence_table
from graphuq.results.diagnostics import (
    ApproximationDiagnostics,
    Diagnostics,
    diagnostics_from,
    monitored_functionals,
    node_rows,
    rows_outside,
)
from graphuq.results.errors_left import ErrorsLeft
from graphuq.results.label_checks import LabelChecks
from graphuq.results.label_numbers import LabelNumbers
from graphuq.results.storage import (
    answer_from,
    checked_nodes,
    node_groups,
    posterior_attributes,
    posterior_from,
    posterior_groups,
    read_tree,
    tree_of,
    write_tree,
)
from graphuq.results.summaries import (
    NodeSummaries,
    credible_interval,
    latent_draws,
    soft_label_mean,
    soft_labels,
    summarize,
)
from graphuq.results.tables import Summary, summary_of, table_of_nodes
from graphuq.results.trust.verdict import TrustVerdict
from graphuq.results.uncertainty import with_unseen
from graphuq.utils.gate import reading
from graphuq.utils.serialization import from_plain, to_plain

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MAX_NAMES = 5  # classes that the representation names
STORED = ("label_mean", "label_mcse", "latent_mean", "latent_std", "has_evidence")


@dataclasses.dataclass(frozen=True, eq=False)
class Result(TrustVerdict, LabelChecks, ErrorsLeft, LabelNumbers):
    """Posterior of every label, returned by `graphuq.infer`; `graphuq.load` reads it from a file.

    Attributes
    ----------
    label_mean : numpy.ndarray, shape (N,) or (N, K)
        ``E S(u_j)``. For two classes ``E sign(u_j)``, in [−1, 1] (Bertozzi et al. 2018, (8)), or
        with `Logistic` the mean of a label drawn given u_j. For more classes S is the unit vector
        of the largest field, and the means are the probabilities of the classes.
    label_mcse : numpy.ndarray, shape (N,) or (N, K)
        Monte-Carlo standard error of `label_mean`.
    latent_mean, latent_std : numpy.ndarray, shape (N,) or (N, K)
        Posterior mean and standard deviation of u.
    has_evidence : numpy.ndarray of bool, shape (N,)
        False for a node whose component holds no label; its distribution is the prior's.
    posterior : Posterior
    answer : Draws, GaussianApproximation or Point
        What the sampler or approximation found; every number is computed from it.
    diagnostics : Diagnostics or ApproximationDiagnostics
    settings : dict
        Settings of graph, spectrum, model and run, and the version of graphuq.
    classes : numpy.ndarray, shape (K,)
        Names of the classes, in the order of `class_probabilities`. By default the codes: −1 and
        +1, or 0 to K − 1. `GraphClassifier` sets them.
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
    classes: Any = None

    def __post_init__(self) -> None:
        n_classes = self.posterior.n_classes
        codes = np.arange(n_classes) if self.label_mean.ndim == 2 else np.array([-1, 1])
        names = codes if self.classes is None else np.asarray(self.classes)
        require(
            len(names) <= n_classes,
            "classes",
            f"{len(names)} names of {n_classes} classes",
            "give one name a class, in the order of the codes",
        )
        if len(names) < n_classes:
            names = np.array(with_unseen(names.tolist(), n_classes), dtype=object)
        object.__setattr__(self, "classes", names)

    def with_classes(self, names: Any) -> "Result":
        """Return the result with names of the classes, in the order of their codes.

        Classes without a name are numbered: "unseen 1", "unseen 2" and so on.

        Raises
        ------
        InvalidInput
            If there are more names than classes.
        """
        return dataclasses.replace(self, classes=names)

    @property
    def draws(self) -> Draws:
        """Kept draws of the chains.

        Raises
        ------
        IncompatibleParts
            If the result comes from an approximation.
        """
        if not isinstance(self.answer, Draws):
            raise IncompatibleParts(
                f"this result is an approximation ({self.answer.description}) and has no draws; "
                "use a sampler, such as PCN()"
            )
        return self.answer

    @property
    def is_sampled(self) -> bool:
        """Whether a sampler made the result, so that it has `draws`."""
        return isinstance(self.answer, Draws)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Values of the hyperparameters that the labels determined, by name.

        Draws of shape (C, S) or (C, S, m) for each one that was sampled, as `GraphClassifier` does
        by default; a number for each one that `maximize_evidence` chose.
        """
        sampled = self.posterior.prior.named_draws(self.answer.hyperparameters)
        return {**self.posterior.chosen_by_evidence, **sampled}

    @property
    def log_evidence(self) -> float | None:
        """Estimate of ``log p(labels)``, by expectation propagation or Laplace's method.

        After sampling, it is the estimate of the Gaussian approximation that was computed first.
        It is None for a point, and if there was no approximation, for instance because
        hyperparameters were learnt by sampling.
        """
        return self.answer.log_evidence

    def credible_interval(self, probability: float = 0.95) -> Float[np.ndarray, "N *K 2"]:
        """Return the equal-tailed interval of u, or of each class's u.

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
        """Posterior mean of the soft label ``ℓ(j) = p(y_j = +1 | u_j)`` for two classes.

        It is the probability that a label at the node would be +1, its noise included (Hartog &
        van Zanten 2018, §2.1). `class_probabilities` tell on which side of zero u lies.

        Raises
        ------
        IncompatibleParts
            If there are several classes, the noise is learnt, or the likelihood uses all nodes.
        """
        likelihood = self._link
        return soft_label_mean(
            self.answer, self.posterior.field, node_rows(self.posterior), likelihood
        )

    def soft_label_interval(self, probability: float = 0.95) -> Float[np.ndarray, "N 2"]:
        """Return the equal-tailed interval of the soft label with a given probability.

        Raises
        ------
        IncompatibleParts
            For the reasons of `soft_label_mean`.
        InvalidInput
            If ``probability`` is not in (0, 1).
        """
        likelihood, ends = self._link, self.credible_interval(probability)
        return soft_labels(likelihood, ends)

    def tuning(self, proportions: Any) -> ClassThreshold | None:
        """Return thresholds that give the classes these shares among the unlabelled nodes.

        See Zhu, Lafferty & Ghahramani 2003, §4, and
        `graphuq.results.class_proportions.ClassThreshold`.

        Parameters
        ----------
        proportions : array_like, shape (K,)
            Positive shares that add up to 1; for two classes those of −1 and of +1.

        Returns
        -------
        ClassThreshold or None
            None if every node is labelled, so that no node can move.
        """
        free = np.setdiff1d(np.arange(self.n_nodes), self.posterior.labelled)
        shares = checked_proportions(proportions, self.posterior.n_classes)
        if len(free) == 0:
            return None
        if self.label_mean.ndim == 2:
            return tuning_of_several(self.label_mean[free], shares)
        link = self.posterior.likelihood.link
        return tuning_of_two(self.latent_mean[free], self.latent_std[free], link, float(shares[1]))

    @property
    def _link(self) -> Likelihood:
        """The likelihood, if it gives the probability of a label at one node for two classes."""
        likelihood = self.posterior.likelihood.unshifted
        if likelihood.is_multiclass or likelihood.uses_all_nodes or likelihood.learnt:
            raise IncompatibleParts(
                f"soft labels need a likelihood of two classes with known noise, not {likelihood}; "
                "use class_probabilities"
            )
        return likelihood

    def latent_draws(self, nodes: Any) -> Float[np.ndarray, "n S *K"]:
        """Return draws of u at some nodes, all chains one after the other.

        Each row is a sample of its node's marginal posterior; its signs are a sample of the label.

        Raises
        ------
        IncompatibleParts
            If the result comes from an approximation.
        """
        rows = node_rows(self.posterior)[np.atleast_1d(np.asarray(nodes))]
        return latent_draws(self.draws, self.posterior.field, rows)

    def at_rows(
        self, eigenvectors: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
    ) -> NodeSummaries:
        """Return the posterior at nodes outside the graph, whose rows `Spectrum.extend` gives."""
        rows = rows_outside(self.posterior, eigenvectors, scale)
        return summarize(self.answer, self.posterior.field, rows, self.posterior.likelihood.link)

    def interval_at_rows(
        self,
        eigenvectors: Float[np.ndarray, "M L"],
        scale: Float[np.ndarray, " M"],
        probability: float = 0.95,
    ) -> Float[np.ndarray, "M *K 2"]:
        """Return equal-tailed intervals of u at nodes outside the graph."""
        rows = rows_outside(self.posterior, eigenvectors, scale)
        return credible_interval(self.answer, self.posterior.field, rows, probability)

    def summary(self) -> Summary:
        """Return a short text: verdict, counts by class, uncertain nodes, hyperparameters."""
        return summary_of(self)

    def to_dataframe(self, ids: Sequence[Any] | np.ndarray | None = None) -> "pd.DataFrame":
        """Return a table with one row for each node.

        Columns: ``node``; ``label``, the name of the most probable class; ``probability`` of that
        class; ``probability_NAME`` of each class; ``margin`` and ``entropy``; for two classes
        ``latent_mean`` and ``latent_std`` of u, and the ends ``latent_lower`` and
        ``latent_upper`` of its 95 % credible interval; ``uncertainty_rank``, which is 1 at the
        least certain node; ``has_evidence``; ``labelled``.

        Parameters
        ----------
        ids : sequence of length N, optional
            Values of the column ``node``; by default the indices of the nodes.
        """
        return table_of_nodes(self, ids)

    def convergence_table(self) -> dict[str, dict[str, float]]:
        """Return R-hat and effective sample sizes of each monitored functional."""
        return convergence_table(self.functionals())

    def functionals(self) -> dict[str, Float[np.ndarray, "C S"]]:
        """Return the functionals whose convergence is monitored; see `monitored_functionals`."""
        return monitored_functionals(self.posterior, self.draws)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ data: ``InferenceData`` before ArviZ 1, then a ``DataTree``.

        Group ``posterior`` holds what `arviz.summary` should show. ``class_probability`` of shape
        (chain, draw, node, class) is the probability of each class given the draw, at up to 50
        nodes; `classes` are its coordinates. Learnt hyperparameters have their own names. ``u`` is
        the latent field at the same nodes. Group ``unconstrained_posterior`` holds the white
        coordinates in which the chains move. The groups ``sample_stats``, ``observed_data`` and
        ``constant_data`` follow ArviZ's conventions. An approximation has no draws: its numbers
        are in the group ``gaussian`` or ``point``.
        """
        return to_arviz(self)

    def save(self, path: str | Path) -> None:
        """Write the result to one NetCDF file, whole or not at all; `graphuq.load` reads it.

        Raises
        ------
        StorageError
            If the file cannot be written, or a class of the user's own cannot be found again by
            its name. Nothing is written then.
        """
        write_tree(self.to_tree(), path)

    @staticmethod
    def load(path: str | Path) -> "Result":
        """Read the result in a file of `Result.save` or `GraphClassifier.save`.

        Raises
        ------
        StorageError
            If the file is missing, truncated, not a result, or of another version.
        """
        return Result.from_tree(read_tree(path), path)

    def to_tree(self) -> "xr.DataTree":
        """Return the result as groups of arrays, from which `from_tree` makes an equal one.

        Raises
        ------
        StorageError
            If the class of a prior or likelihood cannot be found again by its name.
        """
        attributes = posterior_attributes(self.posterior) | {
            "classes": json.dumps(to_plain(self.classes, "classes")),
            "diagnostics": json.dumps(self.diagnostics.to_plain()),
            "settings": json.dumps(dict(self.settings)),
        }
        groups = {
            **self.answer.to_datasets(),
            **node_groups({name: getattr(self, name) for name in STORED}),
            **posterior_groups(self.posterior),
        }
        return tree_of(groups, attributes)

    @staticmethod
    def from_tree(tree: "xr.DataTree", path: str | Path) -> "Result":
        """Return the result in a tree that was read from ``path``.

        Raises
        ------
        StorageError
            If the tree is incomplete, or a class of the user's own cannot be found.
        """
        groups = {name: child.to_dataset() for name, child in tree.children.items()}
        attributes = {str(name): value for name, value in tree.attrs.items()}
        with reading(path, "result"):
            posterior = posterior_from(groups, attributes)
            arrays = checked_nodes(groups["nodes"], STORED, posterior)
            return Result(
                **{name: arrays[name] for name in STORED[:-1]},
                has_evidence=arrays["has_evidence"].astype(bool),
                posterior=posterior,
                answer=answer_from(groups),
                diagnostics=diagnostics_from(json.loads(attributes["diagnostics"])),
                settings=json.loads(attributes["settings"]),
                classes=from_plain(json.loads(attributes.get("classes", "null"))),
            )

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.classes[:MAX_NAMES]))
        names += ", …" if len(self.classes) > MAX_NAMES else ""
        return (
            f"Result({self.n_nodes} nodes, {len(self.posterior.labels)} labelled, classes {names}, "
            f"mean label variance {self.mean_label_variance:.3f}, {self.diagnostics.state})"
        )
