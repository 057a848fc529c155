"""Theorem 1 of Zong et al. 2016: how wide CascadeLinUCB must look, and what its regret then is."""

from math import isfinite, log, log1p, sqrt
from numbers import Real

from firstclick.errors import InvalidInput


def _check(**values: float) -> None:
    for name, value in values.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not isfinite(value):
            raise InvalidInput(f"{name} must be a finite number, got {value!r}")
        if name == "theta_norm":
            fine, rule = value >= 0, "at least 0"
        elif name in ("n_features", "k", "steps"):
            fine, rule = value >= 1 and value == int(value), "a whole number of at least 1"
        elif name == "delta":
            fine, rule = 0 < value < 1, "between 0 and 1"
        else:
            fine, rule = value > 0, "above 0"
        if not fine:
            raise InvalidInput(f"{name} must be {rule}, got {value}")


def confidence_width(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    delta: float | None = None,
) -> float:  # fmt: skip
    """A c for which all intervals hold for all steps with probability at least 1 - delta.

    Theorem 1 takes delta = 1 / (steps * k). It needs features of norm at most 1 and
    |theta| <= theta_norm.
    """
    _check(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    if delta is not None:
        _check(delta=delta)
    log_inverse_delta = log(steps * k) if delta is None else -log(delta)
    growth = log1p(steps * k / n_features / sigma / sigma)
    return sqrt(n_features * growth + 2 * log_inverse_delta) / sigma + theta_norm


def regret_bound(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    c: float | None = None,
) -> float:  # fmt: skip
    """What the expected regret of CascadeLinUCB cannot exceed, with Theorem 1's c or a larger one."""
    least = confidence_width(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    c = least if c is None else c
    _check(c=c)
    if c < least:
        raise InvalidInput(f"c must be at least {least} for Theorem 1 to hold, got {c}")
    growth = log1p(steps * k / n_features / sigma / sigma)
    return 2 * c * k * sqrt(n_features * steps * growth / log1p(1 / sigma / sigma)) + 1
