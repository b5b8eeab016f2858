"""The Matérn prior on a graph."""

import numpy as np

from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Prior, SpectralStd, null_vectors_take_part
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

    tau: float = 0.3
    alpha: float = 4.0
    truncation: int | None = None
    constant: bool | None = None

    def __check_init__(self) -> None:
        require(self.tau >= 0, "tau", f"{self.tau!r} is negative", "use τ >= 0")
        require(
            self.tau > 0 or not self.constant,
            "tau",
            "0 gives the constant infinite variance",
            "use τ > 0, or constant=None",
        )
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
        eigenvalues = spectrum.eigenvalues.copy()
        if self.constant is None:
            eigenvalues[:n_null] = eigenvalues[n_null]
        present = np.arange(n_pairs) < kept
        present[:n_null] = take_part
        # Relative to the smoothest mode, lest powers overflow.
        smoothest = eigenvalues[present][0] + self.tau**2
        variances = np.zeros(n_pairs)
        variances[present] = ((eigenvalues[present] + self.tau**2) / smoothest) ** -self.alpha
        tail_variance = 0.0
        if spectrum.tail is not None:
            tail_variance = ((spectrum.tail + self.tau**2) / smoothest) ** -self.alpha
        energy = variances @ spectrum.energy + tail_variance * spectrum.tail_energy
        kappa = spectrum.n_nodes / energy
        return SpectralStd(np.sqrt(kappa * variances), float(np.sqrt(kappa * tail_variance)))
