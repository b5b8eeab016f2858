"""graphuq: label everything from a few labels, and say how sure it is.

Names are imported when first used, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphuq import (
        datasets,
        graphs,
        inference,
        likelihoods,
        plots,
        priors,
        scores,
    )
    from graphuq.classifier import GraphClassifier
    from graphuq.errors import GraphuqError, GraphuqWarning
    from graphuq.evidence import EvidenceMaximum, maximize_evidence
    from graphuq.growing import growing_posterior
    from graphuq.hyperparameters import (
        DiscreteUniform,
        Distribution,
        Gamma,
        LogNormal,
        LogUniform,
        Uniform,
    )
    from graphuq.loading import load
    from graphuq.posterior import Posterior
    from graphuq.report import write_report
    from graphuq.result import Result
    from graphuq.run import infer
    from graphuq.search import EvidenceSearch
    from graphuq.simulated_evidence import SimulatedEvidence, simulate_evidence
    from graphuq.spectrum import (
        Laplacian,
        Spectrum,
        fiedler_signs,
        harmonic_function,
        laplacian_spectrum,
        load_spectrum,
        nystrom_spectrum,
    )
    from graphuq.stopping import Converged, CumulativeMean
    from graphuq.tracking import track

_MODULE_OF = {
    "GraphClassifier": "classifier",
    "GraphuqError": "errors",
    "GraphuqWarning": "errors",
    "EvidenceMaximum": "evidence",
    "maximize_evidence": "evidence",
    "growing_posterior": "growing",
    "DiscreteUniform": "hyperparameters",
    "Distribution": "hyperparameters",
    "Gamma": "hyperparameters",
    "LogNormal": "hyperparameters",
    "LogUniform": "hyperparameters",
    "Uniform": "hyperparameters",
    "infer": "run",
    "Posterior": "posterior",
    "write_report": "report",
    "Result": "result",
    "load": "loading",
    "EvidenceSearch": "search",
    "SimulatedEvidence": "simulated_evidence",
    "simulate_evidence": "simulated_evidence",
    "Laplacian": "spectrum",
    "Spectrum": "spectrum",
    "fiedler_signs": "spectrum",
    "harmonic_function": "spectrum",
    "laplacian_spectrum": "spectrum",
    "load_spectrum": "spectrum",
    "nystrom_spectrum": "spectrum",
    "Converged": "stopping",
    "CumulativeMean": "stopping",
    "track": "tracking",
}
_MODULES = ("datasets", "graphs", "inference", "likelihoods", "plots", "priors", "scores")

__all__ = [
    "Converged",
    "CumulativeMean",
    "DiscreteUniform",
    "Distribution",
    "EvidenceMaximum",
    "EvidenceSearch",
    "Gamma",
    "GraphClassifier",
    "GraphuqError",
    "GraphuqWarning",
    "Laplacian",
    "LogNormal",
    "LogUniform",
    "Posterior",
    "Result",
    "SimulatedEvidence",
    "Spectrum",
    "Uniform",
    "datasets",
    "fiedler_signs",
    "graphs",
    "growing_posterior",
    "harmonic_function",
    "infer",
    "inference",
    "laplacian_spectrum",
    "likelihoods",
    "load",
    "load_spectrum",
    "maximize_evidence",
    "nystrom_spectrum",
    "plots",
    "priors",
    "scores",
    "simulate_evidence",
    "track",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"graphuq.{name}")
    if name in _MODULE_OF:
        value = getattr(import_module(f"graphuq.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'graphuq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
