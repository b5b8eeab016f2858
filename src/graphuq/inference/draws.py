"""Draws of a sampler, and when a stop rule is called."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.inference.answers import GaussianApproximation
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

BLOCK = 50  # kept draws per chain between two checks of the run
HYPERPARAMETER = "hyperparameter_"  # prefix of the name under which draws of one are stored
STORED_NUMBERS: dict[str, type] = {
    "step_size": float,
    "n_warmup": int,
    "thin": int,
    "stopped_by": str,
    "seconds": float,
}
FIRST_CHECK, CHECK_GROWTH = 100, 1.3  # draws at the first call of a stop rule; growth factor


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Draws from a posterior, and how they were made.

    Attributes
    ----------
    white : numpy.ndarray, shape (C, S, n)
        Kept draws in white coordinates; every N-sized number is computed from them.
    log_likelihood, acceptance : numpy.ndarray, shape (C, S)
        Log likelihood of each kept draw; mean acceptance probability since the previous one.
    step_size : float
        Step size that warm-up chose; with several blocks that of the first.
    n_warmup, thin : int
        Steps of warm-up; steps per kept draw.
    stopped_by : str
        Why sampling ended, in words.
    reference : GaussianApproximation or None
        Reference of the sampler, which serves as a control variate of averages.
    log_ratio : numpy.ndarray, shape (C, S), or None
        Log density of the posterior over the reference at each draw, up to a constant.
    seconds : float
        Wall time of warm-up and sampling, compilation included.
    hyperparameters : dict of str to numpy.ndarray, shape (C, S) or (C, S, m)
        Draws of the learnt hyperparameters.
    tail_std : numpy.ndarray, shape (C, S) or (C, S, K), or None
        s̄ of each draw (and class, if each has its own) if the prior of a tail is learnt. It is
        the unit of the field's standard deviation given a draw.
    block_acceptance : numpy.ndarray, shape (C, S, b), or None
    block_step_sizes : numpy.ndarray, shape (b,), or None
        Acceptance and step size of each block, if a step moves several blocks in turn. The
        first block is the field's; ``acceptance`` and ``step_size`` are its numbers.
    log_evidence : float or None
        Estimate of ``log p(y)`` by the Gaussian that was computed before sampling: by default the
        reference, if there is one.
    is_approximate : bool
        Whether these are draws of an approximation of the posterior, so that convergence does not
        mean that they have its distribution. ``acceptance`` is that of the approximation.
    """

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
    step_size: float
    n_warmup: int
    thin: int
    stopped_by: str = "fixed length"
    seconds: float = 0.0
    reference: GaussianApproximation | None = None
    log_ratio: Float[np.ndarray, "C S"] | None = None
    hyperparameters: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    tail_std: Float[np.ndarray, "C S *K"] | None = None
    block_acceptance: Float[np.ndarray, "C S b"] | None = None
    block_step_sizes: Float[np.ndarray, " b"] | None = None
    log_evidence: float | None = None
    is_approximate: bool = False

    def __post_init__(self) -> None:
        if self.log_evidence is None and self.reference is not None:
            object.__setattr__(self, "log_evidence", self.reference.log_evidence)

    @property
    def n_chains(self) -> int:
        """Number of chains C."""
        return len(self.white)

    @property
    def n_samples(self) -> int:
        """Number of kept draws per chain S."""
        return int(self.white.shape[1])

    @property
    def units(self) -> Float[np.ndarray, "CS #K"]:
        """Unit of the field's standard deviation given each draw and class: s̄, or 1."""
        if self.tail_std is None:
            return np.ones((self.n_chains * self.n_samples, 1))
        return self.tail_std.reshape(self.n_chains * self.n_samples, -1)

    @property
    def n_iterations(self) -> int:
        """Kept draws a chain, the counterpart of an approximation's iterations."""
        return self.n_samples

    def to_datasets(self) -> "dict[str, xr.Dataset]":
        """Return the draws in the groups ``posterior``, ``sample_stats`` and ``reference``."""
        require_extra("files")
        import xarray as xr

        axes = ("chain", "draw")
        kept = xr.Dataset({"white": ((*axes, "coordinate"), self.white)})
        for name, values in self.hyperparameters.items():
            kept[HYPERPARAMETER + name] = ((*axes, f"{name}_index")[: values.ndim], values)
        stats = xr.Dataset(
            {
                "log_likelihood": (axes, self.log_likelihood),
                "acceptance_rate": (axes, self.acceptance),
            },
            attrs={name: getattr(self, name) for name in STORED_NUMBERS},
        )
        stats.attrs["is_approximate"] = int(self.is_approximate)
        if self.log_evidence is not None:
            stats.attrs["log_evidence"] = self.log_evidence
        if self.tail_std is not None:
            stats["tail_std"] = ((*axes, "class")[: self.tail_std.ndim], self.tail_std)
        if self.log_ratio is not None:
            stats["log_ratio"] = (axes, self.log_ratio)
        if self.block_acceptance is not None:
            stats["block_acceptance"] = ((*axes, "block"), self.block_acceptance)
        if self.block_step_sizes is not None:
            stats["block_step_sizes"] = ("block", self.block_step_sizes)
        groups = {"posterior": kept, "sample_stats": stats}
        if self.reference is not None:
            groups["reference"] = self.reference.to_datasets()["gaussian"]
        return groups

    @staticmethod
    def from_datasets(groups: "Mapping[str, xr.Dataset]") -> "Draws":
        """Return the draws that `to_datasets` took apart."""
        kept, stats = groups["posterior"], groups["sample_stats"]
        optional = ("log_ratio", "tail_std", "block_acceptance", "block_step_sizes")
        arrays: dict[str, Any] = {n: stats[n].to_numpy() for n in optional if n in stats}
        reference = None
        if "reference" in groups:
            reference = GaussianApproximation.from_datasets({"gaussian": groups["reference"]})
        return Draws(
            white=kept["white"].to_numpy(),
            log_likelihood=stats["log_likelihood"].to_numpy(),
            acceptance=stats["acceptance_rate"].to_numpy(),
            reference=reference,
            log_evidence=stats.attrs.get("log_evidence"),
            is_approximate=bool(stats.attrs["is_approximate"]),
            hyperparameters={
                str(name).removeprefix(HYPERPARAMETER): values.to_numpy()
                for name, values in kept.items()
                if str(name).startswith(HYPERPARAMETER)
            },
            **{name: kind(stats.attrs[name]) for name, kind in STORED_NUMBERS.items()},
            **arrays,
        )

    def with_log_evidence(self, log_evidence: float) -> "Draws":
        """Return the draws with an estimate of ``log p(y)``, unless they have one."""
        if self.log_evidence is not None:
            return self
        return dataclasses.replace(self, log_evidence=log_evidence)

    def first(self, n_samples: int) -> "Draws":
        """Return the first draws of each chain."""
        return dataclasses.replace(
            self,
            white=self.white[:, :n_samples],
            log_likelihood=self.log_likelihood[:, :n_samples],
            acceptance=self.acceptance[:, :n_samples],
            log_ratio=None if self.log_ratio is None else self.log_ratio[:, :n_samples],
            block_acceptance=None
            if self.block_acceptance is None
            else self.block_acceptance[:, :n_samples],
            hyperparameters={k: v[:, :n_samples] for k, v in self.hyperparameters.items()},
            tail_std=None if self.tail_std is None else self.tail_std[:, :n_samples],
        )


StopRule = Callable[[Draws], str | None]
"""Function of the draws that returns the reason to stop, or None to go on."""


def is_check(done: int) -> bool:
    """Return whether a stop rule is called at this number of draws, which no clock changes."""
    check = FIRST_CHECK
    while check <= done - BLOCK:
        check = int(check * CHECK_GROWTH) + 1
    return check <= done
