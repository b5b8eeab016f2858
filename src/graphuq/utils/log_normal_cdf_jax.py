"""The log of the normal distribution function in JAX."""

import numpy as np
from jaxtyping import Float

from graphuq.utils.arrays import Array
from graphuq.utils.with_jax import jax, jnp

# Chebyshev coefficients on t in [0, 1] of log erfcx(z) − log t with t = 2 / (2 + z), found by
# interpolation at 40 Chebyshev nodes with 40 digits; what is left out sums to 2e-16.
_CHEBYSHEV = [
    -0.6513268598908547,
    0.6419697923564902,
    0.019476473204185836,
    -0.009561514786808632,
    -0.0009465953444820369,
    0.00036683949785276145,
    4.252332480690777e-05,
    -2.0278578112534242e-05,
    -1.6242900046470256e-06,
    1.3036558355805232e-06,
    1.562644172206615e-08,
    -8.523809591492654e-08,
    6.529054439098856e-09,
    5.059343495551464e-09,
    -9.91364156493029e-10,
    -2.273651222931876e-10,
    9.646791102015916e-11,
    2.3940380830353317e-12,
    -6.88602752649389e-12,
    8.94487927305535e-13,
    3.130921399377023e-13,
    -1.1270822361694264e-13,
    3.8109052864762484e-16,
    7.106097610626765e-15,
    -1.5230281986254617e-15,
    -9.457494838935987e-17,
    1.210237214395526e-16,
]
_DEGREES = {np.dtype(np.float32): 13, np.dtype(np.float64): len(_CHEBYSHEV)}
_POLYNOMIALS = {
    dtype: [float(c) for c in np.polynomial.chebyshev.cheb2poly(_CHEBYSHEV[:degree])]
    for dtype, degree in _DEGREES.items()
}
_LOG_2, _ROOT_HALF, _LOG_ROOT_2PI = (
    float(np.log(2)),
    float(np.sqrt(0.5)),
    float(np.log(2 * np.pi) / 2),
)


@jax.custom_jvp
def log_normal_cdf(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return ``log Φ(x)`` in JAX, in half the time of JAX's own function in float64.

    ``erfc(z) = t exp(P(t) − z²)`` with ``t = 2/(2 + z)``, ``z = |x|/√2`` and a polynomial P, so
    that one logarithm and no quotient of small numbers is needed.
    """
    z = _ROOT_HALF * jnp.abs(x)
    t = 2 / (2 + z)
    s = 2 * t - 1
    coefficients = _POLYNOMIALS[x.dtype]
    polynomial = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        polynomial = polynomial * s + coefficient
    exponent = polynomial - z * z
    right = x > 0  # log(1 − erfc(z)/2), else log(erfc(z)/2): one logarithm serves both
    logarithm = jnp.log1p(jnp.where(right, -0.5 * t * jnp.exp(exponent), t - 1))
    return jnp.where(right, logarithm, logarithm + exponent - _LOG_2)


@log_normal_cdf.defjvp
def _slope(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Return the derivative ``φ(x)/Φ(x)``, which does not underflow."""
    (x,), (dx,) = primals, tangents
    value = log_normal_cdf(x)
    return value, jnp.exp(-0.5 * x * x - _LOG_ROOT_2PI - value) * dx
