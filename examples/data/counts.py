"""
Counts with an exposure: accidents by district
==============================================

Each of 1,200 districts has a population. Of 300 of them the accidents of a year are known. Raw
rates of small districts are mostly chance: 0 or 3 accidents in a village say little. Counts of
neighbours inform each other, and a small population counts for less.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

rng = np.random.default_rng(0)
places = rng.uniform(0, 10, (1200, 2))
people = np.exp(rng.normal(0.5, 1.0, 1200))  # thousands
rate = np.exp(np.sin(places[:, 0]) + np.cos(0.7 * places[:, 1]))  # accidents for 1,000 people
own = np.exp(0.3 * rng.normal(size=1200) - 0.045)  # what no neighbour tells of a district
accidents = rng.poisson(people * rate * own).astype(float)
known = rng.choice(1200, 300, replace=False)
y = np.full(1200, np.nan)  # NaN is unknown
y[known] = accidents[known]

regressor = gq.GraphRegressor(model="counts").fit(places, y, exposure=people)

# %%
# ``transduction_`` is the mean count for an exposure of 1: here, for 1,000 people. γ is how much
# log rates differ from those of their neighbours; 0.3 was put in.
rest = np.isnan(y)
error = np.abs(np.log(regressor.transduction_ / rate))[rest].mean()
average = y[known].sum() / people[known].sum()
error_average = np.abs(np.log(average / rate))[rest].mean()
print(f"rates are off by a factor of {np.exp(error):.2f}, one rate for all by "
      f"{np.exp(error_average):.2f}; γ = {regressor.noise_std_:.2f}")  # fmt: skip

# %%
# Intervals are those of counts: they end in whole numbers, and depend on the exposure.
low, high = regressor.predict_interval(places, exposure=people).T
inside = ((low <= accidents) & (accidents <= high))[rest].mean()
print(f"{inside:.0%} of the unknown counts are in their 90 % intervals")

# %%
# Left: accidents for 1,000 people of the districts that are known; many rates are 0 or far above
# the others. Middle: what is predicted. Right: what is true.
figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
style = {"cmap": "cividis", "vmin": -2, "vmax": 2}
raw = np.log(np.maximum(y[known] / people[known], np.exp(-2)))
size = 12 * np.sqrt(people)
panels[0].scatter(*places[known].T, c=raw, s=size[known], **style)
panels[1].scatter(*places.T, c=np.log(regressor.transduction_), s=size, **style)
drawn = panels[2].scatter(*places.T, c=np.log(rate), s=size, **style)
for panel, title in zip(panels, ("known counts", "predicted", "true"), strict=True):
    panel.set(title=title, aspect="equal", xlabel="east", xticks=[], yticks=[])
panels[0].set_ylabel("north")
bar = figure.colorbar(drawn, ax=panels, label="accidents for 1,000 people", extend="both")
bar.set_ticks(np.log([0.2, 0.5, 1, 2, 5]), labels=["0.2", "0.5", "1", "2", "5"])
plt.show()
