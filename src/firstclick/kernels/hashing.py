"""Random numbers as a pure function of a key: uniform, normal and Beta.

A kernel never draws. It hashes a 64-bit key with an item or a counter, so that the same key gives
the same number wherever, whenever and in whatever order it is asked for.
"""

from math import cos, exp, log, pi, sin, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel, shared_kernel

# Numba turns uint64 combined with a plain int into a float: every constant is a uint64.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_S12, _S27, _S30, _S31, _S32 = (np.uint64(s) for s in (12, 27, 30, 31, 32))
# Uses of one key that must not share numbers start far apart.
_NOISE, _USER, _FIRST, _SECOND = (np.uint64(s << 56) for s in (1, 2, 3, 4))


@kernel
def mix(key, number):  # type: ignore[no-untyped-def]
    """The `number`-th output of SplitMix64 started at `key` (both uint64)."""
    return scramble(key + stride(number))


@kernel
def stride(number):  # type: ignore[no-untyped-def]
    """How far the `number`-th state of SplitMix64 is from its start."""
    return (number + _ONE) * _STRIDE


@kernel
def scramble(z):  # type: ignore[no-untyped-def]
    """The output of SplitMix64 in this state."""
    z = (z ^ (z >> _S30)) * _FACTOR_1
    z = (z ^ (z >> _S27)) * _FACTOR_2
    return z ^ (z >> _S31)


@kernel
def uniform(key, number):  # type: ignore[no-untyped-def]
    """A number in the open interval (0, 1), an odd multiple of 2^-53: its logarithm exists."""
    return (np.float64(mix(key, number) >> _S12) + 0.5) * (1.0 / 4503599627370496.0)


@kernel
def user_of(key, n_users):  # type: ignore[no-untyped-def]
    """A user number below `n_users`, itself below 2^32, each equally likely to within 2^-32."""
    return np.int64(((mix(key, _USER) >> _S32) * np.uint64(n_users)) >> _S32)


@kernel
def normal(key, number):  # type: ignore[no-untyped-def]
    """A standard normal number (Box-Muller, one of the pair)."""
    twice = number + number
    return sqrt(-2.0 * log(uniform(key, twice))) * cos(2.0 * pi * uniform(key, twice + _ONE))


@shared_kernel
def fill_normal(key, noise):  # type: ignore[no-untyped-def]
    """Fill `noise` with independent standard normal numbers (Box-Muller, both of each pair)."""
    noise_key = mix(key, _NOISE)
    size = len(noise)
    for i in range(0, size, 2):
        number = np.uint64(i)
        radius = sqrt(-2.0 * log(uniform(noise_key, number)))
        angle = 2.0 * pi * uniform(noise_key, number + _ONE)
        noise[i] = radius * cos(angle)
        if i + 1 < size:
            noise[i + 1] = radius * sin(angle)


@kernel
def log_gamma(key, shape):  # type: ignore[no-untyped-def]
    """The logarithm of a Gamma(shape, 1) number (Marsaglia and Tsang 2000), for any shape above 0.

    The number itself may be too small for floating point when the shape is.
    """
    # Below 1 the method starts from shape + 1 and multiplies by a power of a uniform number.
    boost = 0.0
    if shape < 1.0:
        boost = log(uniform(key, _FIRST)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    counter = np.uint64(0)
    while True:
        x = normal(key, counter)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = uniform(key, _SECOND + counter)
            if log(u) < 0.5 * x * x + d - d * v + d * log(v):
                return boost + log(d * v)
        counter += _ONE


@shared_kernel
def beta(key, number, a, b):  # type: ignore[no-untyped-def]
    """A Beta(a, b) number that belongs to (key, number)."""
    own = mix(key, number)
    # x / (x + y) of two Gamma numbers.
    return 1.0 / (1.0 + exp(log_gamma(mix(own, _SECOND), b) - log_gamma(mix(own, _FIRST), a)))
