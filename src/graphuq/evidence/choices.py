"""Hyperparameters of prior, likelihood and mean that the evidence can choose, by name."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from graphuq.errors import IncompatibleParts, require
from graphuq.evidence.hyperpriors import HYPERPRIORS
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import is_number

MEAN = "prior_mean"


def checked_names(posterior: Posterior, names: Sequence[str] | None) -> list[str]:
    """Return the hyperparameters to choose, after checks of posterior and names."""
    if posterior.likelihood.uses_all_nodes:
        raise IncompatibleParts(
            f"{posterior.likelihood} has no evidence by expectation propagation: its double well "
            "at every node makes many modes; choose hyperparameters with Probit()"
        )
    if posterior.learnt:
        raise IncompatibleParts(
            f"{', '.join(posterior.learnt)} is learnt by sampling; give a number to choose "
            "hyperparameters by the evidence"
        )
    offered = _hyperparameters(posterior)
    chosen = offered if names is None else list(names)
    some = f"use some of {', '.join(offered) or '(there are none)'}"
    for name in chosen:
        require(
            name in offered or not _is_number_without_hyperprior(posterior, name),
            "names",
            f"{name!r} has no hyperprior",
            f"learn it with {name}=gq.LogUniform(…), or {some}",
        )
        solved = not posterior.spectrum.has_eigenpairs and hasattr(posterior.prior, str(name))
        require(
            name in offered or not solved,
            "names",
            f"{name!r} of a prior whose covariance was solved for, with the value that it has",
            f"choose it with eigenpairs (laplacian_spectrum) in place of the Laplacian, or {some}",
        )
        require(
            name in offered,
            "names",
            f"{name!r} is not a hyperparameter of {posterior.prior} and {posterior.likelihood}",
            some,
        )
    return chosen


def _is_number_without_hyperprior(posterior: Posterior, name: object) -> bool:
    """Return whether a part has a number of this name that the evidence is never asked for."""
    parts = (posterior.prior, posterior.likelihood.unshifted)
    owners = [p for p in parts if name in {field.name for field in dataclasses.fields(p)}]
    known = name in (*HYPERPRIORS, "truncation", "include_constant", "n_classes")
    return not known and any(is_number(getattr(part, str(name))) for part in owners)


def _hyperparameters(posterior: Posterior) -> list[str]:
    """Return the names of hyperparameters that can be chosen."""
    names = [n for n in HYPERPRIORS if owner_of(posterior, n) is not None]
    if posterior.likelihood.unshifted.is_step and "noise_std" in names:
        # γ is in units of the label, and the hyperprior in units of u.
        names.remove("noise_std")
    if isinstance(posterior.prior_mean, float):
        names.append(MEAN)
    if not posterior.spectrum.has_eigenpairs:  # the covariance at the labels was solved for
        return [n for n in names if owner_of(posterior, n) == "likelihood"]
    if hasattr(posterior.prior, "truncation") and posterior.spectrum.tail_eigenvalue is None:
        names.append("truncation")
    if posterior.prior.can_choose_constant:
        names.append("include_constant")
    return names


def owner_of(posterior: Posterior, name: str) -> str | None:
    """Return the part that has a hyperparameter of this name; the likelihood has the mean."""
    for part in ("prior", "likelihood"):
        if hasattr(getattr(posterior, part), name):
            return part
    return None


def with_values(posterior: Posterior, values: dict[str, Any]) -> Posterior:
    """Return the posterior with other hyperparameters."""

    def updated(part: str) -> Any:
        own = {n: v for n, v in values.items() if (owner_of(posterior, n) or "prior") == part}
        return dataclasses.replace(getattr(posterior, part), **own)

    return dataclasses.replace(
        posterior,
        prior=updated("prior"),
        likelihood=updated("likelihood"),
        prior_mean=values.get(MEAN, posterior.prior_mean),
    )
