"""
Texts: which package does a docstring belong to?
================================================

The texts are the docstrings of four packages of SciPy. Words are counted by tf-idf, distances are
cosines, and eight labels of each package are known. Sparse matrices are used as they are.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import graphuq as gq

PACKAGES = ["linalg", "optimize", "signal", "stats"]
MENTIONS = [*PACKAGES, "scipy", "numpy", "np", "plt", "import", "array"]  # too easy, or no help


def docstrings(package):
    """Return the docstrings of the functions of a package of SciPy, each once."""
    module = importlib.import_module(f"scipy.{package}")
    found = {inspect.getdoc(getattr(module, name)) for name in sorted(module.__all__)}
    return sorted(text for text in found if text and len(text) > 400)


texts = {package: docstrings(package) for package in PACKAGES}
truth = np.repeat(PACKAGES, [len(texts[package]) for package in PACKAGES])
words = TfidfVectorizer(stop_words=["the", "of", "is", "to", "and", *MENTIONS], sublinear_tf=True)
X = words.fit_transform([text for package in PACKAGES for text in texts[package]])
print(f"{X.shape[0]} docstrings, {X.shape[1]} words")

rng = np.random.default_rng(0)
y = np.full(len(truth), "", dtype=object)  # "" is unlabelled
for package in PACKAGES:
    y[rng.choice(np.flatnonzero(truth == package), 8, replace=False)] = package
given = y != ""

# %%
# Logistic regression sees the 32 labelled texts only; the graph sees all of them.
classifier = gq.GraphClassifier(metric="cosine", inference="expectation-propagation").fit(X, y)
logistic = LogisticRegression(C=100, max_iter=2000).fit(X[given], y[given].astype(str))
accuracy = (classifier.transduction_ == truth)[~given].mean()
accuracy_logistic = (logistic.predict(X) == truth)[~given].mean()
print(f"right: graph {accuracy:.0%}, logistic regression {accuracy_logistic:.0%}")

# %%
# Left: the map of the docstrings. Right: which package was taken for which.
counts = np.array(
    [
        [np.sum((truth == a) & (classifier.transduction_ == b) & ~given) for b in PACKAGES]
        for a in PACKAGES
    ]
)
figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.4, 1])
gq.plots.plot_map(classifier.result_, ax=panels[0])
panels[0].set_title("Docstrings of SciPy by their words")
panels[1].imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
for (i, j), n in np.ndenumerate(counts):
    panels[1].text(j, i, n, ha="center", va="center", color="white" if i == j else "black")
panels[1].set(
    xticks=range(4),
    yticks=range(4),
    xticklabels=PACKAGES,
    yticklabels=PACKAGES,
    xlabel="inferred",
    ylabel="true package",
    title=f"{accuracy:.0%} right",
)
plt.show()
