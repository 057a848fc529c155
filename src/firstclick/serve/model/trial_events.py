"""The events of a trial from what people ask for, checked before anything is written; and its report."""

import secrets
from collections.abc import Callable, Mapping

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import TrialArm, TrialShares, TrialStarted, TrialStopped
from firstclick.serve.model.model import Model
from firstclick.serve.model.trial import BASELINE, KINDS, LEARN_FROM, MODEL, POLICY, Trial
from firstclick.trials.assignment import check_arms
from firstclick.trials.report import TrialReport, report
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Conflict, Malformed, Unknown, refusing

KEY_SIZE = 32
DEFAULT_ARMS = {POLICY: 0.9, BASELINE: 0.1}

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
        raise Conflict(f"a trial is running on model {model.name!r}; stop it first, or change its shares")
    if learn_from not in LEARN_FROM:
        raise Malformed(f"learn_from must be {' or '.join(map(repr, LEARN_FROM))}, got {quoted(learn_from)}")
    with refusing:
        check_arms([*arms], [*arms.values()])
        pages = whole_number("last_pages", last_pages, at_least=100, at_most=10**9)
    parts = [name.partition(":") for name in arms]
    for kind, _, given in parts:
        if kind not in KINDS or (kind == BASELINE and given) or (kind == MODEL and not given):
            raise Malformed(
                "an arm must be 'policy', 'baseline', 'policy:SPEC' for another policy, or 'model:NAME', got "
                f"{quoted(kind + (':' + given if given else ''))}"
            )
        if kind == BASELINE and model.launch.baseline is None:
            raise Malformed(
                f"model {model.name!r} has no baseline to compare with; PUT the list that is shown today to "
                f"/v1/models/{model.name}/baseline first"
            )
    if POLICY not in arms:
        raise Malformed(f"one arm must be 'policy', the policy of model {model.name!r} itself")
    if stop_if_worse and BASELINE not in arms:
        raise Malformed("stop_if_worse compares with the baseline; add an arm 'baseline', or leave it out")
    found = []
    # Forks are made last: what is wrong is told before that.
    for name, (kind, _, given) in sorted(zip(arms, parts, strict=True), key=lambda one: one[1][0] == POLICY):
        other = find(model, kind, given) if given else None
        found.append(
            TrialArm(name, kind)
            if other is None
            else TrialArm(name, MODEL, other.name, other.created.key or 0)
        )
    by_name = {arm.name: arm for arm in found}
    return TrialStarted(
        [by_name[name] for name in arms], [float(share) for share in arms.values()],
        secrets.token_bytes(KEY_SIZE), learn_from, stop_if_worse, pages,
    )  # fmt: skip


def trial_shares(trial: Trial, arms: Mapping[str, float]) -> TrialShares:
    """Other shares for a running trial, or Malformed."""
    names = [arm.name for arm in trial.arms]
    if set(arms) != set(names):
        raise Malformed(
            f"shares must be given for all arms of the trial, {', '.join(map(repr, names))} (0 for one that "
            f"is to end), got {', '.join(map(quoted, arms)) or 'none'}"
        )
    with refusing:
        shares = [arms[name] for name in names]
        check_arms(names, shares)
    return TrialShares(trial.id, [float(share) for share in shares])


def trial_stopped(model: Model, trial: Trial, show: str, why: str = "asked") -> TrialStopped:
    """The end of a trial, or Malformed."""
    if show not in (POLICY, BASELINE):
        raise Malformed(f"show must be 'policy' or 'baseline', got {quoted(show)}")
    if show == BASELINE and model.launch.baseline is None:
        raise Malformed(f"model {model.name!r} has no baseline to show")
    return TrialStopped(trial.id, show, why)


def trial_report(model: Model) -> TrialReport:
    """What the trial of the model says now; Unknown if there was none."""
    with model.lock:
        trial = model.launch.trial
        if trial is None:
            raise Unknown(
                f"there was no trial on model {model.name!r}; POST /v1/models/{model.name}/trial starts one"
            )
        raise InvalidInput(str(report))
