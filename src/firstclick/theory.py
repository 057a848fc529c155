"""Theorem 1 of Zong et al. 2016: how wide CascadeLinUCB must look, and what its regret then is."""

from collections.abc import Callable
from math import isfinite, log, log1p, sqrt
from numbers import Real

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

LARGEST = 1e300
# Floating point has no room for the square of a sigma beyond these.
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-100, 1e100


def _check(**values: float) -> None:
    for name, value in values.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not _is_finite(value):
            raise InvalidInput(f"must be a finite number, got {quoted(value)}", name)
        if name == "theta_norm":
            fine, rule = value >= 0, "at least 0"
        elif name in ("n_features", "k", "steps"):
            fine, rule = value >= 1 and value == int(value), "a whole number of at least 1"
        elif name == "delta":
            fine, rule = 0 < value < 1 and float(value) > 0, "between 0 and 1"
        else:
            fine, rule = value > 0, "above 0"
        if name == "sigma" and fine and not SMALLEST_SIGMA <= value <= LARGEST_SIGMA:
            fine, rule = False, f"between {SMALLEST_SIGMA:g} and {LARGEST_SIGMA:g}"
        if not fine:
            raise InvalidInput(f"must be {rule}, got {quoted(value)}", name)
        if value > LARGEST:
            raise InvalidInput(f"must be at most {LARGEST:g}, got {quoted(value)}", name)


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # A whole number is finite, however large.
        return True


def _sizes(
    n_features: int, k: int, steps: int, sigma: float, theta_norm: float
) -> tuple[int, int, int, float]:
    """Checked, and plain: NumPy's numbers have less room."""
    _check(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    return int(n_features), int(k), int(steps), float(sigma)


def _within_floats(formula: Callable[[], float]) -> float:
    """What the formula gives, or InvalidInput if that is no number that a computer has."""
    try:
        if isfinite(value := formula()):
            return value
    except OverflowError:
        pass
    raise InvalidInput("the bound exceeds every number a computer knows; take numbers nearer to 1")


def confidence_width(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    delta: float | None = None,
) -> float:  # fmt: skip
    """The width `c` that CascadeLinUCB needs for Theorem 1 of Zong et al. (2016).

    >>> from firstclick import confidence_width
    >>> round(confidence_width(n_features=2, k=1, steps=1_000_000), 2)
    8.34

    With this `c`, all confidence intervals hold at all steps with probability at least 1 - `delta`. The
    theorem assumes features of norm at most 1.

    Args:
        n_features: The number of features, d.
        k: The length of a slate.
        steps: The number of steps, n.
        sigma: The learning rate of CascadeLinUCB.
        theta_norm: An upper bound on the norm of the true theta.
        delta: The probability of failure; 1 / (steps * k) by default, as in Theorem 1.
    """
    d, k, n, sigma = _sizes(n_features, k, steps, sigma, theta_norm)
    if delta is not None:
        _check(delta=delta)
    log_inverse_delta = log(n * k) if delta is None else -log(delta)

    def width() -> float:
        growth = log1p(n * k / d / sigma / sigma)
        return sqrt(d * growth + 2 * log_inverse_delta) / sigma + float(theta_norm)

    return _within_floats(width)


def regret_bound(
    *, n_features: int, k: int, steps: int, sigma: float = 1.0, theta_norm: float = 1.0,
    c: float | None = None,
) -> float:  # fmt: skip
    """The largest expected regret that CascadeLinUCB can have by Theorem 1 of Zong et al. (2016).

    >>> from firstclick import regret_bound
    >>> f"{regret_bound(n_features=2, k=1, steps=1_000_000):,.0f}"
    '102,638'

    Args:
        n_features: The number of features, d.
        k: The length of a slate.
        steps: The number of steps, n.
        sigma: The learning rate of CascadeLinUCB.
        theta_norm: An upper bound on the norm of the true theta.
        c: The width; `confidence_width` of the same arguments by default.

    Raises:
        InvalidInput: `c` is too small for the theorem to hold.
    """
    least = confidence_width(n_features=n_features, k=k, steps=steps, sigma=sigma, theta_norm=theta_norm)
    d, k, n, sigma = _sizes(n_features, k, steps, sigma, theta_norm)
    width = least if c is None else c
    _check(c=width)
    if width < least:
        raise InvalidInput(f"must be at least {least} for Theorem 1 to hold, got {quoted(width)}", "c")

    def bound() -> float:
        growth = log1p(n * k / d / sigma / sigma)
        return 2 * float(width) * k * sqrt(d * n * growth / log1p(1 / sigma / sigma)) + 1

    return _within_floats(bound)
