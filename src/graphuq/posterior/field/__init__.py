"""Gaussian fields: the prior at the labelled nodes, and at all others given its values there."""

from graphuq.posterior.field.base import ClassField, Field, NodeField, NoisyField
from graphuq.posterior.field.class_differences import (
    ClassDifferenceField,
    covariances_at,
    precision_of,
)
from graphuq.posterior.field.coefficients import (
    CoefficientField,
    TailAtLabelled,
    coefficient_field_with_tail,
)
from graphuq.posterior.field.conditioning import FieldMoments
from graphuq.posterior.field.covariance import CovarianceField, SeriesField
from graphuq.posterior.field.labelled import (
    LabelledField,
    LowRankField,
    TailField,
    columns_field,
    labelled_field,
    series_field,
)

__all__ = [
    "ClassDifferenceField",
    "ClassField",
    "CoefficientField",
    "CovarianceField",
    "Field",
    "FieldMoments",
    "LabelledField",
    "LowRankField",
    "NodeField",
    "NoisyField",
    "SeriesField",
    "TailAtLabelled",
    "TailField",
    "coefficient_field_with_tail",
    "columns_field",
    "covariances_at",
    "labelled_field",
    "precision_of",
    "series_field",
]
