"""Two crowds of GRAPHUQ_DATA or ../shared/data, features of pairs of products, and two peers."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))
ONE = np.ones((2, 2))  # pseudo-counts of a confusion matrix
SMALLEST = 1e-4  # probability of a logistic regression


def load(name, folder=None):
    """Return items, people, item, person and label of each reading, truth, and features or None."""
    folder = DATA / "annotators" if folder is None else Path(folder)
    answers = pd.read_csv(folder / f"{name}_answers.csv")
    truth = pd.read_csv(folder / f"{name}_truth.csv").set_index("question")["truth"]
    item, items = pd.factorize(answers["question"])
    who, people = pd.factorize(answers["worker"])
    features = None
    if name == "product":
        texts = pd.read_csv(folder / "product_texts.csv.xz").set_index("id")
        features = StandardScaler().fit_transform(pair_features(items, texts))
    return items, people, item, who, answers["answer"].to_numpy(), truth[items].to_numpy(), features


def model_codes(text):
    """Return the words with a digit, without dashes, such as model numbers."""
    words = re.findall(r"[a-z0-9][a-z0-9\-/]*", text.lower())
    parts = [part.replace("-", "") for word in words for part in word.split("/")]
    return {part for part in parts if len(part) > 2 and re.search(r"\d", part)}


def pair_features(pairs, texts):
    """Return similarities of the two products of each pair, named ``a_b_0``.

    They are cosines of words and of pieces of words, shared model codes, the ratio of prices, and
    by how much the pair is more similar than the best other pair of either product.
    """
    name, rest = texts["name"].fillna(""), texts["description"].fillna("")
    full = name + " " + rest
    price = pd.to_numeric(texts["price"].str.replace("[$,]", "", regex=True)).to_numpy()
    ids = [[int(part) for part in pair.split("_")[:2]] for pair in pairs]
    a, b = (texts.index.get_indexer(column) for column in np.array(ids).T)
    found = {}
    for kind, text in (("name", name), ("full", full)):
        for unit, options in (
            ("word", {"token_pattern": r"[a-z0-9]+"}),
            ("piece", {"analyzer": "char_wb", "ngram_range": (3, 4)}),
        ):
            rows = TfidfVectorizer(sublinear_tf=True, **options).fit_transform(text.str.lower())
            found[f"{kind} {unit}"] = np.asarray(rows[a].multiply(rows[b]).sum(axis=1)).ravel()
    of_name, of_full = [model_codes(t) for t in name], [model_codes(t) for t in full]
    squeezed = [re.sub("[^a-z0-9]", "", t.lower()) for t in full]
    counts = pd.Series([code for codes in of_full for code in codes]).value_counts()

    def weight(code):
        return np.log(len(texts) / counts.get(code, 1))

    def holds(i, code):
        return code in of_full[i] or (len(code) > 3 and code in squeezed[i])

    def share(i, j):
        total = sum(map(weight, of_name[i]))
        own = sum(weight(code) for code in of_name[i] if holds(j, code))
        return own / total if total else 0.5

    def rarest(i, j):
        both = [c for c in of_full[i] | of_full[j] if holds(i, c) and holds(j, c)]
        return max(map(weight, both), default=0.0)

    places = list(zip(a, b, strict=True))
    found["codes of a"] = np.array([share(i, j) for i, j in places])
    found["codes of b"] = np.array([share(j, i) for i, j in places])
    found["rarest code"] = np.array([rarest(i, j) for i, j in places])
    ratio = np.abs(np.log(price[a] / price[b]))
    found["price"] = np.clip(np.nan_to_num(ratio, nan=0.3), 0, 2)
    found["no price"] = np.isnan(ratio) * 1.0
    names = ("name word", "full word", "codes of a", "codes of b", "name piece")
    together = sum(found[name] for name in names)
    for side, product in (("a", a), ("b", b)):
        groups = pd.Series(together).groupby(product)
        top = groups.transform("max").to_numpy()
        second = groups.transform(lambda v: v.nlargest(2).iloc[-1] if len(v) > 1 else 0).to_numpy()
        found[f"lead of {side}"] = together - np.where(together >= top, second, top)
        found[f"pairs of {side}"] = np.log(groups.transform("size").to_numpy())
    return pd.DataFrame(found)


def votes(item, who, said, n_items, n_people):
    """Return the share of votes for each class."""
    counts = np.zeros((n_items, 2))
    np.add.at(counts, (item, said), 1)
    return (counts + 1e-9) / (counts + 1e-9).sum(axis=1, keepdims=True)


def dawid_skene(item, who, said, n_items, n_people, shares=None, start=None, n_rounds=50):
    """Return class probabilities and confusion matrices by EM, shares given or learnt."""
    p = votes(item, who, said, n_items, n_people) if start is None else start
    for _ in range(n_rounds):
        matrices = np.tile(ONE, (n_people, 1, 1))
        np.add.at(matrices, (who, slice(None), said), p[item])
        matrices /= matrices.sum(axis=2, keepdims=True)
        logs = np.log(np.tile(p.mean(axis=0), (n_items, 1)) if shares is None else shares)
        np.add.at(logs, item, np.log(matrices[who, :, said]))
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
    return p, matrices


def raykar(features, item, who, said, n_items, n_people, n_rounds=8):
    """Return the same with a logistic regression for shares (Raykar et al. 2010)."""
    parts = item, who, said, n_items, n_people
    p, matrices = dawid_skene(*parts)
    both, codes = np.tile(features, (2, 1)), np.repeat([0, 1], n_items)
    for _ in range(n_rounds):
        regression = LogisticRegression().fit(both, codes, p.T.ravel())
        shares = np.clip(regression.predict_proba(features), SMALLEST, 1)
        p, matrices = dawid_skene(*parts, shares, p, n_rounds=5)
    return p, matrices


def log_score(probability, matrices, item, who, said):
    """Return mean minus log probability of readings."""
    return float(-np.log((probability[item] * matrices[who, :, said]).sum(axis=1)).mean())


def f1(probability, truth):
    """Return F1 of class 1."""
    found = probability.argmax(axis=1) == 1
    return float(2 * (found & (truth == 1)).sum() / (found.sum() + (truth == 1).sum()))
