"""Draw the picture at the top of the README: certain and uncertain answers, right and wrong.

The answers are those of the README's six lines: 1,797 digits, of which the first 100 have labels.
The left panel compares the probability of the answers with the share that is right. The right
panel shows the least certain images, and the most certain one of each class.

    python examples/readme_figure.py docs/images/digits.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import graphuq as gq

RIGHT, WRONG = "#7fb2dc", "#c22f2f"
BANDS = [0.0, 0.5, 0.8, 0.95, 1.01]
NAMES = ["below 50 %", "50 to 80 %", "80 to 95 %", "95 % or more"]
N_UNCERTAIN = 10  # images

digits = gq.datasets.load_digits()
y = digits.target.copy()
y[100:] = -1
classifier = gq.GraphClassifier().fit(digits.data, y)
result = classifier.result_

free = np.arange(len(y)) >= 100
probability = result.probabilities.max(axis=1)
right = classifier.transduction_ == digits.target
expected = gq.expected_errors(result).expected
band = np.digitize(probability, BANDS) - 1

figure = Figure(figsize=(10, 3.6), layout="constrained")
bars, images = figure.subfigures(1, 2, width_ratios=[1.2, 1])
axes = bars.subplots()
for k in range(len(NAMES)):
    chosen = free & (band == k)
    share = right[chosen].mean()
    axes.barh(k, share, color=RIGHT, label="right" if k == 0 else None)
    axes.barh(k, 1 - share, left=share, color=WRONG, label="wrong" if k == 0 else None)
    mean = probability[chosen].mean()
    axes.plot([mean, mean], [k - 0.4, k + 0.4], color="black", linewidth=2.5)
    axes.text(0.01, k, f"{chosen.sum():,} answers", va="center", fontsize=10)
axes.plot([], [], color="black", linewidth=2.5, label="promised: mean probability")
axes.set_yticks(range(len(NAMES)), NAMES)
axes.set(xlim=(0, 1), ylabel="probability of the answer", xlabel="share of the answers")
axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3, frameon=False)
title = f"100 labels, {free.sum():,} answers: {expected:.0f} errors expected, "
bars.suptitle(title + f"{(~right & free).sum()} made", fontsize=11)

grids = images.subplots(4, 5)
images.suptitle("least certain (top), most certain of each class (bottom)", fontsize=11)
certain = [
    max(np.flatnonzero(free & (classifier.transduction_ == k)), key=probability.__getitem__)
    for k in classifier.classes_
]
shown = [*gq.most_uncertain(result, N_UNCERTAIN), *certain]
for axes, node in zip(grids.ravel(), shown, strict=True):
    axes.imshow(digits.data[node].reshape(8, 8), cmap="gray_r")
    text = f"{classifier.transduction_[node]}: {probability[node]:.0%}"
    axes.set_title(text, fontsize=9, pad=2, color="black" if right[node] else WRONG)
    axes.set_axis_off()
figure.savefig(sys.argv[1], dpi=110)
