"""What can be evaluated from a log, what cannot, and why: a few sentences."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstclick.logs.describe import LogDescription

# Below this many slates with a known outcome every interval is wide.
FEW = 1000
# A most frequent slate with this share leaves little else to learn from.
NEARLY_ALWAYS = 0.99


def what_can_be_said(log: "LogDescription") -> tuple[tuple[str, str], ...]:
    """Each as ("can" or "cannot", a sentence)."""
    said: list[tuple[str, str]] = []
    hopeless = _hopeless(log)
    if hopeless:
        return (("cannot", hopeless),)
    per_page = log.clicks / log.reported
    said.append(("can", f"What was shown earned {per_page:.4g} clicks per page: this needs no model."))
    said += _other_lists(log)
    said += _click_models(log)
    if log.clicked_slates == log.reported:
        said.append(
            (
                "cannot",
                "Every slate with a known outcome was clicked. If pages without a click were left out of the "
                "log, its click rates are not those of the page.",
            )
        )
    if log.reported < FEW:
        said.append(("cannot", f"{log.reported:,} slates are few: expect wide intervals, or none."))
    return tuple(said)


def _hopeless(log: "LogDescription") -> str:
    if not log.slates:
        return "No slate can be used: nothing can be evaluated. The odd rows above say why."
    if not log.reported:
        return "No slate has a reported outcome: nothing can be evaluated. Log the clicks of each slate."
    if not log.clicks:
        return (
            "No slate was clicked: nothing can be evaluated, every list earned 0. Check the column of "
            "clicks, or log more slates."
        )
    if log.items_shown == 1:
        return "One item was shown always: there is no other list to evaluate."
    return ""


def _other_lists(log: "LogDescription") -> list[tuple[str, str]]:
    explore = (
        "log 5 % of slates with explore=0.05, or, with many items, show the policy to be judged on "
        "5 % of slates and log their propensities"
    )
    if log.distinct_slates == 1:
        return [("cannot", f"One list was shown always: nothing can be said of other lists; {explore}.")]
    if log.always_one:
        return [
            (
                "cannot",
                "Every propensity is 1: the logger was deterministic, and nothing can be said of lists "
                f"that it did not show; {explore}.",
            )
        ]
    if log.prefixes_known:
        share = _share(log.prefixes_known, log.slates)
        said = "Other policies, by RIPS and Cascade-DR: the probability of every prefix is known"
        return [("can", f"{said} for {share} slates."), *_mostly_one(log)]
    if log.has_fold:
        return [
            (
                "can",
                "Other policies, once the propensities are computed from the log: "
                f"`firstclick evaluate propensities {log.log} --store STORE --out slates.parquet`.",
            )
        ]
    if log.places_known:
        return [
            (
                "can",
                "Other policies, by IIPS, if PBM fits the log: the probability of each item at its position "
                "is known.",
            ),
            ("cannot", "RIPS and Cascade-DR need the probabilities of prefixes; log `propensities`."),
        ]
    if log.slate_known:
        share = _share(log.slate_known, log.slates)
        return [
            (
                "can",
                f"Other policies, by slate IPS: the probability of {share} slates as a whole is known.",
            ),
            ("cannot", "RIPS and Cascade-DR need the probabilities of prefixes; log `propensities`."),
        ]
    return [
        (
            "cannot",
            "Without propensities other policies cannot be estimated from the log, only by a click model: "
            f"`firstclick click-model fit`. To do better, {explore}.",
        )
    ]


def _mostly_one(log: "LogDescription") -> list[tuple[str, str]]:
    share = log.most_frequent / log.slates
    if share < NEARLY_ALWAYS:
        return []
    return [
        (
            "cannot",
            f"{share:.1%} of slates are the same list: the rest says little of others. A larger share of "
            "explored slates would.",
        )
    ]


def _click_models(log: "LogDescription") -> list[tuple[str, str]]:
    if log.k == 1:
        return [("cannot", "Slates have one place: click models of ranked lists have nothing to tell apart.")]
    said = "Which click model fits: `firstclick click-model fit` compares them on held-out slates."
    if log.several_clicks:
        share = log.several_clicks / log.clicked_slates
        return [("can", f"{said} {share:.1%} of clicked slates have more than one click.")]
    return [
        ("can", said),
        (
            "cannot",
            "No slate has more than one click: whether users go on after a click cannot be told. If only the "
            "first click is logged, log all of them.",
        ),
    ]


def _share(n: int, of: int) -> str:
    return "all" if n == of else f"{n:,} of {of:,}"
