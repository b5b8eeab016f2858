"""
Find wrong labels
=================

One label in eight is wrong. ``suspect_labels`` lists the given labels from the least to the most
probable, each given the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

digits = gq.datasets.load_digits((1, 4, 7, 9))
truth = digits.codes()
rng = np.random.default_rng(2)
labelled = rng.choice(len(truth), 80, replace=False)
wrong = rng.choice(labelled, 10, replace=False)
y = np.full(len(truth), -1)
y[labelled] = truth[labelled]
y[wrong] = (truth[wrong] + rng.integers(1, 4, 10)) % 4
y = np.where(y < 0, "", np.array(["1", "4", "7", "9"])[y])  # names of classes

classifier = gq.GraphClassifier(inference="expectation-propagation").fit(digits.data, y)
suspects = classifier.suspect_labels()
found = np.isin(suspects["node"][:10], wrong).sum()
print(suspects.head(10).round(3).to_string(index=False))
print(f"{found} of the 10 wrong labels are among the first 10")

# %%
# The twelve most suspect labels. A red frame marks those that are wrong; the others are images that
# a person could get wrong.
figure, panels = plt.subplots(2, 6, figsize=(10, 4.2), layout="constrained")
for ax, row in zip(panels.ravel(), suspects.head(12).itertuples(), strict=True):
    ax.imshow(digits.data[row.node].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"given {row.given}, probably {row.other}\np(given) = {row.probability:.3f}", size=8
    )
    ax.set(xticks=[], yticks=[])
    is_wrong = row.node in wrong
    ax.spines[:].set(color="#bd1f01" if is_wrong else "#94a4a2", linewidth=3 if is_wrong else 1)
figure.suptitle(f"most suspect first: {found} of 10 wrong labels among the first 10")
plt.show()
