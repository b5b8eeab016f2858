"""
A film: a ball behind noise
===========================

Each frame has a ball that moves, pixels that are missing, and in one frame a second ball that is a
mistake. Pixels are nodes: each is joined to its neighbours and to itself in the next frame. The
film is cleaned as a whole, so a shape that is in one frame only is given little weight.
"""

import matplotlib.pyplot as plt
import numpy as np

from graphuq.results import soft_label_mean
from graphuq_papers.films import moving_ball, track

frames = moving_ball(5, (24, 24), missing=0.2, corrupted=2, seed=0)
result = track(frames, n_eigenpairs=40, n_samples=1000, n_warmup=300)
probability = frames.maps(soft_label_mean(result))
found = probability > 0.5
accuracy = (found == frames.truth).mean()
kept = found[2][frames.false[2]].mean()
print(f"{accuracy:.1%} of all pixels right; of the false ball {kept:.0%} is kept")

# %%
# Above: what is seen, with missing pixels in blue. Below: the probability of the ball, and its true
# outline.
figure, panels = plt.subplots(2, 5, figsize=(11, 4.8), layout="constrained")
for frame, (seen, answer) in enumerate(panels.T):
    shown = np.ma.masked_equal(frames.labels[frame], 0)
    seen.imshow(shown, cmap=plt.get_cmap("Greys").with_extremes(bad="#9cc4ea"), vmin=-1, vmax=1)
    drawn = answer.imshow(probability[frame], cmap="Greys", vmin=0, vmax=1)
    answer.contour(frames.truth[frame], levels=[0.5], colors="#e76300")
    seen.set_title(f"frame {frame + 1}", fontsize=10)
    for ax in (seen, answer):
        ax.set(xticks=[], yticks=[])
panels[0, 0].set_ylabel("seen")
panels[1, 0].set_ylabel("inferred")
figure.colorbar(drawn, ax=panels, label="probability of the ball")
plt.show()
