"""
Few labels: ten digits
======================

1,797 images of handwritten digits, of which 50 have a label, five of each digit. The graph joins
images that look alike, and labels spread along it. Each image gets the probability of every digit,
which also tells which images are doubtful.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

digits = gq.datasets.load_digits()
rng = np.random.default_rng(0)
y = np.full(len(digits.target), -1)  # -1 is unlabelled
for digit in range(10):
    shown = rng.choice(np.flatnonzero(digits.target == digit), 5, replace=False)
    y[shown] = digit

# %%
# Expectation propagation answers in seconds. Without ``inference=`` the fit averages over models:
# it takes longer, and its probabilities are better.
classifier = gq.GraphClassifier(inference="expectation-propagation").fit(digits.data, y)
hidden = y < 0
accuracy = (classifier.transduction_ == digits.target)[hidden].mean()
print(f"{hidden.sum()} images without a label, {accuracy:.0%} of them named correctly")

# %%
# A result shows itself in a notebook, and here: the verdict, how many answers are probably wrong,
# the classes, and a small map.
classifier.result_

# %%
# Left: the map of the report, on which similar images lie side by side; labelled ones have a rim.
# Right: the images whose digit is least certain, with the two digits between which graphuq
# hesitates. Many of them puzzle people, too.
result = classifier.result_
figure = plt.figure(figsize=(11, 5), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.35, 1])
gq.plots.plot_map(result, ax=left.subplots())
panels = right.subplots(4, 4)
for ax, row in zip(panels.ravel(), gq.most_uncertain(result, 16), strict=True):
    probabilities = result.probabilities[row]
    first, second = np.argsort(probabilities)[:-3:-1]
    ax.imshow(digits.data[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{first} or {second}", fontsize=9, pad=3)
    ax.set_axis_off()
right.suptitle("the least certain images", fontsize=11)
plt.show()
