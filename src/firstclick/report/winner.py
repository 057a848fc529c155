"""Who won, by how much, and whether that can be told from chance."""

import math

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


def final_with_error(result: PolicyResult, measure: str = "expected_regret") -> str:
    """'812 ± 31': a measure after the last step."""
    return with_error(float(result.mean(measure)[-1]), float(result.stderr(measure)[-1]))


def headline(results: Results, *, default: str = "") -> str:
    """Say in a few sentences which policy won and how far behind the others are.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> headline(results)
    'After 100 steps random has lost 19.477 ± 0.045 clicks to the best fixed slate.'

    Args:
        results: From `simulate`.
        default: The name of the default policy, which the text mentions.
    """
    order, lead = ranked(results), leaders(results)
    ahead = {result.policy for result in lead}
    behind = [result for result in order if result.policy not in ahead]
    last = next((result for result in behind if _is_random(result)), behind[-1] if behind else None)
    start = "In this one run of" if results.runs == 1 else "After"
    text = f"{start} {whole(results.steps)} steps "
    if len(lead) > 1:
        text += _tie(lead, results.runs)
    else:
        text += f"{lead[0].policy} has {_account(lead[0])}"
        if behind:
            text += ", and leads all others" if _won(lead[0]) else ", fewer than any other policy"
    rest = []
    if len(lead) == 1 and behind and behind[0] is not last:
        rest.append(f"{behind[0].policy} follows with {final_with_error(behind[0])}")
    if last is not None:
        aside = ", which learns nothing," if _is_random(last) else ""
        rest.append(f"{last.policy}{aside} has {_account(last, short=True)}")
    sentences = ["; ".join([text, ", and ".join(rest)] if rest else [text])]
    if len(lead) > 1 and any(_is_random(result) for result in lead):
        sentences.append("The lead includes random: too few steps, or too much noise, to see any learning")
    if results.runs == 1 and len(order) > 1:
        sentences.append("One run cannot tell skill from luck: play several to be sure")
    sentences += [
        f"{result.policy} is the default: it has {_account(result, short=True)}"
        for result in order
        if result.policy == default
    ]
    return ". ".join(sentences) + "."


def _tie(lead: list[PolicyResult], runs: int) -> str:
    if len(lead) > 3:
        who = f"{len(lead)} policies share the lead, {lead[0].policy} first among equals"
        amounts = f"{final_with_error(lead[0])} to {final_with_error(lead[-1])}"
    else:
        who = f"{_listed([result.policy for result in lead])} share the lead"
        amounts = _listed([final_with_error(result) for result in lead])
    return (
        f"{who}: they have lost {amounts} clicks to the best fixed slate, too close to call over {runs} runs"
    )


def _is_random(result: PolicyResult) -> bool:
    return base_name(result.policy) == "random"


def _won(result: PolicyResult) -> bool:
    return bool(result.expected_regret[:, -1].mean() < 0)


def _account(result: PolicyResult, short: bool = False) -> str:
    if _won(result):
        return f"won {final_with_error(result).removeprefix('−')} clicks more than the best fixed slate"
    return f"lost {final_with_error(result)}" + ("" if short else " clicks to the best fixed slate")


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
