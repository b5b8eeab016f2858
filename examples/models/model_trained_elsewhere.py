"""
A model that was trained elsewhere
==================================

A foundation model, or a network that was trained on other data, knows something that a few labels
do not. ``gq.models.Pooled`` averages its probabilities with those of graphuq, and the labels say
which of them to rely on. Here a network has seen 150 other images of the same digits; a second one
has learnt random classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPClassifier

import graphuq as gq

digits = gq.datasets.load_digits()
rng = np.random.default_rng(0)
elsewhere, here = np.split(rng.permutation(len(digits.target)), [150])


def trained(labels, name):
    """Return an expert: a function of labelled rows and of all rows that returns probabilities."""
    network = MLPClassifier((50,), alpha=1.0, max_iter=1000, random_state=0)
    network.fit(digits.data[elsewhere], labels)

    def expert(X_train, y_train, X):
        return network.predict_proba(X)  # it was trained before: the few labels are not used

    expert.__name__ = name
    return expert


experts = [
    trained(digits.target[elsewhere], "network"),
    trained(rng.permutation(digits.target[elsewhere]), "random classes"),
]

# %%
# Five labels of each digit.
X, classes = digits.data[here], digits.target[here]
y = np.full(len(here), -1)
for k in range(10):
    y[np.flatnonzero(classes == k)[:5]] = k
alone = gq.GraphClassifier(inference="expectation-propagation").fit(X, y)
model = gq.models.Pooled(experts)
pooled = gq.GraphClassifier(model=model, inference="expectation-propagation").fit(X, y)
weights = gq.results.expert_weights(pooled.result_)
test = y < 0
right = {
    "graphuq alone": (alone.transduction_ == classes)[test].mean(),
    **{f.__name__: (f(None, None, X).argmax(axis=1) == classes)[test].mean() for f in experts},
    "average": (pooled.transduction_ == classes)[test].mean(),
}
for name, share in right.items():
    print(f"{name}: {share:.3f} right, weight {weights.get(name.split(' alone')[0], 1):.3f}")

# %%
# The weights come from how probable each finds the 50 labels, each left out once. An expert that
# says nothing gets none, and needs not be found out by hand.
figure, panels = plt.subplots(1, 2, figsize=(10, 3), layout="constrained", sharey=False)
panels[0].barh(list(weights), list(weights.values()), color="#0072b2")
panels[0].set(xlabel="weight in the average", xlim=(0, 1))
panels[1].barh(list(right), list(right.values()), color="#d55e00")
panels[1].set(xlabel="share of other images that are right", xlim=(0, 1))
for ax in panels:
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
