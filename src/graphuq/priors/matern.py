"""The Matérn prior on a graph."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Array, Prior, SpectralStd, null_vectors_take_part
from graphuq.spectrum import Spectrum


class Matern(Prior):
    r"""``s_j² = κ (λ_j + τ²)^{−α}``, with κ such that ``E|u|² = N`` (Chen, (6) and (7), corrected).

    The Laplacian's powers are the spectral density of a Matérn covariance: α says how smooth u
    is, and 1/τ how far a label reaches. ``Matern(tau=0, alpha=1)`` is `InverseLaplacian`.

    Parameters
    ----------
    tau : float, default 0.3
        τ ≥ 0, in units of the square root of an eigenvalue.
    alpha : float, default 4.0
        α > 0.
    truncation : int, optional
        M: eigenvectors from this one on are left out; by default none of those computed is.
    constant : bool or None, default None
        Whether null vectors take part, at their own variance ``κ τ^{−2α}``. None: only if the
        graph is disconnected, at the variance of the smoothest non-constant mode, as in
        `InverseLaplacian`.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> std = gq.priors.Matern(tau=0.5).spectral_std(gq.laplacian_spectrum(graph))
    >>> round(float((std.modes**2).sum()), 4)
    9.0
    """

    tau: float | Float[Array, ""] = 0.3
    alpha: float | Float[Array, ""] = 4.0
    truncation: int | None = None
    constant: bool | None = None

    def __check_init__(self) -> None:
        if isinstance(self.tau, float | int):
            require(self.tau >= 0, "tau", f"{self.tau!r} is negative", "use τ >= 0")
            require(
                self.tau > 0 or not self.constant,
                "tau",
                "0 gives the constant infinite variance",
                "use τ > 0, or constant=None",
            )
        if isinstance(self.alpha, float | int):
            require(self.alpha > 0, "alpha", f"{self.alpha!r} is not positive", "use α > 0")
        if self.truncation is not None:
            require(self.truncation >= 2, "truncation", f"{self.truncation}", "use 2 or more")

    def spectral_std(self, spectrum: Spectrum) -> SpectralStd:
        """Standard deviation of each coefficient of the series.

        Raises
        ------
        IncompatibleParts
            If null vectors are left out and isolated nodes have no other mode to live on; if
            ``truncation`` is not above the number of components; if it leaves out computed
            eigenvectors while a tail stands for the others.
        """
        n_null, n_pairs = spectrum.n_components, spectrum.n_eigenpairs
        take_part = null_vectors_take_part(self.constant, spectrum)
        kept = n_pairs if self.truncation is None else min(self.truncation, n_pairs)
        if kept <= n_null:
            raise IncompatibleParts(
                f"truncation={kept} leaves no mode beside the {n_null} null vector(s); use more"
            )
        if kept < n_pairs and spectrum.tail is not None:
            raise IncompatibleParts(
                f"truncation={kept} of {n_pairs} eigenpairs and a tail contradict each other; "
                "use a spectrum without tail, or truncation=None"
            )
        xp = (
            np if isinstance(self.tau, float | int) and isinstance(self.alpha, float | int) else jnp
        )
        eigenvalues = spectrum.eigenvalues.copy()
        if self.constant is None:
            eigenvalues[:n_null] = eigenvalues[n_null]
        tail = np.inf if spectrum.tail is None else spectrum.tail
        # Relative to the smoothest mode, lest powers overflow.
        smoothest = eigenvalues[0 if take_part else n_null] + self.tau**2
        ratios = xp.exp(
            -self.alpha * xp.log((np.append(eigenvalues, tail) + self.tau**2) / smoothest)
        )
        present = np.ones(n_pairs)
        present[kept:] = 0.0
        present[:n_null] = float(take_part)
        # The clip keeps 0·∞ out: left-out null vectors may have λ + τ² = 0.
        variances = xp.where(present > 0, ratios[:-1], 0.0)
        tail_variance = ratios[-1] if spectrum.tail is not None else 0.0
        energy = variances @ spectrum.energy + tail_variance * spectrum.tail_energy
        kappa = spectrum.n_nodes / energy
        modes, tail_std = xp.sqrt(kappa * variances), xp.sqrt(kappa * tail_variance)
        return SpectralStd(modes, float(tail_std) if xp is np else tail_std)
