"""Stand-ins for graph objects of packages that need not be installed: PyTorch Geometric, DGL."""

from types import SimpleNamespace

import numpy as np


class Tensor:
    """What graphuq uses of a tensor of torch."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def geometric(source, target, n_nodes, **attributes):
    """Return what a ``torch_geometric.data.Data`` has; every edge is stored in both directions."""
    return SimpleNamespace(edge_index=Tensor([source, target]), num_nodes=n_nodes, **attributes)


def dgl(source, target, n_nodes, edata, ndata=None, ntypes=("n",)):
    """Return what a ``dgl.DGLGraph`` has."""
    return SimpleNamespace(
        edges=lambda: (Tensor(source), Tensor(target)),
        num_nodes=lambda: n_nodes,
        edata=edata,
        ndata=ndata or {},
        ntypes=ntypes,
        etypes=["e"],
    )
