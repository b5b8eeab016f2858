"""Results: numbers for every node, diagnostics, tables, files; see docs/api/results.rst."""

from typing import TYPE_CHECKING

from graphuq.utils.lazy_imports import lazy_names

if TYPE_CHECKING:
    from graphuq.results.arviz_data import to_arviz
    from graphuq.results.average_parts import block_weights, few_columns
    from graphuq.results.class_proportions import class_thresholds
    from graphuq.results.convergence import convergence_of
    from graphuq.results.errors_left import expected_errors
    from graphuq.results.expert_answers import expert_weights
    from graphuq.results.formats import TableFormat
    from graphuq.results.label_checks import leave_one_out, prediction_sets, suspect_labels
    from graphuq.results.label_numbers import (
        class_codes,
        entropy,
        label_mcse,
        label_mean,
        label_variance,
        labels,
        margin,
        mean_label_variance,
        most_certain,
        most_uncertain,
        rank_by_uncertainty,
        with_classes,
    )
    from graphuq.results.latent_numbers import (
        at_rows,
        credible_interval,
        interval_at_rows,
        latent_draws,
        soft_label_interval,
        soft_label_mean,
    )
    from graphuq.results.loading import load
    from graphuq.results.probability_intervals import probability_interval
    from graphuq.results.result import Result
    from graphuq.results.sampling import convergence_table, draws, functionals, is_sampled
    from graphuq.results.shares_of_groups import group_shares
    from graphuq.results.table import write_table
    from graphuq.results.trust.truncation import truncation_effect
    from graphuq.results.unknown_shares import estimated_shares

_MODULE_OF = {
    "Result": "result",
    "TableFormat": "formats",
    "at_rows": "latent_numbers",
    "block_weights": "average_parts",
    "few_columns": "average_parts",
    "class_codes": "label_numbers",
    "class_thresholds": "class_proportions",
    "convergence_of": "convergence",
    "convergence_table": "sampling",
    "credible_interval": "latent_numbers",
    "draws": "sampling",
    "entropy": "label_numbers",
    "estimated_shares": "unknown_shares",
    "expected_errors": "errors_left",
    "expert_weights": "expert_answers",
    "functionals": "sampling",
    "group_shares": "shares_of_groups",
    "interval_at_rows": "latent_numbers",
    "is_sampled": "sampling",
    "label_mcse": "label_numbers",
    "label_mean": "label_numbers",
    "label_variance": "label_numbers",
    "labels": "label_numbers",
    "latent_draws": "latent_numbers",
    "leave_one_out": "label_checks",
    "load": "loading",
    "margin": "label_numbers",
    "mean_label_variance": "label_numbers",
    "most_certain": "label_numbers",
    "most_uncertain": "label_numbers",
    "prediction_sets": "label_checks",
    "probability_interval": "probability_intervals",
    "rank_by_uncertainty": "label_numbers",
    "soft_label_interval": "latent_numbers",
    "soft_label_mean": "latent_numbers",
    "suspect_labels": "label_checks",
    "to_arviz": "arviz_data",
    "truncation_effect": "trust.truncation",
    "with_classes": "label_numbers",
    "write_table": "table",
}

__all__ = [
    "Result",
    "TableFormat",
    "at_rows",
    "block_weights",
    "class_codes",
    "class_thresholds",
    "convergence_of",
    "convergence_table",
    "credible_interval",
    "draws",
    "entropy",
    "estimated_shares",
    "expected_errors",
    "expert_weights",
    "few_columns",
    "functionals",
    "group_shares",
    "interval_at_rows",
    "is_sampled",
    "label_mcse",
    "label_mean",
    "label_variance",
    "labels",
    "latent_draws",
    "leave_one_out",
    "load",
    "margin",
    "mean_label_variance",
    "most_certain",
    "most_uncertain",
    "prediction_sets",
    "probability_interval",
    "rank_by_uncertainty",
    "soft_label_interval",
    "soft_label_mean",
    "suspect_labels",
    "to_arviz",
    "truncation_effect",
    "with_classes",
    "write_table",
]

__getattr__ = lazy_names(__name__, _MODULE_OF)


def __dir__() -> list[str]:
    return __all__
