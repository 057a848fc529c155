"""Play policies in stock worlds, in a folder; the same call goes on where the last one stopped."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.experiments.cells import Cell, Setting
from firstclick.experiments.engine import Engine, engine_named
from firstclick.experiments.file import Training
from firstclick.experiments.folder import CELLS, alone_in, check_folder, write_manifest
from firstclick.experiments.loop import log_spaced
from firstclick.experiments.play import UNWATCHED, CellTask, Watch, finish
from firstclick.experiments.results import installed_versions
from firstclick.experiments.store import CellStore
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.policies.base import Policy
from firstclick.registry import make_policy, policy_classes
from firstclick.studies.guide.families import FLOOR, in_order
from firstclick.studies.guide.fitting import Contender, contenders
from firstclick.studies.guide.standings import Standing, as_csv, lines_of
from firstclick.studies.guide.stock import StockWorld
from firstclick.validation.whole_number import seed_number, whole_number

STEPS, RUNS, SEED = 20_000, 5, 1


def policies_named(specs: Sequence[str | Policy] = ()) -> list[Policy]:
    """These policies, or all that are known, in the order of the guide; random order is always among them."""
    policies = [make_policy(spec) for spec in specs or policy_classes()]
    labels = [policy.label for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInput(f"policy {label!r} is given twice")
    if FLOOR not in labels:
        policies.append(make_policy(FLOOR))
    return sorted(policies, key=lambda policy: in_order(policy.name))


def compare(
    policies: Sequence[Policy],
    worlds: Sequence[StockWorld],
    folder: str | os.PathLike[str],
    engine: Engine | str = "local",
    *,
    steps: int = STEPS,
    runs: int = RUNS,
    seed: int = SEED,
    overwrite: bool = False,
    watch: Watch = UNWATCHED,
) -> list[Standing]:
    """Every policy in every world, `runs` times, each time in another world of its kind.

    The policies are those of `policies_named`. Cells finished in the folder already are not played again. The
    folder gets manifest.json and results.csv, the same bytes whatever the engine and however often it was
    interrupted; and speed.csv, the one file that tells how fast it went.
    """
    folder = as_path(folder)
    engine = engine_named(engine, 1) if isinstance(engine, str) else engine
    steps = whole_number("steps", steps, at_least=1)
    runs = whole_number("runs", runs, at_least=1)
    seed = seed_number(seed)
    check_folder(folder)
    fitted = [one for world in worlds for one in contenders(list(policies), world, steps, seed)]
    with alone_in(folder):
        write_manifest(folder, _manifest(fitted, worlds, steps, runs, seed), overwrite=overwrite)
        store = CellStore(folder / CELLS)
        placed = _cells(fitted, worlds, steps, runs, seed)
        cells, digests = list(placed), [one.spec for one in placed.values()]

        def tasks(missing: Sequence[int]) -> Iterator[CellTask]:
            return _tasks(cells, [placed[cell] for cell in cells], missing)

        finish(cells, digests, tasks, store, engine, watch)
        standings = [_standing(one, store, steps, runs, seed) for one in fitted]
        write_whole(folder / "results.csv", as_csv(lines_of(standings, steps)))
    return standings


def _setting(one: Contender, steps: int, seed: int) -> Setting:
    # There is nothing to train on: features come with the world.
    return Setting(one.world.name, "", one.n_items, one.n_features, one.world.k, steps, seed, Training())


def _cells(
    fitted: Sequence[Contender], worlds: Sequence[StockWorld], steps: int, runs: int, seed: int
) -> dict[Cell, Contender]:
    """The cells, each once, in an order in which neighbours share a stage."""
    placed: dict[Cell, Contender] = {}
    for world in worlds:
        here = sorted((one for one in fitted if one.world == world and not one.reason), key=lambda c: c.spec)
        for run in range(runs):
            for one in here:
                placed.setdefault(Cell(_setting(one, steps, seed), one.policy, run), one)
    return placed


def _tasks(cells: Sequence[Cell], fitted: Sequence[Contender], missing: Sequence[int]) -> Iterator[CellTask]:
    """The tasks of missing cells; neighbours that share a stage and its best slates get the same."""
    latest: tuple[Any, ...] | None = None
    for number in missing:
        cell, one = cells[number], fitted[number]
        setting = cell.setting
        wanted = one.spec, cell.run
        if latest is None or latest[0] != wanted:
            # Every run has a world of its own.
            stage = one.world.stage(setting.seed, cell.run, one.spec)
            latest = (
                wanted,
                stage,
                stage.world.optimal_slates(setting.k),
                stage.world.optimal_reward(setting.k),
            )
        _, stage, optimal, reward = latest
        record = log_spaced(setting.steps)
        yield CellTask(
            number, cell.policy, stage, optimal, reward, cell.run, record, setting.seed, beside_numpy=False
        )


def _standing(one: Contender, store: CellStore, steps: int, runs: int, seed: int) -> Standing:
    regret = []
    for run in range(0 if one.reason else runs):
        cell = Cell(_setting(one, steps, seed), one.policy, run)
        record = store.load(cell, one.spec)
        if record is None:
            raise WorkFailed(f"{store.folder / cell.file_name(one.spec)} is gone; run it again")
        regret.append(record.expected_regret[-1])
    return Standing(one.world, one.given.label, one.policy.label, np.array(regret), one.reason)


def _manifest(
    fitted: Sequence[Contender], worlds: Sequence[StockWorld], steps: int, runs: int, seed: int
) -> dict[str, Any]:
    return {
        "versions": installed_versions(),
        "steps": steps,
        "runs": runs,
        "seed": seed,
        "worlds": {
            world.name: {
                "world": world.spec,
                "k": world.k,
                "why": world.why,
                "policies": [one.policy.label for one in fitted if one.world == world and not one.reason],
            }
            for world in worlds
        },
    }
