"""A classifier is made before the packages that only a fit needs are imported."""

import subprocess
import sys

LATE = ("jax", "equinox", "numba", "sklearn.neighbors", "xarray", "matplotlib", "arviz", "faiss")


def imported_by(code):
    """Return which of the slow packages a new process has imported after some code."""
    shown = f"import sys; {code}; print([name for name in {LATE} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_making_and_cloning_a_classifier_imports_scikit_learn_only():
    code = (
        "import graphuq as gq; from sklearn.base import clone; "
        "model = clone(gq.GraphClassifier(max_classes=3)); model.set_params(n_neighbors=5)"
    )
    assert imported_by(code) == "[]"


def test_a_fit_imports_no_package_of_an_extra():
    code = (
        "import graphuq as gq; model = gq.GraphClassifier(inference='expectation-propagation'); "
        "model.fit([[0.0], [1.0], [5.0], [6.0]], [0, -1, 1, -1]).predict_proba([[0.5]])"
    )
    assert imported_by(code) == "['numba']"
