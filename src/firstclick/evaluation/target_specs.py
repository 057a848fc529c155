"""What `--policy SPEC` of `evaluate run` means: a target of the log, or a policy that goes on learning."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.list_file import read_list
from firstclick.errors import FirstclickError, InvalidInput, UnknownName
from firstclick.evaluation.engine_targets import GreedySlate, SamplingPolicy
from firstclick.evaluation.stored_engine import engine_of_model, has_events_of
from firstclick.evaluation.targets import FixedList, Target, Uniform
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog
from firstclick.online.ranker import Ranker
from firstclick.parameters import did_you_mean
from firstclick.registry import make_policy, policy_classes
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number

SAVED = ("greedy", "sample")
RANKER_FILE = ".npz"
# What a file with a list of items may be called; anything else that is not there is taken for ids.
LIST_FILES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet", ".pq", ".gz")


@dataclass(frozen=True)
class TargetSpec:
    """A SPEC, taken apart: `text` is what stands behind the colon, `event` where a model is frozen."""

    label: str
    kind: str  # list, greedy, sample, random, or learning: a policy that starts with nothing
    text: str = ""
    event: int | None = None


def read_specs(specs: Iterable[str]) -> list[TargetSpec]:
    """The targets asked for, or an error for the first that cannot be one.

    >>> [spec.kind for spec in read_specs(["list:tea,coffee", "sample:shop,event=500", "cascade-ts"])]
    ['list', 'sample', 'learning']
    """
    found: list[TargetSpec] = []
    for text in specs:
        spec = _read_spec(text.strip())
        if spec.label in [other.label for other in found]:
            raise InvalidInput(f"{quoted(spec.label)} is given twice; name each policy once", "policy")
        found.append(spec)
    if not found:
        raise InvalidInput("name at least one: list:FILE, greedy:FILE.npz, sample:MODEL or random", "policy")
    return found


def _read_spec(text: str) -> TargetSpec:
    kind, _, rest = text.partition(":")
    kind = kind.strip()
    if kind == "shown":
        raise InvalidInput("shown is what every policy is compared with; leave it out", "policy")
    if text == "random":
        return TargetSpec(text, "random")
    if kind == "list":
        if not rest.strip(","):
            raise InvalidInput(
                "list: wants a file or items, as in list:today.csv or list:tea,coffee", "policy"
            )
        return TargetSpec(text, kind, rest)
    if kind in SAVED:
        name, _, setting = rest.partition(",")
        if not name:
            raise InvalidInput(
                f"{kind}: wants a saved ranker or a model, as in {kind}:ranker.npz or {kind}:shop", "policy"
            )
        return TargetSpec(text, kind, name.strip(), _event(text, name, setting))
    if kind not in policy_classes():
        hint = did_you_mean(kind, [*policy_classes(), "list", *SAVED, "random"])
        raise UnknownName(
            f"--policy {quoted(text)} is none of list:FILE, list:A,B,..., greedy:FILE.npz, greedy:MODEL, "
            f"sample:FILE.npz, sample:MODEL, random, nor a policy of `firstclick policies`{hint}"
        )
    return TargetSpec(make_policy(text).label, "learning", text)


def _event(text: str, name: str, setting: str) -> int | None:
    if not setting:
        return None
    key, equals, value = setting.partition("=")
    if key.strip() != "event" or not equals or not value.strip().isdecimal():
        raise InvalidInput(f"{quoted(text)}: expected event=N behind the comma, got {quoted(setting)}")
    if name.endswith(RANKER_FILE):
        raise InvalidInput(
            f"{quoted(text)}: a saved ranker has one state; event= goes with a model of a store"
        )
    return whole_number("event", int(value), at_least=1)


def make_target(
    spec: TargetSpec,
    log: RankedLog,
    *,
    store: str | None = None,
    archive: Iterable[Path] = (),
    seed: int = 0,
    progress: Progress = silent,
) -> Target:
    """The target that a spec means for this log. Models are those of `store`."""
    try:
        if spec.kind == "random":
            return Uniform()
        if spec.kind == "list":
            return FixedList(_items(spec.text, log))
        if spec.text.endswith(RANKER_FILE):
            at_work = Ranker.load(spec.text)
        elif store is None:
            raise InvalidInput(
                f"{quoted(spec.text)} is no file of a ranker ({RANKER_FILE}); for a model name its store "
                "with `store`"
            )
        else:
            engine = engine_of_model(store, spec.text, spec.event, archive, progress)
            target = GreedySlate(engine) if spec.kind == "greedy" else SamplingPolicy(engine, seed=seed)
            if has_events_of(store, spec.text, log):
                target.judged_from = spec.event
                target.has_learned = "" if spec.event is not None else _has_learned(spec)
            return target
        return GreedySlate(at_work) if spec.kind == "greedy" else SamplingPolicy(at_work, seed=seed)
    except FirstclickError as error:
        raise error.within(f"--policy {spec.label}") from None


def _has_learned(spec: TargetSpec) -> str:
    return (
        f"{spec.text} has learned from these slates: what was clicked often by chance is what it shows, so "
        f"that it looks too good; say {spec.kind}:{spec.text},event=N to judge it on later slates only"
    )


def _items(text: str, log: RankedLog) -> list[str | int]:
    path = Path(text)
    if path.is_file():
        return read_list(path, Catalog(list(log.items)))
    if path.suffix.lower() in LIST_FILES or "/" in text:
        raise InvalidInput(f"{text}: no such file")
    return [item.strip() for item in text.split(",") if item.strip()]
