"""
Choose a model without leaking
==============================

How many neighbours? Two honest ways to find out with 30 labels: hold out labelled rows
(``LabelledKFold``), or the evidence, which holds out none (``EvidenceSearch``). The usual mistake
is to score the rows on which the model was fitted: here it favours models that do worse elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

import graphuq as gq

digits = gq.datasets.load_digits((3, 5, 8))
truth = digits.codes()
rng = np.random.default_rng(0)
y = np.full(len(truth), -1)
for code in range(3):
    shown = rng.choice(np.flatnonzero(truth == code), 10, replace=False)
    y[shown] = code
given = y >= 0
classifier = gq.GraphClassifier(inference="expectation-propagation", n_neighbors=15)

# %%
# Cross-validation over labelled rows. All other rows stay in the graph of every fold.
choices = [3, 10, 30, 100, 240]
search = GridSearchCV(
    classifier,
    {"n_neighbors": choices},
    cv=gq.LabelledKFold(3),
    scoring=gq.LabelledScorer("log_score"),
    refit=False,
).fit(digits.data, y)
held_out = search.cv_results_["mean_test_score"]

# %%
# The evidence: how probable the 30 labels are under each choice.
evidence = gq.EvidenceSearch(classifier, {"n_neighbors": choices}, refit=False).fit(digits.data, y)
log_evidence = np.array([row["score"] for row in evidence.results_])

# %%
# What nobody knows in practice: the score of the rows without a label. And what one must not use:
# the score of the rows that were fitted.
unseen, fitted = [], []
for count in choices:
    model = gq.GraphClassifier(inference="expectation-propagation", n_neighbors=count)
    model.fit(digits.data, y)
    probabilities = model.result_.probabilities
    unseen.append(np.log(probabilities[np.arange(len(y)), truth])[~given].mean())
    fitted.append(np.log(probabilities[np.arange(len(y)), truth])[given].mean())
chosen = {
    "held out": choices[int(np.argmax(held_out))],
    "evidence": choices[int(np.argmax(log_evidence))],
    "leaking": choices[int(np.argmax(fitted))],
}
for name, count in chosen.items():
    print(f"{name}: {count} neighbours, log score elsewhere {unseen[choices.index(count)]:.3f}")

# %%
# A large ring marks the choice of each line.
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
lines = {
    "fitted rows (leaks)": (fitted, "s--", "#e76300"),
    "labels held out": (held_out, "o-", "#2f80cc"),
    "rows without a label (unknown)": (unseen, "^:", "black"),
}
for name, (scores, style, color) in lines.items():
    panels[0].plot(choices, scores, style, color=color, label=name)
    top = int(np.argmax(scores))
    panels[0].plot(choices[top], scores[top], "o", ms=15, mfc="none", color=color)
panels[0].set(ylabel="mean log score, nats a row", title="log score")
panels[0].legend(frameon=False)
panels[1].plot(choices, log_evidence, "o-", color="#2f80cc", label="log evidence")
top = int(np.argmax(log_evidence))
panels[1].plot(choices[top], log_evidence[top], "o", ms=15, mfc="none", color="#2f80cc")
panels[1].set(ylabel="log evidence, nats", title="evidence of 30 labels")
panels[1].legend(frameon=False)
for ax in panels:
    ax.set(xscale="log", xlabel="number of neighbours")
    ax.set_xticks(choices, labels=choices)
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
