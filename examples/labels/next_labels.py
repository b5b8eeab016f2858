"""
Choose the next labels
======================

A person labels a few images at a time. Which ones should be next? ``query`` proposes rows,
``add_labels`` renews all probabilities, and ``expected_errors`` says how many labels would be wrong
if one stopped now. It does not know the truth.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

digits = gq.datasets.load_digits((3, 5, 8, 9))
truth = digits.codes()  # the person who labels
start = np.full(len(truth), -1)
for code in range(4):
    start[np.flatnonzero(truth == code)[0]] = code
first = gq.GraphClassifier(inference="expectation-propagation").fit(digits.data, start)


def history(rule, n_rounds=9, n_each=5):
    """Return errors and expected errors after each round, and the rows that were asked for."""
    classifier, asked = copy.deepcopy(first), []
    wrong, expected = [], []
    for _ in range(n_rounds):
        wrong.append(int((classifier.transduction_ != truth).sum()))
        expected.append(gq.expected_errors(classifier.result_))
        rows = classifier.query(n_each, rule=rule)
        classifier.add_labels(rows, truth[rows])
        asked.extend(rows)
    return wrong, expected, asked


wrong, expected, asked = history("auto")
wrong_by_chance, _, _ = history("random")
n_labels = 4 + 5 * np.arange(9)
print(f"wrong after {n_labels[-1]} labels: chosen {wrong[-1]}, at random {wrong_by_chance[-1]}")

# %%
# Left: errors against labels. The band is what graphuq expects, with a 90 % interval. It expects
# too many here: on clear classes its probabilities are too low. Right: the rows it asked for first,
# among all images.
figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
panels[0].fill_between(
    n_labels,
    [count.lower for count in expected],
    [count.upper for count in expected],
    color="#2f80cc",
    alpha=0.2,
    label="expected, 90 % interval",
)
panels[0].plot(n_labels, wrong, "o-", color="#2f80cc", label="chosen")
panels[0].plot(n_labels, wrong_by_chance, "s--", color="#e76300", label="at random")
panels[0].set(
    xlabel="number of labels", ylabel="wrong labels", ylim=(0, None), title="errors that are left"
)
panels[0].legend(frameon=False)
panels[0].spines[["top", "right"]].set_visible(False)
spectrum = first.result_.posterior.spectrum
x, y = spectrum.eigenvectors[:, 1], spectrum.eigenvectors[:, 2]
colors = gq.plots.class_colors(4)
for code, name in enumerate((3, 5, 8, 9)):
    panels[1].scatter(
        x[truth == code],
        y[truth == code],
        s=10,
        alpha=0.5,
        color=colors(code),
        label=f"digit {name}",
    )
panels[1].scatter(
    x[asked[:20]], y[asked[:20]], s=70, facecolors="none", edgecolors="black", label="asked first"
)
panels[1].set(xticks=[], yticks=[], xlabel="eigenvector 1", ylabel="eigenvector 2", title="rows")
panels[1].legend(frameon=False, fontsize=8)
plt.show()
