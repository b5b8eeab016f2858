"""
A network whose nodes have words: what is a paper about?
========================================================

Papers cite each other, and they have words. Both tell what a paper is about, and neither tells all:
some papers cite across fields, some have few words, and some cite nothing. The papers here are
simulated; your own are a NetworkX graph, or a table of citations, and a table of words.
"""

import itertools
import warnings

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning

rng = np.random.default_rng(1)
TOPICS, N_PAPERS, N_WORDS = ["ecology", "genetics", "medicine", "physics"], 400, 300
topic = rng.integers(0, len(TOPICS), N_PAPERS)
usual = rng.gamma(0.3, size=N_WORDS)  # how often each word is used, in any field
own = usual * rng.lognormal(0, 0.6, (len(TOPICS), N_WORDS))  # and in each field
own /= own.sum(axis=1, keepdims=True)
length = rng.poisson(18, N_PAPERS) * (rng.random(N_PAPERS) > 0.1)  # one in ten has no abstract
words = np.stack([rng.multinomial(n, own[k]) for n, k in zip(length, topic, strict=True)])

citations = nx.Graph()
citations.add_nodes_from(range(N_PAPERS))
for paper in range(N_PAPERS):
    for _ in range(rng.integers(0, 4)):
        same = np.flatnonzero((topic == topic[paper]) == (rng.random() < 0.75))
        citations.add_edge(paper, int(rng.choice(same)))
citations.remove_edges_from(list(nx.selfloop_edges(citations)))
alone = [paper for paper in citations if citations.degree[paper] == 0]
print(f"{citations.number_of_edges()} citations; {len(alone)} papers without any, "
      f"{(length == 0).sum()} without words")  # fmt: skip

# %%
# The topics of ten papers of each field are known. ``fit(X, y)`` with ``graph=`` uses citations and
# words: one row of ``X`` a paper, here a sparse matrix of counts. With ``None`` in place of ``X``
# the citations are used alone.
y = np.full(N_PAPERS, "", dtype=object)  # "" is unlabelled
for k, name in enumerate(TOPICS):
    y[rng.permutation(np.flatnonzero(topic == k))[:10]] = name
truth, open_ones = np.array(TOPICS)[topic], y == ""
counts = sparse.csr_array(words.astype(float))

# Papers without citations are what this page is about, so a warning of them is not needed.
warnings.simplefilter("ignore", DisconnectedGraphWarning)
fitted = {
    "citations": gq.GraphClassifier(citations, random_state=0).fit(None, y),
    "words": gq.GraphClassifier(metric="cosine", random_state=0).fit(counts, y),
    "citations and words": gq.GraphClassifier(citations, random_state=0).fit(counts, y),
}
right = {
    name: (classifier.transduction_ == truth)[open_ones] for name, classifier in fitted.items()
}
for name, hits in right.items():
    print(f"{name}: {hits.mean():.0%} of the other papers right")

# %%
# The labels weigh the parts of the answer. "features over graph" are words of a paper and of those
# that it cites, and so on, which count less the farther they are; ``graph`` are citations alone.
both = fitted["citations and words"]
for name, weight in gq.results.block_weights(both.result_).items():
    print(f"{name}: {weight:.2f}")

# %%
# Which papers should somebody read next? Those that tell most about the others.
next_ones = gq.acquisition.query(both.result_, 5)
print("read next:", next_ones.tolist())

# %%
# A paper without citations has what its words say, and one without words what its neighbours say.
# Probabilities tell which topics to trust: papers are right about as often as the probability of
# their topic says.
top = both.label_distributions_.max(axis=1)
hits = both.transduction_ == truth
edges = np.array([0.0, 0.5, 0.7, 0.9, 1.0])
figure, (left, right_ax) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
names, shares = list(right), [100 * hits.mean() for hits in right.values()]
bars = left.barh(names, shares, color=["#94a4a2", "#94a4a2", "#2f80cc"])
left.bar_label(bars, fmt="%.0f %%", padding=3)
left.set(xlim=(0, 110), xlabel="papers right, in %")
left.spines[["top", "right"]].set_visible(False)
for low, high in itertools.pairwise(edges):
    among = open_ones & (top > low) & (top <= high)
    if among.sum() > 9:
        right_ax.plot(top[among].mean(), hits[among].mean(), "o", color="#2f80cc", ms=9)
        right_ax.annotate(f"{among.sum()} papers", (top[among].mean(), hits[among].mean()),
                          xytext=(8, -10), textcoords="offset points", fontsize=8)  # fmt: skip
right_ax.plot([0.25, 1], [0.25, 1], color="#94a4a2", lw=1)
right_ax.set(xlabel="probability of the topic", ylabel="share right", xlim=(0.25, 1.12))
right_ax.spines[["top", "right"]].set_visible(False)
plt.show()
