"""Model of numbers: a Gaussian field, and Gaussian noise at the rows with a number."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import require
from graphuq.evidence.regression import GraphRegression, maximize_regression
from graphuq.models.evidence import prior_of
from graphuq.priors import Prior
from graphuq.utils.checks import require_positive
from graphuq.utils.shown import shown_call


@dataclasses.dataclass(frozen=True, repr=False)
class Regression:
    """Prior of the field and its size, and the noise of the numbers.

    What is "auto" has the largest evidence, with weak hyperpriors; see docs/regression.md.

    Parameters
    ----------
    prior : str or Prior, default "auto"
        Prior of the field. "auto": `Matern`, with τ and α of largest evidence. The names "matern",
        "inverse-laplacian", "regularized-laplacian", "diffusion", "random-walk" and
        "inverse-cosine" stand for a prior with its defaults. Also text such as
        ``"Matern(tau=0.2, alpha=3)"``. No hyperparameter may be a distribution.
    field_std : float or "auto", default "auto"
        Standard deviation of the field, averaged over nodes, in units of the target: a > 0.
    noise_std : float or "auto", default "auto"
        Standard deviation of the noise, in units of the target: γ > 0.

    Raises
    ------
    InvalidInput
        If the prior is unknown or learns something, or a number is not positive.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.models.Regression(noise_std=0.5)
    Regression(noise_std=0.5)
    """

    prior: Any = "auto"
    field_std: Any = "auto"
    noise_std: Any = "auto"

    def __post_init__(self) -> None:
        for name in ("field_std", "noise_std"):
            if not _is_auto(getattr(self, name)):
                remedy = "use a number > 0 in units of y, or 'auto'"
                require_positive(name, getattr(self, name), remedy)
        prior: Prior = prior_of(self.prior)
        require(
            not prior.learnt,
            "prior",
            f"{', '.join(prior.learnt)} of {prior} is a distribution",
            "give a number, or prior='auto'",
        )

    def posterior(
        self,
        basis: Any,
        labelled: Int[np.ndarray, " J"],
        values: Float[np.ndarray, " J"],
        weights: Float[np.ndarray, " J"],
        unit: float = 1.0,
    ) -> GraphRegression:
        """Return the posterior of the field, which is Gaussian and exact.

        Parameters
        ----------
        basis : Spectrum
        labelled : numpy.ndarray of int, shape (J,)
            Nodes with a number.
        values : numpy.ndarray, shape (J,)
            The numbers, of mean 0, in units of ``unit``.
        weights : numpy.ndarray, shape (J,)
            The variance of the noise of a number is γ²/w.
        unit : float, default 1
            Unit of the values in units of ``y``.
        """
        fixed = {
            name: getattr(self, name) / unit
            for name in ("field_std", "noise_std")
            if not _is_auto(getattr(self, name))
        }
        start = GraphRegression(
            basis, prior_of(self.prior), labelled, values, weights=weights, **fixed
        )
        shape = ("tau", "alpha") if _is_auto(self.prior) else ()
        wanted = [n for n in (*shape, "field_std", "noise_std") if n not in fixed]
        return maximize_regression(start, wanted)

    def used(self, found: GraphRegression, unit: float = 1.0) -> "Regression":
        """Return the model with everything that the numbers chose."""
        return Regression(found.prior, unit * found.field_std, unit * found.noise_std)

    def __repr__(self) -> str:
        return shown_call(self)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
