"""Precision of a Gaussian field as a power of the Laplacian: what a field on all nodes needs."""

from typing import NamedTuple


class PowerPrecision(NamedTuple):
    """Parameters of a prior whose precision on all nodes is ``β (L + c I)^α``.

    Attributes
    ----------
    beta : float or None
        β > 0. With None it is the one with ``E|u|² = N``.
    shift : float
        c ≥ 0, in units of an eigenvalue of the Laplacian L.
    power : float, default 1.0
        α > 0.
    include_constant : bool or None, default True
        Whether null vectors have the variance of λ = 0, or none. With None they have none on a
        connected graph, and otherwise that of the smallest positive eigenvalue.
    """

    beta: float | None
    shift: float
    power: float = 1.0
    include_constant: bool | None = True

    @property
    def is_sparse(self) -> bool:
        """Whether it is a matrix as sparse as the graph, with a β that is given."""
        return self.power == 1 and self.beta is not None and self.include_constant is True
