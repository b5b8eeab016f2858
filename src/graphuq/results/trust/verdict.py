"""The verdict on a result, from all checks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphuq.results.trust.agreement import check_agreement
from graphuq.results.trust.base import Check, Trust
from graphuq.results.trust.class_shares import check_class_shares
from graphuq.results.trust.components import check_components
from graphuq.results.trust.convergence import check_convergence
from graphuq.results.trust.labels import (
    check_certainty,
    check_evidence,
    check_labels_per_class,
)
from graphuq.results.trust.truncation import check_truncation

if TYPE_CHECKING:
    from graphuq.results.result import Result

CHECKS: dict[str, Callable[["Result"], Check]] = {
    "convergence": check_convergence,
    "labels_per_class": check_labels_per_class,
    "evidence": check_evidence,
    "certainty": check_certainty,
    "class_shares": check_class_shares,
    "agreement": check_agreement,
    "truncation": check_truncation,
    "components": check_components,
}


def verdict_on(result: "Result") -> Trust:
    """Return the verdict that joins all checks."""
    return Trust({name: check(result) for name, check in CHECKS.items()})
