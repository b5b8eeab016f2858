"""
A network: who sided with whom?
===============================

Zachary's karate club fell into two. The network of friendships is known, and that the instructor
and the officer led the two sides. Who followed whom, and who could have gone either way? A
NetworkX graph is used as it is.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import graphuq as gq

club = nx.karate_club_graph()
classifier = gq.GraphClassifier("precomputed", random_state=0)
classifier.fit(club, {0: "Mr. Hi", 33: "Officer"})
sides = np.array([club.nodes[member]["club"] for member in club])
accuracy = (classifier.transduction_ == sides).mean()
print(f"{accuracy:.0%} of {len(sides)} members right, from the two leaders alone")
print(classifier.result_.trust)

# %%
# With one label of each side the verdict is amber, however well it went: two labels cannot confirm
# that sides follow friendships. Members near the middle of the colour bar could have gone either
# way, and a ring shows a member whose side is wrong.
probability = classifier.result_.probabilities[:, 1]
places = nx.spring_layout(club, seed=3, weight=None, iterations=200)
figure, ax = plt.subplots(figsize=(8, 5.4), layout="constrained")
nx.draw_networkx_edges(club, places, ax=ax, edge_color="#c4c9d0")
drawn = nx.draw_networkx_nodes(
    club, places, ax=ax, node_color=probability, cmap="RdBu", vmin=0, vmax=1, node_size=300
)
drawn.set_edgecolor("#5a5e6b")
for leads, color in ((True, "white"), (False, "black")):
    names = {node: node for node in club if (node in (0, 33)) == leads}
    nx.draw_networkx_labels(club, places, names, ax=ax, font_size=8, font_color=color)
wrong = np.flatnonzero(classifier.transduction_ != sides)
for nodes, color, name in (([0, 33], "black", "leader"), (wrong, "#e76300", "wrong side")):
    where = np.array([places[node] for node in nodes]).reshape(-1, 2)
    ax.scatter(
        *where.T, s=520, facecolors="none", edgecolors=color, linewidths=2, label=name, zorder=3
    )
figure.colorbar(drawn, ax=ax, label="probability of the officer's side")
ax.legend(frameon=False, loc="lower left", markerscale=0.6)
ax.set_title("Friendships in the karate club")
ax.set_axis_off()
plt.show()
