"""The result of inference: a record of what is known of every node, and of the run."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import require
from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import ApproximationDiagnostics, Diagnostics
from graphuq.results.label_numbers import mean_label_variance
from graphuq.results.storage import to_tree, write_tree
from graphuq.results.summary import summary_of
from graphuq.results.table import columns_of, frame_of
from graphuq.results.trust.base import Trust
from graphuq.results.trust.verdict import verdict_on
from graphuq.results.uncertainty import with_unseen
from graphuq.utils.concurrency import cached_property

if TYPE_CHECKING:
    import pandas as pd

MAX_NAMES = 5  # classes that the representation names


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """Posterior of every label, returned by `graphuq.infer`; `graphuq.load` reads it from a file.

    ``print(result)`` shows verdict, counts by class, uncertain nodes and hyperparameters, and a
    notebook shows them with a small map. Functions of `graphuq.results` compute all other numbers
    from a result.

    Attributes
    ----------
    probabilities : numpy.ndarray, shape (N, K)
        Probability of each class at each node; for two classes those of −1 and of +1, which are
        the probabilities that u is negative or positive, or with `Logistic` the mean of a label
        drawn given u. For more classes they are the probabilities that a class has the largest
        field. Averages over blocks, experts and unknown class shares change them, as
        docs/theory/average.md says; diagnostics, draws and u are those of the posterior.
    mcse : numpy.ndarray, shape (N, K)
        Monte-Carlo standard errors of the probabilities.
    latent_mean, latent_std : numpy.ndarray, shape (N,) or (N, K)
        Posterior mean and standard deviation of u.
    has_evidence : numpy.ndarray of bool, shape (N,)
        False for a node whose component holds no label; its distribution is the prior's.
    posterior : Posterior
    answer : Draws, GaussianApproximation, GaussianMixture or Point
        What the sampler or approximation found; every number is computed from it.
    diagnostics : Diagnostics or ApproximationDiagnostics
    settings : dict
        Settings of graph, spectrum, model and run, and the version of graphuq.
    classes : numpy.ndarray, shape (K,)
        Names of the classes, in the order of ``probabilities``. By default the codes: −1 and
        +1, or 0 to K − 1. `GraphClassifier` sets them.
    """

    probabilities: Float[np.ndarray, "N K"]
    mcse: Float[np.ndarray, "N K"]
    latent_mean: Float[np.ndarray, "N *K"]
    latent_std: Float[np.ndarray, "N *K"]
    has_evidence: Bool[np.ndarray, " N"]
    posterior: Posterior
    answer: Draws | GaussianApproximation | GaussianMixture | Point
    diagnostics: Diagnostics | ApproximationDiagnostics
    settings: Mapping[str, Any]
    classes: Any = None

    def __post_init__(self) -> None:
        n_classes = self.posterior.n_classes
        several = self.posterior.likelihood.has_codes
        codes = np.arange(n_classes) if several else np.array([-1, 1])
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

    @cached_property
    def trust(self) -> Trust:
        """Verdict that joins convergence and trustworthiness; see `docs/trust.md`.

        It is computed at the first use, and again for a result that was read from a file.

        Returns
        -------
        Trust
            ``level`` is "green" only if all checks hold; ``reasons`` are sentences on those that
            fail; ``checks`` has the number, the bound and the sentence of each.

        Examples
        --------
        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.full(200, -1)
        >>> y[:20] = moons.classes[:20]
        >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
        >>> trust = classifier.fit(moons.features, y).result_.trust
        >>> trust.checks["agreement"].ok
        True

        Labels that follow neither graph nor features:

        >>> y[:20] = np.random.default_rng(0).permutation(y[:20])
        >>> trust = classifier.fit(moons.features, y).result_.trust
        >>> trust.level, trust.checks["evidence"].ok
        ('amber', False)
        """
        return verdict_on(self)

    def to_dataframe(self, ids: Sequence[Any] | np.ndarray | None = None) -> "pd.DataFrame":
        """Return a table with one row for each node, whose columns docs/files.md describes.

        `graphuq.results.write_table` writes it to a CSV or Parquet file.

        Parameters
        ----------
        ids : sequence of length N, optional
            Values of the column ``id``; by default the indices of the nodes.
        """
        return frame_of(columns_of(self, ids))

    def save(self, path: str | Path) -> None:
        """Write the result to one NetCDF file, whole or not at all; `graphuq.load` reads it.

        Raises
        ------
        StorageError
            If the file cannot be written, or a class of the user's own cannot be found again by
            its name. Nothing is written then.
        """
        write_tree(to_tree(self), path)

    def _repr_html_(self) -> str:
        from graphuq.results.summary_html import result_html  # scikit-learn's manifolds, for a map

        return result_html(self)

    def __str__(self) -> str:
        return summary_of(self)

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.classes[:MAX_NAMES]))
        names += ", …" if len(self.classes) > MAX_NAMES else ""
        n_nodes, n_labels = len(self.has_evidence), len(self.posterior.labels)
        return (
            f"Result({n_nodes} nodes, {n_labels} labelled, classes {names}, "
            f"mean label variance {mean_label_variance(self):.3f}, {self.diagnostics.state})"
        )
