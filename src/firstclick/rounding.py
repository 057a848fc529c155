"""Numbers as people read them, the same in the terminal and on the page."""

import math

MISSING = "–"


def rounded(value: float, stderr: float = math.nan) -> tuple[str, str]:
    """The value and its error as text, both cut where the error's second digit stands.

    Without an error the value keeps three digits, or all its whole ones; the error is then empty.
    """
    if not math.isfinite(value):
        return MISSING, ""
    if not math.isfinite(stderr):
        return _cut(value, max(0, 2 - _exponent(value))), ""
    if stderr == 0:
        return _cut(value, max(0, 2 - _exponent(value))), "0"
    decimals = 1 - _exponent(stderr)
    decimals = 1 - _exponent(round(stderr, decimals))  # 9.96 rounds up to 10, one digit longer
    return _cut(value, decimals), _cut(stderr, decimals)


def with_error(value: float, stderr: float = math.nan) -> str:
    """'812 ± 31'; the value alone where there is no error."""
    text, error = rounded(value, stderr)
    return f"{text} ± {error}" if error else text


def whole(value: int) -> str:
    """'20,000'."""
    return _cut(value, 0)


def percent(share: float) -> str:
    """'94.2%', and never a zero that is not one."""
    if not math.isfinite(share):
        return MISSING
    if 0 < share < 0.0005:
        return "<0.1%"
    return _cut(100 * share, 0 if share == 1 else 1) + "%"


def microseconds(seconds: float) -> str:
    """Seconds as microseconds, two or three digits: '3.9', '12', '1,250'."""
    micros = seconds * 1e6
    return _cut(micros, 1 if abs(micros) < 9.95 else 0) if math.isfinite(micros) else MISSING


def compact(value: float) -> str:
    """A tick on an axis: '0.5', '250', '2.5k', '−10k', '1M'."""
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{suffix}".replace("-", "−")
    return f"{value:.6g}".replace("-", "−")


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _cut(value: float, decimals: int) -> str:
    number = round(value, decimals)
    return f"{number + 0.0:,.{max(decimals, 0)}f}".replace("-", "−")  # + 0.0 turns -0.0 into 0.0
