"""
A crowd: many people, few labels each
=====================================

Some 1,450 noisy pictures of digits, each a 3 or a 5. Eighty people label a
few pictures each, three labels a picture. Some people are good, some guess, and pictures that look
like both digits are hard for everybody. Nobody knows who is who. graphuq learns it together with
the digits, and says how sure it is of both.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import graphuq as gq

rng = np.random.default_rng(0)
digits = gq.datasets.load_digits((3, 5))
pictures = np.tile(digits.data, (4, 1)) + rng.normal(
    0, 3, (4 * len(digits.data), digits.data.shape[1])
)
truth = np.tile(digits.codes(), 4)
n_pictures, n_people = len(pictures), 80

# %%
# The labels of the crowd: a row for each picture, a column for each person, −1 where the person has
# not seen the picture.
skill = rng.normal(0.8, 0.7, n_people)
ease = rng.normal(size=n_pictures)
labels = np.full((n_pictures, n_people), -1)
for j in range(n_pictures):
    people = rng.choice(n_people, 3, replace=False)
    right = rng.uniform(size=3) < norm.cdf(skill[people] + 0.7 * ease[j])
    labels[j, people] = np.where(right, truth[j], 1 - truth[j])

classifier = gq.AnnotatorClassifier().fit(pictures, labels)
table = classifier.annotators_
print(table.round(2).head().to_string(index=False))

# %%
# Votes, the model of people without pictures, and both together.
votes = (labels == 1).sum(axis=1) > (labels == 0).sum(axis=1)
alone = gq.AnnotatorClassifier().fit(None, labels)
shares = {
    "majority of three": (votes == truth).mean(),
    "people alone": (alone.transduction_ == truth).mean(),
    "people and pictures": (classifier.transduction_ == truth).mean(),
}
for name, share in shares.items():
    print(f"{name}: {share:.3f} right")

# %%
# Left: how often each person is right, learnt without the truth, against the true share. Right: how
# many pictures are right.
given = labels >= 0
true = ((labels == truth[:, None]) & given).sum(axis=0) / given.sum(axis=0)
low, high = classifier.share_right_interval_.T
held = (low <= true + 1e-9) & (true <= high + 1e-9)
print(f"{held.mean():.0%} of the intervals of people hold their true share of right labels")
figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
middle = classifier.share_right_
panels[0].errorbar(
    true, middle, yerr=np.maximum([middle - low, high - middle], 0), fmt="o", ms=4, color="#2f80cc"
)
panels[0].plot([0, 1], [0, 1], color="#94a4a2", ls="--")
panels[0].set(xlabel="true share of right labels", ylabel="learnt, with 90 % interval")
panels[0].set_title("How often is each person right?")
bars = panels[1].barh(list(shares), list(shares.values()), color=["#94a4a2", "#94a4a2", "#2f80cc"])
panels[1].bar_label(bars, fmt="%.3f", padding=3)
panels[1].set(xlim=(0, 1.12), xlabel="share of pictures that are right")
panels[1].invert_yaxis()
for ax in panels:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
