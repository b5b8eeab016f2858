"""graphuq: label everything from a few labels, and say how sure it is.

Names are imported when first used, so that the command line starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphuq.utils.lazy_imports import paused_collection
from graphuq.utils.version import __version__

if TYPE_CHECKING:
    from graphuq import (
        acquisition,
        datasets,
        external,
        graphs,
        inference,
        likelihoods,
        models,
        plots,
        priors,
        results,
        scores,
    )
    from graphuq.classifier.annotators import AnnotatorClassifier
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.classifier.loading import load
    from graphuq.classifier.model_selection import LabelledKFold, LabelledScorer
    from graphuq.classifier.multilabel.classifier import MultilabelClassifier
    from graphuq.classifier.place_folds import PlaceKFold
    from graphuq.classifier.regressor.regressor import GraphRegressor
    from graphuq.classifier.search import EvidenceSearch
    from graphuq.classifier.table_encoder import TableEncoder
    from graphuq.classifier.with_unlabelled import WithUnlabelled
    from graphuq.distributions import (
        Categorical,
        DiscreteUniform,
        Distribution,
        Gamma,
        LogNormal,
        LogUniform,
        NegativeBinomial,
        Poisson,
        Uniform,
    )
    from graphuq.engine.settings import Store
    from graphuq.errors import GraphuqError, GraphuqWarning
    from graphuq.evidence.importance_sampling import EvidenceEstimate, estimate_evidence
    from graphuq.evidence.maximize import EvidenceMaximum, maximize_evidence
    from graphuq.labelling import label_studio
    from graphuq.labelling.server import LabellingPage, label
    from graphuq.posterior.posterior import Posterior
    from graphuq.report import write_report
    from graphuq.results.arviz_data import to_arviz
    from graphuq.results.errors_left import expected_errors
    from graphuq.results.label_checks import leave_one_out, prediction_sets, suspect_labels
    from graphuq.results.label_numbers import most_uncertain
    from graphuq.results.latent_numbers import credible_interval
    from graphuq.results.result import Result
    from graphuq.results.trust.truncation import truncation_effect
    from graphuq.run.adapt_truncation import adapt_truncation
    from graphuq.run.infer import infer
    from graphuq.run.stopping import Converged, CumulativeMean
    from graphuq.spectrum import (
        Basis,
        ExponentialFunctions,
        FunctionsOfFew,
        JoinedGraph,
        Laplacian,
        PowerFunctions,
        SmoothedFeatures,
        Spectrum,
        ThirdPower,
        WhitenedGraph,
        WhitenedLinear,
        fiedler_signs,
        harmonic_function,
        laplacian_spectrum,
        load_spectrum,
        nystrom_spectrum,
    )

_MODULE_OF = {
    "AnnotatorClassifier": "classifier.annotators",
    "GraphClassifier": "classifier.classifier",
    "GraphRegressor": "classifier.regressor.regressor",
    "MultilabelClassifier": "classifier.multilabel.classifier",
    "GraphuqError": "errors",
    "GraphuqWarning": "errors",
    "EvidenceMaximum": "evidence.maximize",
    "maximize_evidence": "evidence.maximize",
    "adapt_truncation": "run.adapt_truncation",
    "Store": "engine.settings",
    "Categorical": "distributions",
    "DiscreteUniform": "distributions",
    "Distribution": "distributions",
    "Gamma": "distributions",
    "LogNormal": "distributions",
    "LogUniform": "distributions",
    "NegativeBinomial": "distributions",
    "Poisson": "distributions",
    "Uniform": "distributions",
    "infer": "run.infer",
    "Posterior": "posterior.posterior",
    "write_report": "report",
    "Result": "results.result",
    "credible_interval": "results.latent_numbers",
    "expected_errors": "results.errors_left",
    "leave_one_out": "results.label_checks",
    "most_uncertain": "results.label_numbers",
    "prediction_sets": "results.label_checks",
    "suspect_labels": "results.label_checks",
    "to_arviz": "results.arviz_data",
    "truncation_effect": "results.trust.truncation",
    "load": "classifier.loading",
    "LabellingPage": "labelling.server",
    "label": "labelling.server",
    "EvidenceSearch": "classifier.search",
    "TableEncoder": "classifier.table_encoder",
    "LabelledKFold": "classifier.model_selection",
    "PlaceKFold": "classifier.place_folds",
    "LabelledScorer": "classifier.model_selection",
    "WithUnlabelled": "classifier.with_unlabelled",
    "EvidenceEstimate": "evidence.importance_sampling",
    "estimate_evidence": "evidence.importance_sampling",
    "Basis": "spectrum",
    "JoinedGraph": "spectrum",
    "Laplacian": "spectrum",
    "PowerFunctions": "spectrum",
    "SmoothedFeatures": "spectrum",
    "ExponentialFunctions": "spectrum",
    "FunctionsOfFew": "spectrum",
    "Spectrum": "spectrum",
    "ThirdPower": "spectrum",
    "WhitenedGraph": "spectrum",
    "WhitenedLinear": "spectrum",
    "fiedler_signs": "spectrum",
    "harmonic_function": "spectrum",
    "laplacian_spectrum": "spectrum",
    "load_spectrum": "spectrum",
    "nystrom_spectrum": "spectrum",
    "Converged": "run.stopping",
    "CumulativeMean": "run.stopping",
}
_MODULES = {
    "acquisition": "acquisition",
    "datasets": "datasets",
    "external": "external",
    "graphs": "graphs",
    "inference": "inference",
    "label_studio": "labelling.label_studio",
    "likelihoods": "likelihoods",
    "models": "models",
    "plots": "plots",
    "priors": "priors",
    "results": "results",
    "scores": "scores",
}

__all__ = [
    "AnnotatorClassifier",
    "Basis",
    "Categorical",
    "Converged",
    "CumulativeMean",
    "DiscreteUniform",
    "Distribution",
    "EvidenceEstimate",
    "EvidenceMaximum",
    "EvidenceSearch",
    "ExponentialFunctions",
    "FunctionsOfFew",
    "Gamma",
    "GraphClassifier",
    "GraphRegressor",
    "GraphuqError",
    "GraphuqWarning",
    "JoinedGraph",
    "LabelledKFold",
    "LabelledScorer",
    "LabellingPage",
    "Laplacian",
    "LogNormal",
    "LogUniform",
    "MultilabelClassifier",
    "NegativeBinomial",
    "PlaceKFold",
    "Poisson",
    "Posterior",
    "PowerFunctions",
    "Result",
    "SmoothedFeatures",
    "Spectrum",
    "Store",
    "TableEncoder",
    "ThirdPower",
    "Uniform",
    "WhitenedGraph",
    "WhitenedLinear",
    "WithUnlabelled",
    "__version__",
    "acquisition",
    "adapt_truncation",
    "credible_interval",
    "datasets",
    "estimate_evidence",
    "expected_errors",
    "external",
    "fiedler_signs",
    "graphs",
    "harmonic_function",
    "infer",
    "inference",
    "label",
    "label_studio",
    "laplacian_spectrum",
    "leave_one_out",
    "likelihoods",
    "load",
    "load_spectrum",
    "maximize_evidence",
    "models",
    "most_uncertain",
    "nystrom_spectrum",
    "plots",
    "prediction_sets",
    "priors",
    "results",
    "scores",
    "suspect_labels",
    "to_arviz",
    "truncation_effect",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with paused_collection():
            return import_module(f"graphuq.{_MODULES[name]}")
    if name in _MODULE_OF:
        with paused_collection():
            value = getattr(import_module(f"graphuq.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'graphuq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
