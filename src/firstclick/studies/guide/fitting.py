"""How policies are fitted to the worlds: told what their papers assume known, and nothing else.

A parameter declared with `told=` gets what is known of the world, unless another value was given:

- `horizon`: the number of steps, and `1/horizon`;
- `examination`: the chance that a position is examined;
- `topics`: how many of the features are topics;
- `segments`: the number of segments. The world then tells the segment of a user by its number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import PositionBased, Scroll
from firstclick.errors import InvalidInput
from firstclick.experiments.loop import known_of
from firstclick.policies.base import Policy
from firstclick.registry import is_research
from firstclick.studies.guide.worlds import GuideWorld
from firstclick.worlds.base import Stage, World

ONLY_IF_NAMED = "is a research policy, and plays here only if --policy names it"


@dataclass(frozen=True, eq=False)
class Contender:
    """A policy in a world: as it plays there, where exactly, and its regret; or why it cannot play."""

    world: GuideWorld
    asked: str  # the policy as it was asked for
    policy: Policy  # as it plays
    spec: str  # the world, with its users described as this policy reads it
    n_items: int
    n_features: int | None
    reason: str = ""  # why it does not play
    regret: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # of each run
    clicks: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # what each run won

    @property
    def mean(self) -> float:
        return float(self.regret.mean()) if len(self.regret) else nan

    @property
    def stderr(self) -> float:
        runs = len(self.regret)
        return float(self.regret.std(ddof=1) / sqrt(runs)) if runs > 1 else nan


def contenders(
    policies: list[Policy], world: GuideWorld, steps: int, seed: int, *, named: bool = True
) -> Iterator[Contender]:
    """Every policy, fitted to the world. `named` says that somebody asked for these policies."""
    stages: dict[str, Stage] = {}
    for given in policies:
        spec = world.spec
        if world.segments and any(rule.told == "segments" for rule in given.rules().values()):
            spec += ",told=number"
        if spec not in stages:
            stages[spec] = world.stage(seed, 0, spec)
        stage = stages[spec]
        policy = _told(given, _known(world, stage.world, steps))
        n_features = None if stage.features is None else stage.features.shape[1]
        if world.core_only and not named and is_research(type(policy)):
            reason = f"{policy.name} {ONLY_IF_NAMED}"
        else:
            reason = _reason(policy, world, stage)
        yield Contender(world, given.label, policy, spec, stage.world.n_items, n_features, reason)


def _known(world: GuideWorld, built: World, steps: int) -> dict[str, Any]:
    """What is known of the world: those of parameters.FACTS that mean something there."""
    known: dict[str, Any] = {"horizon": steps, "1/horizon": 1 / steps, "topics": world.topics}
    if isinstance(built.click_model, PositionBased):
        known["examination"] = built.click_model.chances
    if isinstance(built.click_model, Scroll):
        known["examination"] = (1.0,)  # What the page says was examined, was.
    if world.segments:
        known["segments"] = world.segments
    return known


def _told(policy: Policy, known: dict[str, Any]) -> Policy:
    """The policy with what is known, except for parameters that were given."""
    defaults = policy.defaults()
    told = {
        name: known[rule.told]
        for name, rule in policy.rules().items()
        if rule.told in known and getattr(policy, name) == defaults[name]
    }
    return replace(policy, **told)


def _reason(policy: Policy, world: GuideWorld, stage: Stage) -> str:
    """Why the policy cannot be played on this stage; empty if it can."""
    if policy.needs_features and stage.features is None:
        return f"{policy.name} needs features, and this world has none"
    if not policy.unordered and world.best_first:
        return f"{policy.name} starts from the order of the catalog, which here has the best items first"
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
