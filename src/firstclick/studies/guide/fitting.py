"""How learners are fitted to the stock worlds: told what their papers assume known, and nothing else.

All parameters keep their defaults but these, and none that was given another value is changed:

- the number of steps, where a paper's constants are made for one: `horizon`, and delta = 1 / n;
- the chance that a position is examined, where a learner has to know it: `examination`;
- how many of the features are topics: `topics`;
- the number of segments: `segments`, and then the world tells the segment of a user by its number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from firstclick.click_models import PositionBased, Scroll
from firstclick.errors import InvalidInput
from firstclick.experiments.loop import known_of
from firstclick.policies.base import Policy
from firstclick.studies.guide.stock import StockWorld
from firstclick.worlds.base import Stage, World

MADE_FOR_STEPS = ("batch-rank", "bubble-rank", "cascade-ducb", "cascade-swucb", "recur-rank", "top-rank")


@dataclass(frozen=True)
class Contender:
    """A learner in a stock world: as it plays there, and where exactly; or why it cannot."""

    world: StockWorld
    given: Policy  # as it was asked for
    policy: Policy  # as it plays
    spec: str  # the world, with its users described as this learner reads it
    n_items: int
    n_features: int | None
    reason: str = ""  # why it does not play


def contenders(policies: list[Policy], world: StockWorld, steps: int, seed: int) -> Iterator[Contender]:
    """Every policy, fitted to the world."""
    stages: dict[str, Stage] = {}
    for given in policies:
        spec = world.spec
        if given.name == "segment-lin-ts" and world.segments:
            spec += ",told=number"
        if spec not in stages:
            stages[spec] = world.stage(seed, 0, spec)
        stage = stages[spec]
        policy = _told(given, _known(given, world, stage.world, steps))
        n_features = None if stage.features is None else stage.features.shape[1]
        reason = _reason(policy, world, stage)
        yield Contender(world, given, policy, spec, stage.world.n_items, n_features, reason)


def _known(policy: Policy, world: StockWorld, built: World, steps: int) -> dict[str, Any]:
    """What the learner is told, by parameter."""
    if policy.name in MADE_FOR_STEPS:
        return {"horizon": steps}
    if policy.name == "cascade-glr-ucb":
        return {"delta": 1 / steps}
    if policy.name in ("pbm-pie", "pbm-ucb"):
        if isinstance(built.click_model, PositionBased):
            return {"examination": built.click_model.chances}
        # What the page tells to be examined was, for sure.
        return {"examination": (1.0,)} if isinstance(built.click_model, Scroll) else {}
    if policy.name == "cascade-hybrid":
        return {"topics": world.topics}
    if policy.name == "segment-lin-ts" and world.segments:
        return {"segments": world.segments}
    return {}


def _told(policy: Policy, known: dict[str, Any]) -> Policy:
    """The policy with what is known, but for parameters that were given."""
    defaults = policy.defaults()
    return replace(policy, **{n: v for n, v in known.items() if getattr(policy, n) == defaults[n]})


def _reason(policy: Policy, world: StockWorld, stage: Stage) -> str:
    """Why the policy cannot be played on this stage; empty if it can."""
    if policy.needs_features and stage.features is None:
        return f"{policy.name} needs features, and this world has none"
    if not policy.unordered and world.best_first:
        return f"{policy.name} starts from the order of the catalog, which here is the best one already"
    n_features = 0 if stage.features is None else stage.features.shape[1]
    made = policy.with_context(stage.world.n_context)
    try:
        known_of(stage.world, stage.world.arrays(), made)
        made.initial_state(stage.world.n_items, n_features, world.k)
        if stage.features is not None:
            made.numbers(world.k, stage.features)
    except InvalidInput as error:
        return str(error)
    return ""
