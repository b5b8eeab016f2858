"""What to label next: rules that score rows, batches, and when to stop."""

from graphuq.acquisition.audit import audited_errors
from graphuq.acquisition.base import Rule
from graphuq.acquisition.entropy import Entropy
from graphuq.acquisition.expected_error_reduction import ExpectedErrorReduction
from graphuq.acquisition.forecast import forecast_errors
from graphuq.acquisition.margin import Margin
from graphuq.acquisition.model_change import ModelChange
from graphuq.acquisition.mutual_information import MutualInformation
from graphuq.acquisition.pool import Pool
from graphuq.acquisition.query import RULES, query
from graphuq.acquisition.random import Random
from graphuq.acquisition.sigma_optimality import SigmaOptimality
from graphuq.acquisition.stochastic_margin import StochasticMargin
from graphuq.acquisition.v_optimality import VOptimality
from graphuq.acquisition.variance_reduction import VarianceReduction

__all__ = [
    "RULES",
    "Entropy",
    "ExpectedErrorReduction",
    "Margin",
    "ModelChange",
    "MutualInformation",
    "Pool",
    "Random",
    "Rule",
    "SigmaOptimality",
    "StochasticMargin",
    "VOptimality",
    "VarianceReduction",
    "audited_errors",
    "forecast_errors",
    "query",
]
