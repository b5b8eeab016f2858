"""
Texts: which package does a docstring belong to?
================================================

The texts are the docstrings of four packages of SciPy, and eight labels of each package are known.
Distances are cosines: of the words, counted by tf-idf, and of embeddings, fifty numbers a text.
Sparse matrices are used as they are.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
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
# The embeddings are those of latent semantic analysis: words that occur in the same texts become
# similar, so that texts may be neighbours without a word in common. The vectors of a sentence
# encoder are used in the same way: ``X = encoder.encode(texts)``.
embedding = TruncatedSVD(50, random_state=0).fit_transform(X)
print(f"{np.mean(X.toarray() > 0):.1%} of the counts are not zero; embeddings are dense")

# %%
# Logistic regression sees the 32 labelled texts only; the graph sees all of them.
fitted, right = {}, {}
for name, features in (("words", X), ("embeddings", embedding)):
    classifier = gq.GraphClassifier(metric="cosine", inference="expectation-propagation")
    fitted[name] = classifier.fit(features, y)
    right[name] = (classifier.transduction_ == truth)[~given].mean()
    logistic = LogisticRegression(C=100, max_iter=2000).fit(features[given], y[given].astype(str))
    right_alone = (logistic.predict(features) == truth)[~given].mean()
    print(f"{name}: graph {right[name]:.0%} right, logistic regression {right_alone:.0%}")

# %%
# The maps by words and by embeddings, and which package was taken for which by embeddings.
inferred = fitted["embeddings"].transduction_
counts = np.array(
    [[np.sum((truth == a) & (inferred == b) & ~given) for b in PACKAGES] for a in PACKAGES]
)
figure, panels = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained", width_ratios=[4, 4, 3])
figure.get_layout_engine().set(wspace=0.06)
for ax, (name, classifier) in zip(panels, fitted.items(), strict=False):
    gq.plots.plot_map(classifier.result_, ax=ax)
    ax.set_title(f"by {name}: {right[name]:.0%} right")
panels[2].imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
for (i, j), n in np.ndenumerate(counts):
    panels[2].text(j, i, n, ha="center", va="center", color="white" if i == j else "black")
panels[2].set(
    xticks=range(4),
    yticks=range(4),
    xticklabels=PACKAGES,
    yticklabels=PACKAGES,
    xlabel="inferred by embeddings",
    ylabel="true package",
)
plt.show()
