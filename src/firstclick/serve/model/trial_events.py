"""The events of a trial from what people ask for, checked before anything is written; and its report."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from firstclick.serve.log.events import TrialArm, TrialShares, TrialStarted, TrialStopped
from firstclick.serve.model.model import Model
from firstclick.serve.model.trial import ALL, ASKED, BASELINE, LEARN_FROM, MODEL, POLICY, WORSE, Trial
from firstclick.trials.assignment import check_arms
from firstclick.trials.report import Report, report
from firstclick.trials.sequence import is_worse
from firstclick.trials.tally import MOST_PERIODS
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Conflict, Malformed, Unknown, refusing

KEY_SIZE = 32
DEFAULT_ARMS = {POLICY: 0.9, BASELINE: 0.1}


def learns_from_arms(model: Model) -> bool:
    """Whether slates that others drew may teach this model."""
    policy = model.engine.policy
    return policy.learns_from_others and not policy.misreads


# From the model whose trial it is, `model` or `policy`, and what follows the colon, to who decides.
FindArm = Callable[[Model, str, str], Model]


def trial_started(
    model: Model,
    arms: Mapping[str, float],
    find: FindArm,
    *,
    learn_from: str,
    stop_if_worse: bool,
    last_pages: int,
) -> TrialStarted:
    """How a trial begins, or Malformed; Conflict if one is running."""
    if model.launch.running is not None:
        raise Conflict(f"{model.name!r} has a running trial; stop it first, or change its shares", "model")
    _check_mapping(arms)
    check_word("learn_from", learn_from, LEARN_FROM)
    with refusing:
        check_arms([*arms], [*arms.values()])
        pages = whole_number("last_pages", last_pages, at_least=100, at_most=10**9)
    parts = [name.partition(":") for name in arms]
    for kind, colon, given in parts:
        wants = {POLICY: bool(colon), BASELINE: False, MODEL: True}.get(kind)
        if wants is None or bool(colon) != wants or bool(given) != wants:
            raise Malformed(
                "must be 'policy', 'baseline', 'policy:SPEC' for another policy, or 'model:NAME', got "
                f"{quoted(kind + colon + given)}",
                "arms",
            )
        if kind == BASELINE and model.launch.baseline is None:
            raise Malformed(
                f"have 'baseline', and model {model.name!r} has none; PUT the list that is shown today to "
                f"/v1/models/{model.name}/baseline first",
                "arms",
            )
    if not isinstance(stop_if_worse, bool):
        raise Malformed(f"must be True or False, got {quoted(stop_if_worse)}", "stop_if_worse")
    if POLICY not in arms:
        raise Malformed(f"must have 'policy', the policy of model {model.name!r} itself", "arms")
    if stop_if_worse and BASELINE not in arms:
        raise Malformed("needs an arm 'baseline' to compare with; add it, or leave this out", "stop_if_worse")
    shared = learn_from == ALL or model.launch.baseline is not None
    if learn_from == ALL and any(given for _, _, given in parts):
        _check_learns(model)
    found = []
    # Forks are made last: what is wrong is told before that.
    for name, (kind, _, given) in sorted(zip(arms, parts, strict=True), key=lambda one: one[1][0] == POLICY):
        other = find(model, kind, given) if given else None
        if other is not None and shared:
            _check_learns(other)
        found.append(
            TrialArm(name, kind) if other is None else TrialArm(name, MODEL, other.name, other.created.key)
        )
    by_name = {arm.name: arm for arm in found}
    return TrialStarted(
        [by_name[name] for name in arms], [float(share) for share in arms.values()],
        secrets.token_bytes(KEY_SIZE), str(learn_from), stop_if_worse, pages,
    )  # fmt: skip


def check_word(argument: str, word: object, words: tuple[str, ...]) -> None:
    """Check that an argument is one of these words."""
    if not isinstance(word, str) or word not in words:
        raise Malformed(f"must be {' or '.join(map(repr, words))}, got {quoted(word)}", argument)


def _check_mapping(arms: object) -> None:
    if not isinstance(arms, Mapping):
        raise Malformed(
            f"must be a share for each arm, such as {{'policy': 0.9}}, got {quoted(arms)}", "arms"
        )


def _check_learns(model: Model) -> None:
    """Refuse a model that would be taught by slates of others, if it cannot be."""
    if not learns_from_arms(model):
        raise Malformed(
            f"must not have {model.policy}, the policy of model {model.name!r}, which learns only from "
            "slates that it has arranged itself; arms that learn from other slates need another policy",
            "arms",
        )


def trial_shares(trial: Trial, arms: Mapping[str, float]) -> TrialShares:
    """Other shares for a running trial, or Malformed."""
    names = [arm.name for arm in trial.arms]
    _check_mapping(arms)
    if set(arms) != set(names):
        raise Malformed(
            f"must be those of the trial, {', '.join(map(repr, names))} (0 for one that is to end), got "
            f"{', '.join(map(quoted, arms)) or 'none'}",
            "arms",
        )
    if not trial.may_change:
        raise Malformed(
            f"can be changed {MOST_PERIODS - 1} times in a trial, and were; stop it, and start another",
            "arms",
        )
    with refusing:
        shares = [arms[name] for name in names]
        check_arms(names, shares)
    return TrialShares(trial.id, [float(share) for share in shares])


def trial_stopped(model: Model, trial: Trial, show: str, why: str = ASKED) -> TrialStopped:
    """The end of a trial, or Malformed."""
    check_word("show", show, (POLICY, BASELINE))
    if show == BASELINE and model.launch.baseline is None:
        raise Malformed(f"must be 'policy', because model {model.name!r} has no baseline", "show")
    return TrialStopped(trial.id, show, why)


@dataclass(frozen=True)
class TrialReport:
    """A trial and its results."""

    model: Annotated[str, Meta(description="name of the model")]
    running: Annotated[bool, Meta(description="the trial has not been stopped")]
    started: Annotated[float, Meta(description="seconds since 1970")]
    shown_since: Annotated[
        str | None, Meta(description="who decides the slates since it was stopped: policy or baseline")
    ]
    stopped_because: Annotated[str | None, Meta(description="asked, or worse: the policy was worse")]
    learn_from: Annotated[str, Meta(description="own or all: which slates an arm learns from")]
    stop_if_worse: Annotated[bool, Meta(description="show the baseline as soon as the policy is worse")]
    waiting: Annotated[int, Meta(description="pages with feedback that are not counted yet")]
    unreported: Annotated[float | None, Meta(description="share of slates without feedback")]
    decided: Annotated[
        dict[str, float],
        Meta(description="share of its pages that each arm decided; on others the floor did"),
    ]
    answer: Annotated[Report, Meta(description="the results")]

    def text(self) -> str:
        """For the terminal."""
        head = f"Trial of {self.model}, since {_day(self.started)}: "
        if self.running:
            head += "running"
        else:
            why = "the policy was worse" if self.stopped_because == WORSE else "somebody asked for it"
            since = "the policy decides" if self.shown_since == POLICY else "the baseline is shown"
            head += f"stopped, because {why}; {since} since"
        lines = [head]
        for arm, share in self.decided.items():
            if share < 1:
                lines.append(
                    f"{arm} decided {share:.0%} of its pages; the floor showed the list on the rest."
                )
        if self.waiting:
            lines.append(f"{self.waiting:,} pages are reported and wait until their time has passed.")
        if self.unreported is not None:
            lines.append(f"Nobody said what became of {self.unreported:.0%} of the slates.")
        return "\n".join(lines) + "\n\n" + self.answer.text()


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def trial_report(model: Model) -> TrialReport:
    """What the trial of the model says now; Unknown if there was none."""
    with model.lock:
        trial = model.launch.trial
        if trial is None:
            raise Unknown(
                f"{model.name!r} had no trial; POST /v1/models/{model.name}/trial starts one", "model"
            )
        return TrialReport(
            model.name,
            trial.runs,
            trial.started,
            None if trial.stopped is None else trial.stopped.show,
            None if trial.stopped is None else trial.stopped.why,
            trial.body.learn_from,
            trial.body.stop_if_worse,
            trial.n_waiting,
            model.unreported(),
            {
                arm.name: trial.decided[place] / known
                for place, arm in enumerate(trial.arms)
                if arm.kind != BASELINE and (known := trial.known[place])
            },
            answer_of(trial),
        )


def answer_of(trial: Trial) -> Report:
    """The clicks of the arms, compared with the baseline, or with the policy where there is no baseline."""
    names = [arm.name for arm in trial.arms]
    kinds = [arm.kind for arm in trial.arms]
    recommended = trial.recommended if any(trial.recommended) else None
    return report(
        trial.tally,
        names,
        against=kinds.index(BASELINE if BASELINE in kinds else POLICY),
        recommended=recommended,
        reported=trial.reported,
        learn_from_all=trial.body.learn_from == ALL,
    )


def policy_is_worse(trial: Trial) -> bool:
    """Whether the policy is worse than the baseline, for sure: the verdict of the report, and cheap."""
    kinds = [arm.kind for arm in trial.arms]
    return is_worse(trial.tally, kinds.index(POLICY), kinds.index(BASELINE))
