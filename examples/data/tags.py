"""
Tags: several labels a picture
==============================

Each picture of a digit has several tags or none: it has a loop, is even, is prime, is round at the
bottom. Somebody tags 30 of 600 pictures, and leaves a tag out where the answer is not clear. Which
tags do the others have? The same works for genres of films and topics of texts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import graphuq as gq

TAGS = {
    "loop": [0, 6, 8, 9],
    "even": [0, 2, 4, 6, 8],
    "prime": [2, 3, 5, 7],
    "round": [0, 3, 5, 6, 8],
}
X, digit = load_digits(return_X_y=True)
X, digit = X[:600], digit[:600]
truth = pd.DataFrame({tag: np.isin(digit, own).astype(float) for tag, own in TAGS.items()})

rng = np.random.default_rng(0)
tagged = np.sort(rng.choice(600, 30, replace=False))
Y = truth.where(np.isin(np.arange(600), tagged).repeat(4).reshape(600, 4))  # NaN is unknown
Y.loc[tagged[:5], "round"] = np.nan  # for these the answer was not clear

# %%
# One call for all tags. The table has one row a picture: its most probable tags, their
# probabilities, and the expected number of wrong tags.
quick = gq.GraphClassifier(inference="expectation-propagation")
classifier = gq.MultilabelClassifier(quick).fit(X, Y)
table = classifier.to_dataframe()
print(table[["tags", "expected_errors", "given"]].head().to_string())
print(classifier.tags_[["tag", "n_labels", "n_with", "share", "verdict"]].to_string())

# %%
# Four tags of 570 pictures: how many are right, and how many did the probabilities promise?
others = ~np.isin(np.arange(600), tagged)
right = (classifier.transduction_ == truth).to_numpy()[others]
expected = 1 - table["expected_errors"][others].mean() / len(TAGS)
print(f"{right.mean():.1%} of the tags are right, and {expected:.1%} were expected")

# %%
# The pictures whose tags are the least certain are those to look at next.
doubtful = classifier.query(6, "entropy")
figure, panels = plt.subplots(1, 6, figsize=(11, 3.2), layout="constrained")
for panel, row in zip(panels, doubtful.tolist(), strict=True):
    panel.imshow(X[row].reshape(8, 8), cmap="gray_r")
    p = classifier.tag_probabilities_[row]
    words = [f"{tag} {share:.0%}" for tag, share in zip(TAGS, p, strict=True)]
    panel.set_title("\n".join(words), fontsize=9)
    panel.set(xticks=[], yticks=[])
plt.show()
