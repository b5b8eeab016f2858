"""Many data sets of the same variables in one: a file with few groups is quick to write."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def packed(datasets: "Sequence[xr.Dataset]") -> "xr.Dataset":
    """Return the numbers of all data sets, one after the other, with their shapes."""
    import xarray as xr

    found = xr.Dataset(attrs={"attributes": json.dumps([dict(one.attrs) for one in datasets])})
    for name in datasets[0]:
        arrays = [one[name].to_numpy() for one in datasets]
        found[name] = (f"{name}_entry", np.concatenate([array.ravel() for array in arrays]))
        shapes = np.array([array.shape for array in arrays], dtype=np.int64)
        found[f"{name}_shape"] = (("part", f"{name}_axis"), shapes.reshape(len(arrays), -1))
        found[name].attrs["axes"] = json.dumps([str(axis) for axis in datasets[0][name].dims])
    return found


def unpacked(stored: "xr.Dataset") -> "list[xr.Dataset]":
    """Return the data sets that `packed` joined."""
    import xarray as xr

    attributes = json.loads(stored.attrs["attributes"])
    found = [xr.Dataset(attrs=own) for own in attributes]
    for name in (str(name) for name in stored if "axes" in stored[name].attrs):
        axes, values = json.loads(stored[name].attrs["axes"]), stored[name].to_numpy()
        begin = 0
        for one, shape in zip(found, stored[f"{name}_shape"].to_numpy().tolist(), strict=True):
            end = begin + int(np.prod(shape))
            one[name] = (axes, values[begin:end].reshape(shape))
            begin = end
    return found
