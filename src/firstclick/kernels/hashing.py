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
# AS 241: coefficients of the ratios of polynomials, highest power first.
_MIDDLE = (
    (2.5090809287301226727e3, 5.2264952788528545610e3), (3.3430575583588128105e4, 2.8729085735721942674e4),
    (6.7265770927008700853e4, 3.9307895800092710610e4), (4.5921953931549871457e4, 2.1213794301586595867e4),
    (1.3731693765509461125e4, 5.3941960214247511077e3), (1.9715909503065514427e3, 6.8718700749205790830e2),
    (1.3314166789178437745e2, 4.2313330701600911252e1), (3.3871328727963666080e0, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 1.05075007164441684324e-9), (2.27238449892691845833e-2,
    5.47593808499534494600e-4), (2.41780725177450611770e-1, 1.51986665636164571966e-2),
    (1.27045825245236838258e0, 1.48103976427480074590e-1), (3.64784832476320460504e0,
    6.89767334985100004550e-1), (5.76949722146069140550e0, 1.67638483018380384940e0),
    (4.63033784615654529590e0, 2.05319162663775882187e0), (1.42343711074968357734e0, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.04426310338993978564e-15), (2.71155556874348757815e-5,
    1.42151175831644588870e-7), (1.24266094738807843860e-3, 1.84631831751005468180e-5),
    (2.65321895265761230930e-2, 7.86869131145613259100e-4), (2.96560571828504891230e-1,
    1.48753612908506148525e-2), (1.78482653991729133580e0, 1.36929880922735805310e-1),
    (5.46378491116411436990e0, 5.99832206555887937690e-1), (6.65790464350110377720e0, 1.0),
)  # fmt: skip
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
    return _share(mix(key, number))


@kernel
def _share(hashed):  # type: ignore[no-untyped-def]
    return (np.float64(hashed >> _S12) + 0.5) * (1.0 / 4503599627370496.0)


@kernel
def luck(hashed):  # type: ignore[no-untyped-def]
    """The standard normal number of a hash: the larger the hash, the larger the number.

    The inverse of the normal distribution function, by Wichura's algorithm AS 241 (1988): 16 digits.
    """
    share = _share(hashed)
    from_middle = share - 0.5
    if abs(from_middle) <= 0.425:
        return from_middle * _ratio(0.180625 - from_middle * from_middle, _MIDDLE)
    r = sqrt(-log(min(share, 1.0 - share)))
    size = _ratio(r - 1.6, _TAIL) if r <= 5.0 else _ratio(r - 5.0, _FAR_TAIL)
    return size if from_middle > 0.0 else -size


@kernel
def _ratio(r, coefficients):  # type: ignore[no-untyped-def]
    """The ratio of two polynomials in r, of the coefficients (above, below), highest power first."""
    above, below = 0.0, 0.0
    for a, b in coefficients:
        above = above * r + a
        below = below * r + b
    return above / below


@kernel
def user_of(key, n_users):  # type: ignore[no-untyped-def]
    """A user number below `n_users`, itself below 2^32, each equally likely to within 2^-32."""
    return np.int64(((mix(key, _USER) >> _S32) * np.uint64(n_users)) >> _S32)


@kernel
def user_by_share(key, upto):  # type: ignore[no-untyped-def]
    """A user number, where the shares of the users up to and with each one add up to `upto`."""
    share = uniform(key, _USER) * upto[-1]
    low, high = 0, len(upto) - 1
    while low < high:
        middle = (low + high) >> 1
        if upto[middle] <= share:
            low = middle + 1
        else:
            high = middle
    return np.int64(low)


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
