"""
Several people, and a table of mixed columns
============================================

The table has numbers, categories, dates, booleans, texts and empty cells. Four people have labelled
60 of its rows: Ann is nearly always right, Bob guesses often, Cyd has mixed up the two classes, and
Dan is mostly right. Nobody says who is who; graphuq finds out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import graphuq as gq

N_ROWS, N_LABELLED = 400, 60
WORDS = {
    "house": ["garden", "garage", "roof", "attic"],
    "flat": ["lift", "balcony", "floor", "key"],
}
ACCURACY = {"ann": 0.95, "bob": 0.6, "cyd": 0.1, "dan": 0.8}


def homes(rng):
    """Return a table, and the true kind of each home."""
    kind = rng.choice(["house", "flat"], N_ROWS)
    house = kind == "house"
    size = rng.normal(np.where(house, 130, 70), 25).round()
    built = rng.integers(1950, 2020, N_ROWS).astype(str)
    notes = [" ".join(rng.choice([*WORDS[k], "light", "quiet", "near", "new"], 6)) for k in kind]
    table = pd.DataFrame(
        {
            "size": np.where(rng.uniform(size=N_ROWS) < 0.1, np.nan, size),
            "heating": rng.choice(["gas", "wood", None], N_ROWS, p=[0.6, 0.3, 0.1]),
            "cellar": rng.uniform(size=N_ROWS) < np.where(house, 0.7, 0.3),
            "built": pd.to_datetime(built),
            "note": notes,
        }
    )
    return table, kind


def labels_of_people(kind, rng):
    """Return what each person says about the first rows."""
    labels = pd.DataFrame("", index=range(N_ROWS), columns=list(ACCURACY))
    shown = kind[:N_LABELLED]
    other = np.where(shown == "house", "flat", "house")
    for name, accuracy in ACCURACY.items():
        right = rng.uniform(size=N_LABELLED) < accuracy
        labels.loc[: N_LABELLED - 1, name] = np.where(right, shown, other)
    return labels


rng = np.random.default_rng(0)
table, kind = homes(rng)
labels = labels_of_people(kind, rng)

# %%
# ``TableEncoder`` makes features of all columns; ``AnnotatorClassifier`` takes a column of labels
# for each person.
encoder = gq.TableEncoder(impute=True)
features = encoder.fit_transform(table)
print(f"{table.shape[1]} columns became {features.shape[1]} features: {encoder.kinds_}")

classifier = gq.AnnotatorClassifier(inference=gq.inference.MCMC(n_samples=2000)).fit(
    features, labels
)
print(classifier.annotators_.round(2).to_string(index=False))
votes = (labels == "house").sum(axis=1) > (labels == "flat").sum(axis=1)
majority = np.where(votes, "house", "flat")[:N_LABELLED]
right = classifier.transduction_ == kind
new, truth = homes(rng)
shares = {
    "labelled rows, by majority": (majority == kind[:N_LABELLED]).mean(),
    "labelled rows, by graphuq": right[:N_LABELLED].mean(),
    "all other rows": right[N_LABELLED:].mean(),
    "new rows": (classifier.predict(encoder.transform(new)) == truth).mean(),
}
for rows, share in shares.items():
    print(f"right at {rows}: {share:.2f}")

# %%
# Left: how often each person is right, learnt without the truth, beside the true share of right
# labels among these 60 rows. Right: the kinds inferred, against the majority of the four.
people = classifier.annotators_
figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
middle = people["accuracy"]
panels[0].errorbar(
    middle,
    people["annotator"],
    xerr=[middle - people["lower"], people["upper"] - middle],
    fmt="o",
    color="#2f80cc",
    capsize=4,
    label="learnt, with interval",
)
true = [(labels[name] == kind)[:N_LABELLED].mean() for name in ACCURACY]
panels[0].plot(true, [*ACCURACY], "x", color="black", ms=9, label="true")
panels[0].axvline(0.5, color="#94a4a2", ls="--", label="guessing")
panels[0].set(xlim=(0, 1), ylim=(-0.6, 3.6), xlabel="share of right labels")
panels[0].set_title("How often is each person right?")
panels[0].legend(frameon=False, fontsize=8)
bars = panels[1].barh(list(shares), list(shares.values()), color=["#94a4a2", *["#2f80cc"] * 3])
panels[1].bar_label(bars, fmt="%.2f", padding=3)
panels[1].set(xlim=(0, 1.12), xlabel="share of rows that are right")
panels[1].set_title("How often is the kind of a home right?")
panels[1].invert_yaxis()
for ax in panels:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
