"""The posterior: prior times likelihood at the labelled nodes."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from graphuq.distributions import Distribution
from graphuq.errors import IncompatibleParts, require
from graphuq.likelihoods import Likelihood
from graphuq.likelihoods.shifted import shifted
from graphuq.posterior.experts import Expert
from graphuq.posterior.field import (
    ClassField,
    CoefficientField,
    Field,
    LabelledField,
    LowRankField,
    NodeField,
    coefficient_field_with_tail,
    columns_field,
    labelled_field,
    series_field,
)
from graphuq.posterior.given_labels import (
    check_design,
    check_labels,
    check_part,
    check_prior_mean,
    check_weights,
    weights_after,
)
from graphuq.posterior.hierarchical import HierarchicalTarget
from graphuq.posterior.random_series import ProbitSeries
from graphuq.posterior.target import Target
from graphuq.priors import Prior, SpectralStd
from graphuq.spectrum import CovarianceColumns, Laplacian, SpectralBasis
from graphuq.spectrum.basis import NodeBasis
from graphuq.utils.concurrency import cached_property


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """Distribution of the field, and so of every label, given labels on a few nodes.

    ``p(u | y) ∝ p(u) ∏_j p(y_j | u_j)``; see docs/theory/posterior.md.

    Parameters
    ----------
    spectrum : Spectrum, Basis or Laplacian
        What `graphuq.laplacian_spectrum` returns, or a `graphuq.Basis`. With a `Laplacian`
        instead, no eigenvector is left out of the prior, `Matern` or `RegularizedLaplacian`: one
        column of its covariance is solved for each label (docs/theory/graphs.md, "Gaussian
        fields, solved for instead of expanded").
    prior : Prior
    likelihood : Likelihood
    labelled : array_like of int, shape (J,)
        Indices of the labelled nodes, without repetition.
    labels : array_like, shape (J,)
        For two classes −1 or +1, both of which must occur. For a multiclass likelihood, and grades,
        codes from 0 to K − 1, two of which must occur; other classes may be without labels.
    label_weights : array_like, shape (J,), optional
        Weight w > 0 of each label, 1 by default: the variance of its noise is γ²/w. Only for
        likelihoods that are S(u + noise), such as `Probit`; not for a field with a tail and more
        labels than eigenpairs, nor for `RandomSeries` (docs/theory/labels.md, "Weights of labels").
    prior_mean : float or array_like of shape (N,), optional
        μ, the prior mean of u at every node, for two classes; zero by default. How `likelihood`
        changes, and constants are learnt, is in docs/theory/posterior.md, "Prior mean".
    per_class : bool, default False
        Whether each class of a multiclass likelihood learns the prior's hyperparameters for
        itself.
    label_design : {"random", "by-class"}, default "random"
        How the labelled nodes were chosen. "by-class": someone chose how many of each class, so
        that numbers of labels are no evidence about class shares. For two classes it needs a
        mixture of priors, which takes shares for unknown; see docs/theory/class_shares.md, "Labels
        chosen class by class". For more, the unlabelled nodes tell the shares as far as they can.
    experts : tuple of Expert, default ()
        Answers to be averaged with these; see `graphuq.models.Pooled`.
    sharpness : float, default 1
        Power of reported probabilities; see docs/theory/average.md, "An average is too cautious".
    chosen_by_evidence : dict
        Values of hyperparameters that `maximize_evidence` chose, by name, for reports. A value
        that prior and likelihood no longer have is left out.

    Attributes
    ----------
    learnt : dict of str to Distribution
        Hyperparameters of prior and likelihood that are distributions, by name.
    field : LabelledField or ClassField
        The Gaussian field at the labelled nodes, and the rest given it.
    target : Target or HierarchicalTarget
        The posterior in white coordinates, as samplers see it.
    has_evidence : numpy.ndarray of bool, shape (N,)
        Whether a node's component of a graph has a label, or it has features beside a given graph.

    Raises
    ------
    InvalidInput
        If a part is of the wrong kind, for instance prior and likelihood exchanged. If there are
        no labels, labels of one class only, or labels other than ±1 or codes. If a labelled node
        does not exist or occurs twice.
    IncompatibleParts
        If a Laplacian is given and the prior needs eigenpairs; if weights or a prior mean are
        given and the likelihood takes none.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.InverseLaplacian(),
    ...                          gq.likelihoods.Probit(), labelled=[0, 8], labels=[-1, 1])
    >>> posterior.dimension
    2
    """

    spectrum: Any
    prior: Prior
    likelihood: Likelihood
    labelled: Any
    labels: Any
    per_class: bool = False
    chosen_by_evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    label_weights: Any = None
    prior_mean: Any = None
    label_design: str = "random"
    experts: tuple[Expert, ...] = ()
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        check_part("spectrum", self.spectrum, NodeBasis | Laplacian)
        check_part("prior", self.prior, Prior)
        check_part("likelihood", self.likelihood, Likelihood)
        likelihood, n_nodes = self.likelihood.unshifted, self.spectrum.n_nodes
        labelled, labels = check_labels(self.labelled, self.labels, self.spectrum, likelihood)
        object.__setattr__(self, "labelled", labelled)
        object.__setattr__(self, "labels", labels)
        weights = check_weights(self.label_weights, len(labelled), likelihood)
        object.__setattr__(self, "label_weights", weights)
        mean = check_prior_mean(self.prior_mean, n_nodes, likelihood, labels, weights)
        object.__setattr__(self, "prior_mean", mean)
        if mean is not None:
            at = mean if isinstance(mean, float) else mean[self.observed_nodes]
            likelihood = shifted(likelihood, at)
        object.__setattr__(self, "likelihood", likelihood)
        object.__setattr__(self, "spectrum", self._basis())
        if self.spectrum.has_eigenpairs:
            object.__setattr__(self, "prior", self.prior.bind(self.spectrum))
        check_design(self.label_design, likelihood.has_codes, self.is_weighted)
        chosen = {n: v for n, v in self.chosen_by_evidence.items() if self._has_value(n, v)}
        object.__setattr__(self, "chosen_by_evidence", chosen)
        if self.per_class and not (self.likelihood.is_multiclass and self.prior.learnt):
            raise IncompatibleParts(
                "per_class=True needs a multiclass likelihood and a prior with learnt "
                f"hyperparameters, and not {self.likelihood} and {self.prior}; leave it out"
            )

    def _has_value(self, name: str, value: object) -> bool:
        """Return whether prior or likelihood has a hyperparameter of this value."""
        found = getattr(self.prior if hasattr(self.prior, name) else self.likelihood, name, None)
        return isinstance(found, int | float | np.generic) and bool(found == value)

    def relabelled(self, nodes: Any, labels: Any) -> "Posterior":
        """Return the posterior with labels of more nodes, or with other labels of some.

        Parameters
        ----------
        nodes : array_like of int, shape (M,)
            Nodes without repetition, labelled before or not.
        labels : array_like, shape (M,)
            Their labels, coded as in ``labels``.

        Raises
        ------
        InvalidInput
            As `Posterior`, or if the shapes differ.
        """
        nodes, labels = np.asarray(nodes), np.asarray(labels)
        require(
            nodes.ndim == 1 and nodes.shape == labels.shape,
            "nodes",
            f"shape {nodes.shape} beside {labels.shape} labels",
            "give one label per node",
        )
        kept = ~np.isin(self.labelled, nodes)
        return dataclasses.replace(
            self,
            labelled=np.append(self.labelled[kept], nodes),
            labels=np.append(self.labels[kept], labels),
            label_weights=weights_after(self.label_weights, kept, len(nodes)),
            experts=(),  # they saw other labels
        )

    def _basis(self) -> SpectralBasis | CovarianceColumns:
        """Return the spectrum, or columns of the prior's covariance at the labelled nodes."""
        if self.spectrum.has_eigenpairs:
            if self.spectrum.blocks and self.spectrum.tail_eigenvalue is not None:
                raise IncompatibleParts(
                    f"{self.spectrum} has a tail and functions of features, which are not "
                    "orthogonal to it; leave tail_eigenvalue or the functions out"
                )
            return self.spectrum
        if self.learnt or self.likelihood.uses_all_nodes:
            raise IncompatibleParts(
                f"{self.prior} with {self.likelihood} cannot be solved exactly: learnt "
                "hyperparameters and likelihoods on all nodes need eigenpairs; give numbers, or "
                "pass laplacian_spectrum(graph)"
            )
        return CovarianceColumns.of(self.spectrum, self.prior.precision, self.labelled)

    @property
    def n_fields(self) -> int:
        """Number of fields at a node: K if the likelihood is multiclass, else 1."""
        return self.likelihood.n_fields

    @property
    def n_classes(self) -> int:
        """Largest number of classes."""
        return self.likelihood.max_classes

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, of prior and likelihood, by name."""
        return {**self.prior.learnt, **self.likelihood.learnt}

    @property
    def is_weighted(self) -> bool:
        """Whether this is a weighted set of posteriors, one for each component of a mixture."""
        return self.prior.is_mixture and bool(self.prior.learnt)

    def component(self, number: int) -> "Posterior":
        """Return the posterior of one component of a mixture of priors."""
        modes, own = self.modes, cast(Any, self.prior).only(number)
        one = {"prior": own, "likelihood": self.likelihood.of_component(number)}
        found = dataclasses.replace(self, **one, label_design="random", sharpness=1.0)
        found.__dict__["std"] = SpectralStd(modes.stds[number], float(modes.tails[number]))
        return found

    @cached_property
    def modes(self) -> Any:
        """Eigenvalues and energies as the prior uses them; of a mixture, all deviations too."""
        return self.prior.modes(self.spectrum)

    @cached_property
    def std(self) -> SpectralStd:
        """Spectral standard deviations of the prior.

        Raises
        ------
        IncompatibleParts
            If the posterior was made from a Laplacian, without eigenpairs.
        """
        if not self.spectrum.has_eigenpairs:
            raise IncompatibleParts(
                "the columns of a covariance have no eigenvalues; make the posterior from "
                "laplacian_spectrum(graph)"
            )
        return self.prior.spectral_std(self.spectrum)

    @cached_property
    def field(self) -> LabelledField | ClassField:
        """The Gaussian field at the observed nodes, and the distribution of the rest given it.

        If hyperparameters are learnt, its coordinates are the coefficients of the series.
        """
        field = self._field_of_one_class
        return ClassField(field, self.n_fields) if self.likelihood.is_multiclass else field

    @property
    def label_scale(self) -> Float[np.ndarray, " J"]:
        """Factor √w of u at each observed node, times the node scale."""
        scale: np.ndarray = self.spectrum.node_scale[self.observed_nodes]
        return scale if self.label_weights is None else np.sqrt(self.label_weights) * scale

    @property
    def _field_of_one_class(self) -> LabelledField:
        field = self._field_without_weights
        if self.label_weights is None or self.learnt:  # with learnt ones the target has them
            return field
        if not isinstance(field, LowRankField):
            raise IncompatibleParts(
                "weights of labels need a field without a tail, or with fewer labels than "
                "eigenpairs; compute the spectrum with tail_eigenvalue=False"
            )
        return field.weighted(np.sqrt(self.label_weights))

    @property
    def _field_without_weights(self) -> LabelledField:
        if self.learnt:
            if self.has_series:  # no node is special
                return CoefficientField.of(self.spectrum, np.arange(0), self.series.n_modes)
            assert isinstance(self.target, HierarchicalTarget)
            if self.target.has_tail:
                return coefficient_field_with_tail(self.spectrum, self.observed_nodes)
            return CoefficientField.of(self.spectrum, self.observed_nodes, self.target.n_modes)
        if not self.spectrum.has_eigenpairs:
            return columns_field(self.spectrum)
        if self.likelihood.uses_all_nodes and self.std.tail == 0.0:
            return series_field(self.spectrum, self.std)
        return labelled_field(self.spectrum, self.std, self.observed_nodes)

    @cached_property
    def observed_nodes(self) -> Int[np.ndarray, " J"]:
        """Nodes that the likelihood uses: the labelled ones, or all."""
        return np.arange(self.spectrum.n_nodes) if self.likelihood.uses_all_nodes else self.labelled

    @cached_property
    def observed_labels(self) -> Float[np.ndarray, " J"]:
        """Labels of `observed_nodes`; without label 0, or −1 for more than two classes."""
        if not self.likelihood.uses_all_nodes:
            return self.labels
        labels = np.full(self.spectrum.n_nodes, -1.0 if self.likelihood.has_codes else 0.0)
        labels[self.labelled] = self.labels
        return labels

    @property
    def node_mean(self) -> Float[np.ndarray, " N"] | None:
        """Prior mean of u at every node, or None without one."""
        mean = self.prior_mean
        return None if mean is None else np.broadcast_to(mean, self.spectrum.n_nodes)

    @cached_property
    def target(self) -> Target | HierarchicalTarget:
        """The posterior in white coordinates of the field at the observed nodes."""
        if self.learnt:
            return HierarchicalTarget.of(
                self.spectrum,
                self.prior,
                self.likelihood,
                self.observed_nodes,
                self.observed_labels,
                self.per_class,
                self.label_scale,
                self.modes,
            )
        return Target(self.field, self.likelihood, self.observed_labels)

    @cached_property
    def has_series(self) -> bool:
        """Whether `ReversibleJump` can sample it."""
        try:
            return bool(self.series.n_modes)
        except IncompatibleParts:
            return False

    @cached_property
    def series(self) -> ProbitSeries:
        """The random series that `ReversibleJump` samples.

        Raises
        ------
        IncompatibleParts
            If this is not a `RandomSeries` with a `Probit` of two classes.
        """
        if self.label_weights is not None:
            raise IncompatibleParts(
                "a random series has no weights of labels; use another prior, such as Matern()"
            )
        parts = self.spectrum, self.prior, self.likelihood
        return ProbitSeries.of(*parts, self.labelled, self.labels)

    @property
    def plain_target(self) -> Target:
        """The target of a posterior without learnt hyperparameters.

        Raises
        ------
        IncompatibleParts
            If a hyperparameter is learnt.
        """
        if not isinstance(self.target, Target):
            raise IncompatibleParts(f"{', '.join(self.learnt)} is learnt; give a number instead")
        return self.target

    @property
    def node_target(self) -> Target:
        """The target in the papers' N-dimensional form: slow, used by tests."""
        spectrum = self.spectrum
        if self.label_weights is not None:
            raise IncompatibleParts("the N-dimensional form has no weights of labels; use target")
        field: Field = NodeField(spectrum.basis, self.std, spectrum.node_scale, self.observed_nodes)
        if self.likelihood.is_multiclass:
            field = ClassField(field, self.n_fields)
        return Target(field, self.likelihood, self.observed_labels)

    @property
    def dimension(self) -> int:
        """Number of white coordinates of `target`."""
        return self.target.dimension

    @property
    def has_evidence(self) -> np.ndarray:
        """Whether labels inform a node, shape (N,); see `NodeBasis.informed_by`."""
        return np.asarray(self.spectrum.informed_by(self.labelled))

    def __repr__(self) -> str:
        columns = "eigenpairs" if self.spectrum.has_eigenpairs else "covariance columns"
        size = f"{self.spectrum.n_nodes} nodes, {self.spectrum.n_columns} {columns}"
        return f"Posterior({self.prior}, {self.likelihood}, {len(self.labels)} labels on {size})"
