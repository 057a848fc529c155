"""The answer of a trial: is an arm better than the one it is compared with? As numbers, and in words."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from scipy.special import stdtrit

from firstclick.errors import InvalidInput
from firstclick.rounding import MISSING, percent, whole
from firstclick.trials.checks import Check, check_feedback, check_shares
from firstclick.trials.sequence import (
    MIN_BUCKETS,
    Estimate,
    Interval,
    RatioInterval,
    decided_by_units,
    estimate,
    estimate_of_sums,
    level_of_each,
    reach,
)
from firstclick.trials.tally import PAGES, Stretch, Tally
from firstclick.validation.quoting import quoted

# A difference that needs more than so many times the pages so far is out of sight.
FAR = 1000.0

# Columns of the text.
WIDTH = 100
MARKS = {True: "ok", False: "ALARM", None: "not yet"}

Kind = Literal["better", "worse", "no difference", "not yet"]


@dataclass(frozen=True)
class ArmCounts:
    """An arm and all its pages. `corrected` are clicks that came after their page was counted."""

    name: str
    share: float
    pages: int
    clicks: int
    rate: float | None
    corrected: int
    pages_without_unit: int


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison. `more_pages` is about how many more pages will decide it, if the difference
    stays as it is; null if that cannot be said.
    """

    kind: Kind
    sentence: str
    more_pages: int | None = None


@dataclass(frozen=True)
class LastPages:
    """The last complete stretch of `size` pages. `complete` stretches are finished, `under_way` counts the
    pages since then. The intervals hold for all stretches of the trial at once.
    """

    size: int
    complete: int
    under_way: int
    rate: float | None
    rate_against: float | None
    difference: Interval | None
    ratio: RatioInterval | None


@dataclass(frozen=True)
class Difference:
    """Clicks per page of an arm (`rate`) and of the arm it is compared with (`rate_against`), over all pages
    so far. If shares changed, rates are means over the periods, weighted by pages. Null: not enough pages
    yet.
    """

    pages: int
    rate: float | None
    rate_against: float | None
    difference: Interval | None
    ratio: RatioInterval | None


@dataclass(frozen=True)
class Comparison:
    """One arm compared with another. `units` covers pages with a unit, `singles` pages without. `by_units`
    says which of the two the verdict is about: the one with more pages.
    """

    arm: str
    against: str
    verdict: Verdict
    by_units: bool
    units: Difference
    singles: Difference
    last: LastPages

    @property
    def decisive(self) -> Difference:
        """What the verdict is about."""
        return self.units if self.by_units else self.singles


