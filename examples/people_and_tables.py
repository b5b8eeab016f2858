"""A table of mixed columns with gaps, whose rows three people have labelled, not all of them well.

The table has numbers, categories, dates, booleans, texts and empty cells. Ann is nearly always
right, Bob guesses often, and Cyd has mixed up the two classes.
"""

import numpy as np
import pandas as pd

import graphuq as gq

N_ROWS, N_LABELLED = 400, 60
WORDS = {
    "house": ["garden", "garage", "roof", "attic"],
    "flat": ["lift", "balcony", "floor", "key"],
}


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
    """Return what Ann, Bob and Cyd say about the first rows."""
    labels = pd.DataFrame("", index=range(N_ROWS), columns=["ann", "bob", "cyd"])
    shown = kind[:N_LABELLED]
    other = np.where(shown == "house", "flat", "house")
    for name, accuracy in {"ann": 0.95, "bob": 0.6, "cyd": 0.1}.items():
        right = rng.uniform(size=N_LABELLED) < accuracy
        labels.loc[: N_LABELLED - 1, name] = np.where(right, shown, other)
    return labels


def main():
    """Encode the table, learn who is right, and predict new rows."""
    rng = np.random.default_rng(0)
    table, kind = homes(rng)
    labels = labels_of_people(kind, rng)

    encoder = gq.TableEncoder(impute=True)
    features = encoder.fit_transform(table)
    print(f"{table.shape[1]} columns became {features.shape[1]} features: {encoder.kinds_}")

    classifier = gq.AnnotatorClassifier(n_samples=2000).fit(features, labels)
    print(classifier.annotators_.round(2).to_string(index=False))
    votes = (labels == "house").sum(axis=1) > (labels == "flat").sum(axis=1)
    majority = np.where(votes, "house", "flat")[:N_LABELLED]
    print(f"right at labelled rows, by majority: {(majority == kind[:N_LABELLED]).mean():.2f}")
    right = classifier.transduction_ == kind
    print(f"right at labelled rows, by graphuq: {right[:N_LABELLED].mean():.2f}")
    print(f"right at all other rows: {right[N_LABELLED:].mean():.2f}")

    new, truth = homes(rng)
    predicted = classifier.predict(encoder.transform(new))
    print(f"right at new rows: {(predicted == truth).mean():.2f}")


if __name__ == "__main__":
    main()
