"""Estimates as people read them: cut where the interval's second digit stands."""

import math

from firstclick.evaluation.result import Estimate

MOST_DECIMALS = 6
MINUS = "−"


def decimals_of(estimate: Estimate) -> int:
    """How many decimals the estimate and its interval are told with."""
    half = (estimate.high - estimate.low) / 2
    if not math.isfinite(half) or half <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(half)), 1), MOST_DECIMALS)


def told(number: float, decimals: int, *, signed: bool = False) -> str:
    """'0.512', '+0.012', '−0.003'."""
    cut = round(number, decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
    sign = "+" if signed and cut > 0 else ""
    return sign + f"{cut:,.{decimals}f}".replace("-", MINUS)


def value_and_interval(estimate: Estimate, *, signed: bool = False) -> tuple[str, str]:
    """'+0.012' and '+0.003 to +0.021'."""
    decimals = decimals_of(estimate)
    low, high = (told(end, decimals, signed=signed) for end in (estimate.low, estimate.high))
    return told(estimate.value, decimals, signed=signed), f"{low} to {high}"


def level_in_words(level: float) -> str:
    """'95 %'."""
    return f"{100 * level:g} %"
