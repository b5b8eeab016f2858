"""
A table with measurements and sex: which species is a penguin?
==============================================================

Somebody measured 333 penguins: bill, flipper, weight, and sex. The species of fifteen of them is
known. Which species are the others, and of which birds is that uncertain? Males are larger than
females of their species, so a measurement means something else for each sex, and sex says nothing
of the species by itself.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from palmerpenguins import load_penguins

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning

table = load_penguins(drop_na=True)
species = table.pop("species").to_numpy()
table = table.drop(columns=["island", "year"])
print(table.head(3).to_string(index=False))

rng = np.random.default_rng(0)
y = np.full(len(table), "", dtype=object)  # "" is unlabelled
for name in np.unique(species):
    y[rng.permutation(np.flatnonzero(species == name))[:5]] = name
others = y == ""

# %%
# ``TableEncoder`` makes numbers of all columns, whatever their kind, in units that can be compared.
# The log score is the mean of −log of the probability of the true species: smaller is better. A
# warning would say that the birds fall into groups without neighbours in common, which is no fault.
warnings.simplefilter("ignore", DisconnectedGraphWarning)
fitted = {}
for columns in (["sex"], []):
    X = gq.TableEncoder().fit_transform(table.drop(columns=columns))
    classifier = gq.GraphClassifier(random_state=0).fit(X, y)
    own = classifier.label_distributions_[np.arange(len(y)), np.searchsorted(
        classifier.classes_.astype(str), species)]  # fmt: skip
    right = (classifier.transduction_ == species)[others].mean()
    score = -np.log(own[others]).mean()
    name = "without sex" if columns else "with sex"
    fitted[name] = classifier, right, score
    print(f"{name}: {right:.1%} of the other birds right, log score {score:.3f}")

# %%
# Nearest neighbours by all columns have nearly always the same sex, so that a bird of the other sex
# is no neighbour of anybody who has a label. So the default adds a joined graph, of the other
# columns, and the labels weigh it against the graph of all. Here both know the species, and the
# column does no harm.
classifier = fitted["with sex"][0]
edges = classifier.graph_.weights.tocoo()
sex = table["sex"].to_numpy()
across = (sex[edges.row] != sex[edges.col]).mean()
print(f"{across:.1%} of the edges join birds of different sex")
print(gq.results.block_weights(classifier.result_))

# %%
# The least certain birds lie between the species. A ring shows a bird whose species is wrong.
probability = classifier.label_distributions_.max(axis=1)
colors = dict(zip(np.unique(species), ["#2f80cc", "#e76300", "#66c8cc"], strict=True))
wrong = classifier.transduction_ != species
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
for ax, one in zip(axes, ("female", "male"), strict=True):
    for name, color in colors.items():
        own = (sex == one) & (classifier.transduction_ == name)
        ax.scatter(table["bill_length_mm"][own], table["bill_depth_mm"][own], c=color, label=name,
                   s=8 + 90 * (1 - probability[own]), linewidths=0)  # fmt: skip
    missed = (sex == one) & wrong
    ax.scatter(table["bill_length_mm"][missed], table["bill_depth_mm"][missed], s=130,
               facecolors="none", edgecolors="black", label="wrong")  # fmt: skip
    ax.set(title=f"{one}s", xlabel="length of the bill, mm")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("depth of the bill, mm")
axes[0].legend(frameon=False, loc="lower left", fontsize=8)
figure.suptitle("Inferred species; the larger, the less certain", fontsize=10)
plt.show()
