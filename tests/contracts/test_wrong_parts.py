"""Parts of the wrong kind are refused by name.

Tests check types at run time and would refuse them first, so a separate process runs the cases.
"""

import json
import subprocess
import sys

import pytest

SETUP = """
import json, sys, warnings
import numpy as np
import graphuq as gq
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(20, 2))
graph = gq.graphs.knn_graph(X, n_neighbors=5)
spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=10)
prior, likelihood = gq.priors.InverseLaplacian(), gq.likelihoods.Probit()
posterior = gq.Posterior(spectrum, prior, likelihood, [0, 5], [1, -1])
found = {}
for case in json.loads(sys.argv[1]):
    try:
        eval(case)
        found[case] = "accepted"
    except gq.GraphuqError as error:
        found[case] = str(error)
print(json.dumps(found))
"""
CASES = {
    "gq.Posterior(spectrum, likelihood, prior, [0, 5], [1, -1])": "prior: a Probit; give a prior",
    "gq.Posterior(prior, spectrum, likelihood, [0, 5], [1, -1])": "spectrum: a InverseLaplacian",
    "gq.Posterior(spectrum, prior, prior, [0, 5], [1, -1])": "likelihood: a InverseLaplacian",
    "gq.Posterior(spectrum, gq.priors.Matern, likelihood, [0, 5], [1, -1])": (
        "prior: the class Matern; make an instance: Matern()"
    ),
    "gq.Posterior(X, prior, likelihood, [0, 5], [1, -1])": "spectrum: a ndarray; give gq.lapl",
    "gq.write_report(gq.GraphClassifier(), 'report.html')": (
        "result: a GraphClassifier; give a Result, such as classifier.result_"
    ),
    "gq.infer(spectrum)": "posterior: a Spectrum; give gq.Posterior(",
    "gq.infer(posterior, 'gibbs')": "method: 'gibbs' is unknown; use one of auto, pcn",
    "gq.infer(posterior, gq.inference.PCN)": "method: the class PCN; make an instance: PCN()",
    "gq.infer(posterior, prior)": "method: InverseLaplacian(",
    "gq.infer(posterior, 'laplace', n_samples=10)": "n_samples: given beside Laplace(",
    "gq.infer(posterior, 'map', thin=2, progress=True)": "thin, progress: given beside MAP(",
    "gq.infer(posterior, 'pcn', on_first_result=print)": "on_first_result: given beside method",
}


@pytest.fixture(scope="module")
def found():
    printed = subprocess.run(
        [sys.executable, "-c", SETUP, json.dumps(list(CASES))],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(printed.stdout)


@pytest.mark.parametrize("case", CASES)
def test_wrong_parts_are_refused_by_name(case, found):
    assert CASES[case] in found[case]
