"""The verdict on a result, from all checks; a base class of `Result`."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from jaxtyping import Int
from numpy import ndarray

from graphuq.results.trust.agreement import check_agreement
from graphuq.results.trust.base import Check, Trust
from graphuq.results.trust.components import check_components
from graphuq.results.trust.convergence import check_convergence
from graphuq.results.trust.labels import (
    check_certainty,
    check_evidence,
    check_labels_per_class,
)
from graphuq.results.trust.truncation import (
    TruncationEffect,
    check_truncation,
    truncation_effect,
)

if TYPE_CHECKING:
    from graphuq.results.result import Result

CHECKS: dict[str, Callable[["Result"], Check]] = {
    "convergence": check_convergence,
    "labels_per_class": check_labels_per_class,
    "evidence": check_evidence,
    "certainty": check_certainty,
    "agreement": check_agreement,
    "truncation": check_truncation,
    "components": check_components,
}


class TrustVerdict:
    """Verdict on a result, and the truncation certificate."""

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
        result = cast("Result", self)
        return Trust({name: check(result) for name, check in CHECKS.items()})

    def truncation_effect(self, nodes: Int[ndarray, " M"] | None = None) -> TruncationEffect:
        """Return how far label means move if the eigenpairs left out are added.

        It is a first-order estimate from the marginal means and variances of u; see
        `graphuq.results.trust.truncation`. It was within a factor of about two of what really
        adding the eigenpairs did.

        Parameters
        ----------
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
        >>> effect = result.truncation_effect()
        >>> effect.estimate.shape
        (180,)
        >>> bool((effect.estimate <= effect.bound + 1e-12).all())
        True
        """
        return truncation_effect(cast("Result", self), nodes)
