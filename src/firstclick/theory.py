"""Theorem 1 of Zong et al. 2016: how wide CascadeLinUCB must look, and what its regret then is."""

from math import isfinite, log, sqrt

from firstclick.errors import InvalidInput


def _check(**values: float) -> None:
    for name, value in values.items():
        if name == "theta_norm":
            fine, rule = value >= 0, "at least 0"
        elif name in ("n_features", "k", "steps"):
            fine, rule = value >= 1 and value == int(value), "a whole number of at least 1"
        elif name == "delta":
            fine, rule = 0 < value < 1, "between 0 and 1"
        else:
            fine, rule = value > 0, "above 0"
        if not (isfinite(value) and fine):
            raise InvalidInput(f"{name} must be {rule}, got {value:g}")


def confidence_width(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    delta: float | None = None,
) -> float:  # fmt: skip
    """The smallest c for which all intervals hold for all steps with probability 1 - delta.

    Theorem 1 takes delta = 1 / (steps * k). It needs features of norm at most 1 and
    |theta| <= theta_norm.
    """
    _check(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    if delta is not None:
        _check(delta=delta)
    inverse_delta = steps * k if delta is None else 1 / delta
    growth = log(1 + steps * k / (n_features * sigma**2))
    return sqrt(n_features * growth + 2 * log(inverse_delta)) / sigma + theta_norm


def regret_bound(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    c: float | None = None,
) -> float:  # fmt: skip
    """What the expected regret of CascadeLinUCB cannot exceed, with Theorem 1's c or a larger one."""
    least = confidence_width(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    c = least if c is None else c
    if c < least:
        raise InvalidInput(f"c must be at least {least:g} for Theorem 1 to hold, got {c:g}")
    growth = log(1 + steps * k / (n_features * sigma**2))
    return 2 * c * k * sqrt(n_features * steps * growth / log(1 + 1 / sigma**2)) + 1