@dataclass(frozen=True)
class Report:
    """The results of a trial."""

    confidence: float
    margin: float
    periods: int
    arms: list[ArmCounts]
    comparisons: list[Comparison]
    checks: list[Check]
    assumptions: list[str]

    def as_json(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and objects."""
        return asdict(self)

    def text(self) -> str:
        """For the terminal."""
        return "\n".join(_text(self)) + "\n"


def report(
    tally: Tally,
    names: Sequence[str],
    *,
    against: int = 0,
    confidence: float = 0.95,
    margin: float = 0.05,
    recommended: Sequence[int] | None = None,
    reported: Sequence[int] | None = None,
    learn_from_all: bool = False,
) -> Report:
    """The answer so far. `against` is the arm that the others are compared with. `margin` is the smallest
    difference that matters, as a part of that arm's rate. `recommended` (slates by arm) and `reported` (by
    default all pages) are for the check of feedback.

    >>> tally = Tally([0.5, 0.5])
    >>> for bucket in range(10_000):
    ...     tally.add(bucket // 5_000, bucket, clicked=bucket % 5 == 0 or bucket > 9_500)
    >>> found = report(tally, ["baseline", "policy"])
    >>> found.comparisons[0].verdict.sentence
    'Better: policy gets 25% to 57% more clicks per page than baseline.'
    """
    if len(names) != tally.n_arms:
        raise InvalidInput(f"must be one for each of {tally.n_arms} arms, got {len(names)}", "names")
    if not 0 <= against < tally.n_arms:
        raise InvalidInput(f"must be 0 to {tally.n_arms - 1}, got {quoted(against)}", "against")
    for name, value in (("confidence", confidence), ("margin", margin)):
        if not 0 < value < 1:
            raise InvalidInput(f"must be between 0 and 1, got {quoted(value)}", name)
    alpha = level_of_each(confidence, tally.n_arms)
    others = [arm for arm in range(tally.n_arms) if arm != against]
    checks = [check_shares(tally, names)]
    if recommended is not None:
        checks.append(check_feedback(tally, names, recommended, reported, against))
    return Report(
        confidence,
        margin,
        len(tally.periods),
        [_arm(tally, name, at) for at, name in enumerate(names)],
        [_compared(tally, names, arm, against, alpha, margin) for arm in others],
        checks,
        _assumptions(tally, learn_from_all, confidence),
    )


def _arm(tally: Tally, name: str, arm: int) -> ArmCounts:
    pages, clicks = tally.pages[arm], tally.clicks[arm]
    single = sum(one.single[PAGES][arm] for one in tally.periods)
    rate = clicks / pages if pages else None
    return ArmCounts(name, tally.shares[arm], pages, clicks, rate, tally.corrected[arm], single)


def _compared(
    tally: Tally, names: Sequence[str], arm: int, against: int, alpha: float, margin: float
) -> Comparison:
    units, singles = (estimate(tally, arm, against, units=one) for one in (True, False))
    by_units = decided_by_units(tally)
    decisive = units if by_units else singles
    return Comparison(
        names[arm],
        names[against],
        verdict(decisive, names[arm], names[against], alpha, margin),
        by_units,
        _difference(tally, arm, against, units, alpha, True),
        _difference(tally, arm, against, singles, alpha, False),
        last_pages(tally.units if by_units else tally.singles, arm, against, alpha),
    )


def _difference(
    tally: Tally, arm: int, against: int, found: Estimate | None, alpha: float, units: bool
) -> Difference:
    pages = sum(
        (one.sums if units else one.single)[PAGES][at] for one in tally.periods for at in (arm, against)
    )
    if found is None:
        return Difference(pages, None, None, None, None)
    if not found.enough:
        return Difference(pages, found.rate, found.rate_against, None, None)
    errors = reach(found, alpha)
    return Difference(pages, found.rate, found.rate_against, found.difference(errors), found.ratio(errors))


def last_pages(stretch: Stretch, arm: int, against: int, alpha: float) -> LastPages:
    """The last complete stretch. Stretch number j gets the level alpha / (j (j + 1)), in all alpha, so that
    the intervals of all stretches hold at once. Student's t with half as many degrees of freedom as effective
    buckets: numbers of clicks are heavy-tailed, and with all of them 6 % of A/A trials went wrong."""
    under_way = sum(stretch.sums[PAGES])
    found = estimate_of_sums(stretch.last, arm, against) if stretch.done else None
    if found is None:
        return LastPages(stretch.size, stretch.done, under_way, None, None, None, None)
    difference, ratio = None, None
    if found.enough:
        level = alpha / (stretch.done * (stretch.done + 1))
        errors = float(-stdtrit(found.buckets / 2, level / 2))
        difference, ratio = found.difference(errors), found.ratio(errors)
    return LastPages(stretch.size, stretch.done, under_way, found.rate, found.rate_against, difference, ratio)


def kind_of(found: Estimate, alpha: float, margin: float) -> Kind:
    """What an interval says: all of it on one side, all of it within the margin, or neither."""
    errors = reach(found, alpha)
    difference, ratio = found.difference(errors), found.ratio(errors)
    if difference.low > 0:
        return "better"
    if difference.high < 0:
        return "worse"
    within = ratio.high is not None and max(1 - ratio.low, ratio.high - 1) <= margin
    return "no difference" if within else "not yet"


def verdict(found: Estimate | None, arm: str, against: str, alpha: float, margin: float) -> Verdict:
    """In words."""
    if found is None or not found.enough:
        return Verdict("not yet", *_too_early(found, arm, against))
    kind = kind_of(found, alpha, margin)
    ratio = found.ratio(reach(found, alpha))
    low, high = ratio.low, ratio.high
    if kind == "better":
        span = f"at least {_by(low - 1)}" if high is None else f"{_by(low - 1)} to {_by(high - 1)}"
        return Verdict(kind, f"Better: {arm} gets {span} more clicks per page than {against}.")
    if kind == "worse" and high is not None:
        span = f"{_by(1 - high)} to {_by(1 - low)}"
        return Verdict(kind, f"Worse: {arm} gets {span} fewer clicks per page than {against}.")
    upwards = "upwards" if high is None else f"to {_by(high - 1)} more"
    inside = f"anything from {_by(1 - low)} fewer clicks per page than {against} {upwards} is possible"
    if kind == "no difference" and high is not None:
        most = _by(max(1 - low, high - 1))
        return Verdict(kind, f"No difference larger than {most}: for {arm}, {inside}.")
    start = f"Not yet: for {arm}, {inside}."
    factor = more_needed(found, alpha, margin)
    if factor is None:
        return Verdict(kind, f"{start} The present difference is too small to say how many pages it takes.")
    more = _round_up(found.pages * (factor - 1))
    return Verdict(
        kind, f"{start} If the difference stays as it is, about {whole(more)} more pages decide it.", more
    )


def _too_early(found: Estimate | None, arm: str, against: str) -> tuple[str, int | None]:
    if found is None or found.buckets < 1:
        return f"Not yet: {arm} and {against} have too few pages or clicks for an interval.", None
    more = _round_up(found.pages * (MIN_BUCKETS / found.buckets - 1))
    return (
        f"Not yet: {arm} and {against} have too few pages or clicks for an interval, or a few users have "
        f"most of them. It takes about {whole(more)} more pages for a first one.",
        more,
    )


def more_needed(found: Estimate, alpha: float, margin: float) -> float | None:
    """How many times the pages so far decide it, if rates stay as they are and variances fall with the pages.
    None: out of sight."""

    def decides(factor: float) -> bool:
        later = replace(
            found,
            variance=found.variance / factor,
            variance_against=found.variance_against / factor,
            covariance=found.covariance / factor,
            harmonic_pages=found.harmonic_pages * factor,
        )
        return kind_of(later, alpha, margin) != "not yet"

    if not decides(FAR):
        return None
    low, high = 1.0, FAR
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high


def _round_up(number: float) -> int:
    """Two digits, upwards: it is a rough figure."""
    if number < 10:
        return 10
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return round(math.ceil(number / unit) * unit)


def _by(share: float) -> str:
    """'4.2%' below ten percent, '26%' above."""
    share = max(share, 0.0)
    return f"{100 * share:.1f}%" if share < 0.0995 else f"{100 * share:,.0f}%"


def _assumptions(tally: Tally, learn_from_all: bool, confidence: float) -> list[str]:
    told = [
        "A click is a page with at least one click. Only reported pages count.",
        "The difference is the average over the pages so far, learning included. It is no forecast.",
        "Users do not influence one another, and each keeps one unit. Users of a bucket count together.",
        f"Intervals hold with {100 * confidence:g}% confidence whenever you look. They are computed over "
        "buckets, by the central limit theorem.",
    ]
    if any(sum(one.single[PAGES]) for one in tally.periods):
        told.append("Pages without a unit are taken as independent: a user who returns counts as another.")
    if len(tally.periods) > 1:
        told.append("Shares changed: each period has its own rates, and periods are weighted by their pages.")
    if tally.n_arms > 2:
        told.append(
            f"All {tally.n_arms - 1} comparisons hold together with that confidence: each of them has "
            f"{100 * (1 - level_of_each(confidence, tally.n_arms)):.4g}%."
        )
    if learn_from_all:
        told.append(
            "Arms learn from the slates of all arms: this compares policies on shared data, not what each "
            "would earn alone."
        )
    return told


def _text(found: Report) -> list[str]:
    several = any(one.pages_without_unit for one in found.arms)
    head = ["arm", "share", "pages", "clicks", "rate", *(["pages without unit"] if several else [])]
    rows = [
        [
            one.name,
            percent(one.share),
            whole(one.pages),
            whole(one.clicks),
            _rate(one.rate),
            *([whole(one.pages_without_unit)] if several else []),
        ]
        for one in found.arms
    ]
    lines = _table([head, *rows])
    for one in found.comparisons:
        lines += ["", *textwrap.wrap(one.verdict.sentence, WIDTH), ""]
        lines += _compared_text(one, found.confidence)
    notes = [f"{MARKS[one.fine]}: {one.sentence}" for one in found.checks]
    if corrected := [f"{one.name} {whole(one.corrected)}" for one in found.arms if one.corrected]:
        notes.append(f"Clicks that came too late and are not in the rates: {', '.join(corrected)}.")
    return [*lines, "", "Checks", *_list(notes), "", "Assumed", *_list(found.assumptions)]


def _list(sentences: list[str]) -> list[str]:
    return [
        line
        for one in sentences
        for line in textwrap.wrap(one, WIDTH, initial_indent="- ", subsequent_indent="  ")
    ]


def _compared_text(one: Comparison, confidence: float) -> list[str]:
    every = one.decisive
    rows = [[f"{100 * confidence:g}% intervals", one.arm, one.against, "difference in points", "ratio"]]
    rows.append([f"{whole(every.pages)} pages", *_cells(every)])
    if one.by_units and one.singles.pages:
        rows.append([f"{whole(one.singles.pages)} without unit", *_cells(one.singles)])
    if not one.by_units and one.units.pages:
        rows.append([f"{whole(one.units.pages)} with unit", *_cells(one.units)])
    if one.last.complete:
        rows.append([f"last full {whole(one.last.size)}", *_cells(one.last)])
    return _table(rows)


def _cells(one: Difference | LastPages) -> list[str]:
    difference, ratio = one.difference, one.ratio
    return [_rate(one.rate), _rate(one.rate_against), _points(one, difference), _times(ratio)]


def _rate(rate: float | None) -> str:
    return MISSING if rate is None else f"{100 * rate:.2f}%"


def _points(one: Difference | LastPages, interval: Interval | None) -> str:
    if one.rate is None or one.rate_against is None:
        return MISSING
    if interval is None:
        return f"{100 * (one.rate - one.rate_against):+.2f} (not yet)".replace("-", "−")
    value, low, high = (100 * part for part in (one.rate - one.rate_against, interval.low, interval.high))
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def _times(interval: RatioInterval | None) -> str:
    if interval is None or interval.value is None:
        return MISSING
    high = "no limit" if interval.high is None else f"{interval.high:.2f}"
    return f"{interval.value:.2f} ({interval.low:.2f} to {high})"


def _table(rows: list[list[str]]) -> list[str]:
    """First column to the left, all others to the right."""
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(wide[at]) if at == 0 else cell.rjust(wide[at]) for at, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]
