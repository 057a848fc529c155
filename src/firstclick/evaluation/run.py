"""`evaluate`: what other policies would have earned, from a log."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from scipy.special import ndtri

from firstclick.errors import InvalidInput
from firstclick.evaluation.click_fits import CrossFit, cross_fit
from firstclick.evaluation.estimators.choice import POSITION_BASED
from firstclick.evaluation.estimators.evaluate import Estimate as OneEstimate
from firstclick.evaluation.estimators.evaluate import Evaluation as Judgement
from firstclick.evaluation.estimators.evaluate import evaluate as judge
from firstclick.evaluation.estimators.logging_plan import logging_that_answers
from firstclick.evaluation.estimators.support import FEW
from firstclick.evaluation.judged_slates import JudgedSlates, LogFacts, log_facts
from firstclick.evaluation.later_slates import LaterSlates
from firstclick.evaluation.played import LEVEL, REFITS, play_on_log
from firstclick.evaluation.result import (
    CANNOT_SAY,
    CAUTION,
    Estimate,
    EstimatorRow,
    Evaluation,
    Played,
    PlayedAnswer,
    PolicyAnswer,
)
from firstclick.evaluation.spread import LogWithFold
from firstclick.evaluation.targets import Target
from firstclick.files.progress import Progress, silent
from firstclick.logs.describe import describe_log
from firstclick.logs.description_text import facts as log_in_short
from firstclick.logs.ranked_log import RankedLog
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.validation.whole_number import seed_number

# Slates with an impossible probability that are left out; more of them, and no probability is believed.
MOST_IMPOSSIBLE = 0.01
LOGGERS = ("fixed", "learning")
# Below, no click model is fitted.
LEAST_FITTED = 30

Doing = Callable[[str], Progress]


def evaluate(
    log: RankedLog,
    targets: Mapping[str, Target],
    *,
    learning: Sequence[Policy | str] = (),
    refits: int = REFITS,
    steps: int | None = None,
    logger: str | None = None,
    level: float = 0.95,
    explore: float = 0.1,
    seed: int = 0,
    doing: Doing = lambda what: silent,
) -> Evaluation:
    """Estimate from a log what other policies would have earned, in clicks per page.

    >>> from pathlib import Path
    >>> from firstclick.evaluation.targets import FixedList
    >>> from firstclick.logs.open_log import open_ranked_log
    >>> lines = ["items,click,propensities", *["tea|milk,0,0.5|0.5", "milk|tea,,0.5|0.5"] * 100]
    >>> _ = Path("clicks.csv").write_text("\\n".join(lines))
    >>> found = evaluate(open_ranked_log("clicks.csv"), {"tea first": FixedList(["tea", "milk"])})
    >>> found.answer("tea first").verdict, round(found.answer("tea first").difference.value, 2)
    ('ok', 0.5)

    A log cannot tell what a policy would have shown that keeps learning. Such policies are played in worlds
    fitted to the log instead. Their answers are model-based and kept apart, in `played`.

    Args:
        log: The log, from `firstclick.logs.open_log.open_ranked_log`.
        targets: The policies to judge, by name. They do not learn.
        learning: Policies that start from nothing and keep learning: policies, or their descriptions.
        refits: Bootstrap refits of the click model, for `learning`; 20 by default.
        steps: Pages that each `learning` policy plays; by default as many as the log has.
        logger: Whether the policy that wrote the log was `"fixed"` or `"learning"`. By default it counts as
            fixed if repeated first items always had the same probability.
        level: The confidence level of the intervals.
        explore: The largest share of uniform slates that the advice for a better log may ask for.
        seed: The seed of everything random.
        doing: Called with the name of each piece of work; returns its `progress(done, total)`.

    Returns:
        An answer for each policy: an estimate with its interval, or "cannot say" and why; in `played`, what
        the policies in `learning` get in fitted worlds.

    Raises:
        InvalidInput: An argument is out of range.
    """
    if not 0 < level < 1:
        raise InvalidInput(f"must lie between 0 and 1, such as 0.95, got {level}", "level")
    if not 0 < explore <= 1:
        raise InvalidInput(f"must be above 0 and at most 1, got {explore}", "explore")
    if logger not in (None, *LOGGERS):
        raise InvalidInput(f"must be one of {', '.join(LOGGERS)}, got {logger!r}", "logger")
    seed = seed_number(seed)
    facts = log_facts(log, doing("reading the log"))
    described = describe_log(log, doing("describing the log"))
    # Of a logger that cannot be checked, intervals must hold if it learned.
    unchanged = facts.logger.repeated and not facts.logger.changed
    logger_learned = not unchanged if logger is None else logger == "learning"
    refusals = _refusals(log, facts)
    fits: CrossFit | None = None
    if targets and not refusals and facts.slates >= LEAST_FITTED:
        fits = cross_fit(log, doing("fitting click models"))
    answers = []
    of_places: dict[str, str] = {}
    for label, target in targets.items():
        judged, of_judged = log, facts
        if target.judged_from is not None:
            judged = LaterSlates(log, target.judged_from)
            of_judged = log_facts(judged, doing(f"reading what {label} is judged on"))
        target.start(judged)
        own, needed = refusals, _needed(log, facts, explore) if refusals else ""
        if not refusals and target.judged_from is not None and not of_judged.slates:
            own = [f"no slate that can be judged was drawn after event {target.judged_from:,}"]
            needed = "freeze the policy at an earlier event, or judge it when later slates are there"
        elif not refusals and (of_target := target.refusal()):
            own = [of_target]
        judgement = None
        if of_judged.slates and not own:
            spread = log.spread_of(target) if logger_learned and isinstance(log, LogWithFold) else None
            judging = partial(doing, f"judging {label}")
            slates = JudgedSlates(
                judged, target, fits, of_judged.slates, spread, judging, of_judged.by_places
            )
            gaps = slates.find_places() if of_judged.places else None
            own = _refused_by_places(fits, gaps) if of_judged.by_places else []
            if of_judged.places and not own:
                of_places[label] = _without_places(of_judged, gaps)
        if of_judged.slates and not own:
            judgement = judge(
                slates, learning=logger_learned, click_model=None if fits is None else fits.best,
                confidence=level, missing=of_judged.without_propensity + of_judged.impossible,
                unreported=of_judged.unreported, seen=slates.seen(),
                candidates=_candidates(log, of_judged), explore=explore, seed=seed,
            )  # fmt: skip
        answer = _answer(label, target, judgement, own, needed, of_judged)
        if told := of_places.get(label):
            answer = replace(answer, notes=(*answer.notes, told))
        if of_judged.by_places and answer.verdict != CANNOT_SAY and (doubt := _doubt_of_places(fits)):
            answer = replace(answer, verdict=CAUTION, reasons=(*answer.reasons, doubt))
        answers.append(answer)
    return Evaluation(
        log=log.name,
        slates=facts.slates,
        left_out=_left_out(log, facts),
        items=len(log.items),
        k=log.k,
        shown=_shown(facts, level),
        answers=tuple(answers),
        played=_played(log, learning, refits, steps, seed, doing) if learning else None,
        click_model="" if fits is None else fits.sentence,
        level=level,
        seed=seed,
        notes=tuple(_notes(log, facts, logger)),
        description=tuple((name.strip(), value) for name, value in log_in_short(described)),
    )


def _played(
    log: RankedLog, policies: Sequence[Policy | str], refits: int, steps: int | None, seed: int, doing: Doing
) -> Played:
    chosen = [make_policy(policy) for policy in policies]
    try:
        found = play_on_log(
            log, chosen, refits=refits, steps=steps, seed=seed, progress=doing("playing in fitted worlds")
        )
    except InvalidInput as error:
        if error.argument != "model":
            raise
        # The log does not say which click model fits, so that there is no world to play in.
        nothing = tuple(PlayedAnswer(policy.label, None, None) for policy in chosen)
        return Played(nothing, None, (error.problem.partition(" Name a ")[0],))
    about = (
        f"Clicks per page over the first {found.pages:,} pages, from knowing nothing, in worlds of the click "
        f"model {found.model} fitted to {found.slates:,} slates."
    )
    answers = tuple(
        PlayedAnswer(one.policy, Estimate(*one.value), Estimate(*one.difference)) for one in found.policies
    )
    return Played(answers, Estimate(*found.shown), (about, *found.notes), LEVEL)


def _shown(facts: LogFacts, level: float) -> Estimate | None:
    """The clicks per page of the slates that are judged."""
    if not facts.slates:
        return None
    mean = facts.clicks / facts.slates
    variance = max(facts.squares / facts.slates - mean**2, 0.0) / max(facts.slates - 1, 1)
    reach = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
    return Estimate(mean, mean - reach, mean + reach)


def _candidates(log: RankedLog, facts: LogFacts) -> int:
    """How many items a slate is chosen from, on average."""
    return round(facts.candidates / facts.slates) if facts.slates else len(log.items)


def _refusals(log: RankedLog, facts: LogFacts) -> list[str]:
    """Why no policy can be judged from this log, whatever it is."""
    said = []
    known = facts.reported
    if not known:
        return [f"no slate of {log.name} has a reported outcome"]
    if facts.without_propensity == known:
        return [
            f"{log.name} has no propensities, and nobody can tell what else might have been shown. Log the "
            "probability of each slate's first 1, 2, ... items; of a log of firstclick `firstclick evaluate "
            "propensities` computes them"
        ]
    if facts.impossible > MOST_IMPOSSIBLE * known:
        said.append(
            f"{facts.impossible:,} of {known:,} slates have probabilities that are none: they must be above "
            "0, at most 1, and must not rise from the first item to the last "
            f"({facts.first_impossible})"
        )
    if len(log.items) == 1:
        said.append("the log has one item, so that every policy shows the same")
    if facts.slates and not facts.clicks:
        said.append("no slate of the log was clicked, so that no policy can be told from another")
    elif facts.slates > 1 and facts.squares * facts.slates == facts.clicks**2:
        each = facts.clicks // facts.slates
        said.append(
            f"every slate of the log has {each} click{'s' * (each > 1)}, so that no policy can be told from "
            "another; are pages without a click missing?"
        )
    return said


def _refused_by_places(fits: CrossFit | None, gaps: int | None) -> list[str]:
    """Why a policy cannot be judged from probabilities of places alone."""
    if gaps is None:
        return [
            "the log has the probabilities of items at positions alone, and those of the policy are not "
            "known; log the probability of each slate's first 1, 2, ... items"
        ]
    if fits is not None and fits.best is not None and not set(fits.close) & set(POSITION_BASED):
        return [
            "the log has the probabilities of items at positions alone, which answer only if what stands "
            f"above a click does not matter, and {fits.best} fits the log, where it does; log the "
            "probability of each slate's first 1, 2, ... items"
        ]
    return []


def _doubt_of_places(fits: CrossFit | None) -> str:
    """Why an answer from probabilities of places alone must be read with care; empty if PBM fits the log."""
    right_if = "the answer is right only if what stands above a click does not matter"
    if fits is None or fits.best is None:
        return f"{right_if}, which nobody has checked"
    if fits.best in POSITION_BASED:
        return ""
    return f"{right_if}, and {fits.best}, where it does, fits the log nearly as well as pbm or better"


def _without_places(facts: LogFacts, gaps: int | None) -> str:
    """What is left out because probabilities of places are not known; empty if nothing is."""
    if gaps is None:
        return "IIPS is left out: how likely the policy shows each item at each position is not known"
    if not gaps:
        return ""
    why = f"{gaps:,} slates have an item where the policy may show it, and its probability there is not known"
    return f"left out: {why}" if facts.by_places else f"IIPS is left out: {why}"


def _needed(log: RankedLog, facts: LogFacts, explore: float) -> str:
    """The logging that would answer, where the log is refused as a whole."""
    if not facts.reported:
        return "report the outcome of every page, no click included"
    if len(log.items) == 1:
        return "log pages that are chosen from two items or more"
    rates = (facts.by_position / facts.reported).tolist()
    return _clause(logging_that_answers(rates, _candidates(log, facts), explore, FEW))


def _answer(
    label: str, target: Target, judgement: Judgement | None, refusals: list[str], needed: str, facts: LogFacts
) -> PolicyAnswer:
    if judgement is None:
        return PolicyAnswer(label, CANNOT_SAY, tuple(refusals), needed)
    support, numbers = judgement.support, _support_numbers(judgement)
    notes = (*_judged_on(target, facts), *target.notes())
    if support.verdict == CANNOT_SAY:
        why = tuple(map(_clause, support.reasons))
        return PolicyAnswer(label, CANNOT_SAY, why, _clause(support.advice), support=numbers, notes=notes)
    best = judgement.answer
    assert best is not None
    if best.low > best.high or best.difference_low > best.difference_high:
        # Bounds of a logger that learned come from two sides; with true probabilities they do not cross.
        crossed = (
            "the bounds contradict one another: the propensities are not those of the policy that logged"
        )
        return PolicyAnswer(label, CANNOT_SAY, (crossed,), support=numbers, notes=notes)
    verdict, reasons = support.verdict, [_clause(reason) for reason in support.reasons]
    cautions = [target.has_learned] if target.has_learned else []
    if facts.clicked_slates == facts.slates:
        cautions.append(
            "every page of the log has a click: if those without are missing, all numbers are too high"
        )
    if cautions:
        reasons = [*(reasons if verdict == CAUTION else ()), *cautions]
        verdict = CAUTION
    return PolicyAnswer(
        policy=label,
        verdict=verdict,
        reasons=tuple(reasons),
        difference=Estimate(best.difference, best.difference_low, best.difference_high),
        value=Estimate(best.value, best.low, best.high),
        estimator=best.title,
        why=". ".join(map(_clause, judgement.reasons)),
        estimators=tuple(_row(one, one.name == judgement.chosen) for one in judgement.estimates),
        support=numbers,
        notes=notes,
    )


def _judged_on(target: Target, facts: LogFacts) -> list[str]:
    if target.judged_from is None:
        return []
    return [
        f"judged on the {facts.slates:,} slates that were drawn after event {target.judged_from:,}: from "
        f"those it has not learned. They had {facts.clicks / facts.slates:.4g} clicks per page, and the "
        "difference is that from those"
    ]


def _row(one: OneEstimate, chosen: bool) -> EstimatorRow:
    note = "" if one.valid else "its interval is not valid for a logger that learned"
    return EstimatorRow(
        one.name,
        one.title,
        Estimate(one.value, one.low, one.high),
        Estimate(one.difference, one.difference_low, one.difference_high),
        chosen,
        note,
    )


def _support_numbers(judgement: Judgement) -> dict[str, Any]:
    support = judgement.support
    return {
        "slates": support.slates,
        "without_propensity": support.missing,
        "unreported": support.unreported,
        "items_doubted": support.items_doubted,
        "positions": [asdict(one) for one in support.positions],
    }


def _left_out(log: RankedLog, facts: LogFacts) -> dict[str, int]:
    left = {
        "without a reported outcome": facts.unreported,
        "without propensities": facts.without_propensity,
        "with impossible propensities": facts.impossible,
        "that could not be read": sum(one.rows for one in log.skipped),
    }
    return {reason: n for reason, n in left.items() if n}


def _notes(log: RankedLog, facts: LogFacts, logger: str | None) -> list[str]:
    said = list(log.notes)
    said += [f"{one}" for one in (*log.skipped, *log.doubtful)]
    if facts.slates and logger is None:
        said.append(_taken_for(facts))
    if facts.by_places:
        said.append(
            "the log has the probabilities of items at positions alone: IIPS can use them; RIPS, Cascade-DR "
            "and slate IPS need those of prefixes and are left out"
        )
    if facts.whole_slates_only:
        said.append(
            f"{facts.whole_slates_only:,} slates have the probability of the whole slate alone: they are "
            "weighed as a whole, which widens intervals"
        )
    return said


def _taken_for(facts: LogFacts) -> str:
    if facts.logger.changed:
        return (
            "the logger is taken for one that learned, because the same first items had different "
            "probabilities; if it did not, say so (`--logger fixed`) for narrower intervals"
        )
    if facts.logger.repeated:
        return "the logger is taken for fixed, because the same first items always had the same probability"
    return (
        "whether the logger learned is not known, because no first items came twice; it is taken for one "
        "that did; if it did not, say so (`--logger fixed`) for narrower intervals"
    )


def _clause(sentence: str) -> str:
    """A sentence of the estimators as part of a longer one."""
    return sentence.strip().removesuffix(".")
