"""Who won, by how much, and whether that can be told from chance."""

import math

import numpy as np
from scipy.special import stdtrit

from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.style import base_name
from firstclick.rounding import whole, with_error

CHANCE = 0.05


def ranked(results: Results) -> list[PolicyResult]:
    """The policies from least to most expected regret after the last step."""
    return sorted(results.results, key=lambda result: (result.expected_regret[:, -1].mean(), result.policy))


def leaders(results: Results) -> list[PolicyResult]:
    """The policy with the least expected regret, and those that cannot be told from it.

    Policies meet the same users in a run, so runs are compared in pairs, by Student's t at 5%. To lead
    alone a policy must pass against every other one, so the chance of a false winner stays below 5%
    however many policies there are. A single run has one leader, and proves nothing.
    """
    best, *others = ranked(results)
    if results.runs < 2:
        return [best]
    bar = float(stdtrit(results.runs - 1, 1 - CHANCE / 2))
    lead = [best]
    for other in others:
        differences = other.expected_regret[:, -1] - best.expected_regret[:, -1]
        if differences.mean() <= bar * differences.std(ddof=1) / math.sqrt(results.runs):
            lead.append(other)
    return lead


def headline(results: Results) -> str:
    """One to three plain sentences: the winner, if there is one, and what it left behind."""
    order, lead = ranked(results), leaders(results)
    ahead = {result.policy for result in lead}
    behind = [result for result in order if result.policy not in ahead]
    start = f"After {whole(results.steps)} steps"
    if results.runs == 1:
        start = f"In this one run of {whole(results.steps)} steps"
    first = _winner(start, lead[0], others=len(behind)) if len(lead) == 1 else _tie(start, results, lead)

    last = next((result for result in behind if base_name(result.policy) == "random"), None)
    if last is None and behind:
        last = behind[-1]
    rest = []
    if len(lead) == 1 and behind and behind[0] is not last:
        rest.append(f"{behind[0].policy} follows with {_amount(behind[0])}")
    if last is not None:
        aside = ", which learns nothing," if base_name(last.policy) == "random" else ""
        rest.append(f"{last.policy}{aside} has {_account(last, short=True)}")
    sentences = [f"{first}; {', and '.join(rest)}" if rest else first]
    if any(base_name(result.policy) == "random" for result in lead) and results.runs > 1 and len(lead) > 1:
        sentences.append("The lead includes random: too few steps, or too much noise, to see any learning")
    if results.runs == 1 and len(order) > 1:
        sentences.append("One run cannot tell skill from luck: play several to be sure")
    return ". ".join(sentences) + "."


def _winner(start: str, best: PolicyResult, *, others: int) -> str:
    if not others:
        return f"{start} {best.policy} has {_account(best)}"
    ending = "and leads all others" if _final(best) < 0 else "fewer than any other learner"
    return f"{start} {best.policy} has {_account(best)}, {ending}"


def _tie(start: str, results: Results, lead: list[PolicyResult]) -> str:
    if len(lead) > 3:
        who = f"{len(lead)} learners share the lead, {lead[0].policy} first among equals"
        amounts = f"they have lost {_amount(lead[0])} to {_amount(lead[-1])} clicks"
    else:
        who = f"{_listed([result.policy for result in lead])} share the lead"
        amounts = f"they have lost {_listed([_amount(result) for result in lead])} clicks"
    return f"{start} {who}: {amounts} to the best fixed slate, too close to call over {results.runs} runs"


def _final(result: PolicyResult) -> float:
    return float(np.mean(result.expected_regret[:, -1]))


def _amount(result: PolicyResult) -> str:
    return with_error(_final(result), float(result.stderr("expected_regret")[-1]))


def _account(result: PolicyResult, short: bool = False) -> str:
    if _final(result) < 0:
        gain = with_error(-_final(result), float(result.stderr("expected_regret")[-1]))
        return f"won {gain} clicks more than the best fixed slate"
    return f"lost {_amount(result)}" + ("" if short else " clicks to the best fixed slate")


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
