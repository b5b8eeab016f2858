"""
Grades: patients from mild to severe
====================================

A doctor grades 50 of 442 patients from "mild" to "severe", by how far their disease has gone after
a year. Ten measurements of all patients were taken a year before. Which grade will the others have?
The grades have an order: a patient who is "severe" tells something of those who are "serious", too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import graphuq as gq

GRADES = np.array(["mild", "light", "moderate", "serious", "severe"])  # the lowest first
data = load_diabetes()
X = StandardScaler().fit_transform(data.data)
truth = np.digitize(data.target, np.quantile(data.target, [0.2, 0.4, 0.6, 0.8]))

rng = np.random.default_rng(0)
graded = rng.choice(len(X), 50, replace=False)
y = np.full(len(X), "", dtype=object)
y[graded] = GRADES[truth[graded]]

# %%
# ``ordered`` takes the grades from the lowest to the highest. Without it the classes are strangers
# to each other, and 50 labels of five classes tell less.
answers = {
    "with the order": gq.GraphClassifier(ordered=GRADES.tolist()).fit(X, y),
    "without": gq.GraphClassifier().fit(X, y),
}
others = y == ""
scores = {}
for name, fitted in answers.items():
    places = [fitted.classes_.tolist().index(grade) for grade in GRADES]
    p = fitted.label_distributions_[others][:, places]
    median = (p.cumsum(axis=1) < 0.5).sum(axis=1)
    log_score = -np.log(p[np.arange(len(p)), truth[others]]).mean()
    scores[name] = log_score, np.abs(median - truth[others]).mean()
    print(f"{name}: log score {log_score:.2f}, off by {scores[name][1]:.2f} grades on average")

# %%
# One score of all patients, u, is cut by thresholds into grades. It rises with what happened to
# them a year later, which nobody knew.
ordered = answers["with the order"]
score, thresholds = ordered.result_.latent_mean, ordered.result_.posterior.likelihood.thresholds
correlation = float(np.corrcoef(score[others], data.target[others])[0, 1])

order = np.argsort(score)
shares = ordered.label_distributions_[order]
smooth = np.array([part.mean(axis=0) for part in np.array_split(shares, 40)])
at = np.array([part.mean() for part in np.array_split(score[order], 40)])

figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
colors = plt.get_cmap("viridis_r")(np.linspace(0.05, 0.95, 5))
panels[0].stackplot(at, smooth.T, colors=colors, labels=GRADES)
panels[0].set(xlabel="score u of the patient", ylabel="probability of the grades")
panels[0].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
panels[1].scatter(score[others], data.target[others], s=8, color="#94a4a2", label="other patients")
panels[1].scatter(score[graded], data.target[graded], s=16, color="#bd1f01", label="graded")
for threshold in thresholds:
    panels[1].axvline(threshold, color="black", lw=0.6)
panels[1].set(xlabel="score u, and thresholds of the grades", ylabel="progress after a year")
panels[1].legend(frameon=False, loc="upper left", fontsize=8)
plt.show()
