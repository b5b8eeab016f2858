"""Where block Lanczos computes: on an accelerator, if JAX has one, or on the CPU."""

import numpy as np

from graphuq.spectrum.block_operator import BlockOperator
from graphuq.spectrum.krylov_basis import KrylovBasis
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import has_accelerator
from graphuq.utils.compilation_cache import use_compilation_cache


def on_device(laplacian: Laplacian, dtype: type) -> tuple[BlockOperator, KrylovBasis]:
    """Return the operator L and an empty basis, on the accelerator if the graph is sparse."""
    sparse_weights = not isinstance(laplacian.graph.weights, np.ndarray)
    if has_accelerator() and sparse_weights:
        from graphuq.spectrum.block_operator_gpu import DeviceOperator
        from graphuq.spectrum.krylov_basis_gpu import DeviceBasis

        use_compilation_cache()
        return DeviceOperator(laplacian, dtype), DeviceBasis(laplacian, dtype)
    return BlockOperator(laplacian, dtype), KrylovBasis(laplacian, dtype)
