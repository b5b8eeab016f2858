"""The Gaussian field at the labelled nodes, and the law of the rest."""

from graphuq.posterior.field.base import ClassField, Field, NodeField, NoisyField, of_one_class
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
from graphuq.posterior.field.labelled import (
    Conditioned,
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
    "Conditioned",
    "Field",
    "LabelledField",
    "LowRankField",
    "NodeField",
    "NoisyField",
    "TailAtLabelled",
    "TailField",
    "coefficient_field_with_tail",
    "columns_field",
    "covariances_at",
    "labelled_field",
    "of_one_class",
    "precision_of",
    "series_field",
]
