"""Prior with a separate scale for each eigenvector."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, Uniform, check_range, is_learnt, parameter
from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Modes, Prior, check_power_law, check_truncation, power_law
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import describe, is_vector


class EigenScales(Prior):
    r"""Prior ``s_j² = κ v_j²`` with ``v_j = a_j (λ_j + τ²)^{−α/2}`` and each a_j learnt.

    Source: Chen, models D and E.
    The paper's ``v_j ~ U((1 − a)(λ_j + τ²)^{−α/2}, (1 + a)(λ_j + τ²)^{−α/2})`` is
    ``scales=Uniform(1 − a, 1 + a)``. Model D has a fixed truncation, and model E a learnt one.

    Parameters
    ----------
    tau, alpha, truncation, include_constant
        See `Matern`.
    scales : Distribution or array of shape (L,), default Uniform(0.2, 1.8)
        Distribution or values of a_j > 0, independent for each eigenvector.

    Examples
    --------
    >>> import graphuq as gq
    >>> prior = gq.priors.EigenScales(tau=0.7, alpha=35.0, scales=gq.Uniform(0.2, 1.8))
    >>> list(prior.learnt)
    ['scales']
    """

    tau: Hyperparameter = parameter(0.3)
    alpha: Hyperparameter = parameter(4.0)
    scales: Any = parameter(Uniform(0.2, 1.8))
    truncation: Hyperparameter = parameter(None)
    include_constant: bool | None = None

    def __check_init__(self) -> None:
        check_power_law(self.tau, self.alpha)
        check_truncation(self.truncation)
        if is_learnt(self.scales):
            check_range("scales", self.scales, 0.0, open=True, remedy="use positive scales")
        else:
            require(
                is_vector(self.scales) and np.min(self.scales) > 0,
                "scales",
                f"{describe(self.scales)} is not a vector of positive numbers",
                "give a NumPy array with one positive number per mode, or a distribution",
            )

    def n_values(self, name: str, n_modes: int) -> int | None:
        """Return L for ``scales``: one value per mode."""
        return n_modes if name == "scales" else None

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−α log(λ + τ²)``."""
        return power_law(eigenvalues, self.tau, self.alpha)

    def log_scales(self, modes: Modes) -> Float[Array, " L"] | float:
        """Return ``2 log a_j``.

        Raises
        ------
        IncompatibleParts
            If the numbers of scales and of modes differ.
        """
        if len(self.scales) != len(modes.eigenvalues):
            raise IncompatibleParts(
                f"{len(self.scales)} scales and {len(modes.eigenvalues)} eigenpairs; give one each"
            )
        result: Float[Array, " L"] = 2 * array_namespace(modes.eigenvalues).log(self.scales)
        return result
