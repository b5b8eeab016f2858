"""
Numbers as labels: a rolled sheet
=================================

Points lie on a sheet that is rolled up, and a quantity varies along the sheet. Sixty points have a
measurement. The graph follows the sheet, so turns of the roll that lie side by side stay apart. A
Gaussian process on the coordinates joins them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import graphuq as gq

X, along = make_swiss_roll(1500, random_state=0)
truth = 3 * np.sin(0.6 * along)
rng = np.random.default_rng(0)
measured = rng.choice(1500, 60, replace=False)
y = np.full(1500, np.nan)  # NaN is unknown
y[measured] = truth[measured] + 0.2 * rng.normal(size=60)

regressor = gq.GraphRegressor().fit(X, y)
kernel = ConstantKernel(4.0) * RBF(5.0) + WhiteKernel(0.1)
process = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[measured], y[measured])

# %%
# The root mean square error over the rows without a measurement, and the share of true values in
# the 90 % intervals of the graph.
rest = np.isnan(y)
error = np.sqrt(((regressor.transduction_ - truth)[rest] ** 2).mean())
error_process = np.sqrt(((process.predict(X) - truth)[rest] ** 2).mean())
lower, upper = regressor.predict_interval(X, coverage=0.9, quantity="field").T
inside = ((lower < truth) & (truth < upper))[rest].mean()
print(f"error: graph {error:.2f}, Gaussian process {error_process:.2f}; 90 % hold {inside:.0%}")

# %%
# Left: the sheet from the side, coloured by the prediction; measured points have a rim. Right:
# along the unrolled sheet, which neither method is told.
figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1, 1.3])
style = {"cmap": "cividis", "vmin": -3, "vmax": 3}
drawn = panels[0].scatter(X[:, 0], X[:, 2], c=regressor.transduction_, s=8, **style)
panels[0].scatter(X[measured, 0], X[measured, 2], c=y[measured], s=50, ec="black", **style)
figure.colorbar(drawn, ax=panels[0], label="predicted quantity")
panels[0].set(
    aspect="equal", xlabel="coordinate 1", ylabel="coordinate 3", title="the roll from the side"
)
panels[1].vlines(along, lower, upper, color="#2f80cc", alpha=0.12, label="graph, 90 % interval")
panels[1].plot(along, process.predict(X), ".", ms=3, color="#e76300", label="Gaussian process")
panels[1].plot(along, regressor.transduction_, ".", ms=3, color="#2f80cc", label="graph")
order = np.argsort(along)
panels[1].plot(along[order], truth[order], color="black", label="truth")
panels[1].plot(
    along[measured], y[measured], "o", ms=5, color="black", mfc="white", label="measured"
)
panels[1].set(xlabel="place along the sheet", ylabel="quantity", title="unrolled")
panels[1].legend(frameon=False, fontsize=8, markerscale=1.5)
panels[1].spines[["top", "right"]].set_visible(False)
plt.show()
