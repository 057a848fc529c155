"""Play policies in worlds, in a folder; the same call goes on where the last one stopped."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from firstclick.experiments.cells import Cell, Setting
from firstclick.experiments.engines import Engine, engine_named
from firstclick.experiments.folder import CELLS, alone_in
from firstclick.experiments.loop import Record
from firstclick.experiments.runner import UNWATCHED, Watch, play_cells
from firstclick.experiments.store import CellStore
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.parameters import check_distinct
from firstclick.policies.base import Policy
from firstclick.registry import make_policy, policy_classes
from firstclick.source_code import installed_versions
from firstclick.studies.guide.families import FLOOR, in_order
from firstclick.studies.guide.fitting import Contender, contenders
from firstclick.studies.guide.standings import as_csv, lines_of
from firstclick.studies.guide.worlds import GuideWorld
from firstclick.validation.whole_number import seed_number, whole_number
from firstclick.worlds.base import Stage

STEPS, RUNS, SEED = 20_000, 5, 1


def policies_named(specs: Sequence[str | Policy] = ()) -> list[Policy]:
    """These policies, or all that are known, in the order of the guide; random order is always among them."""
    policies = [make_policy(spec) for spec in specs or policy_classes()]
    labels = [policy.label for policy in policies]
    check_distinct("policy", labels)
    if FLOOR not in labels:
        policies.append(make_policy(FLOOR))
    return sorted(policies, key=lambda policy: in_order(policy.name))


def compare(
    policies: Sequence[Policy],
    worlds: Sequence[GuideWorld],
    folder: str | os.PathLike[str],
    engine: Engine | str = "local",
    *,
    steps: int = STEPS,
    runs: int = RUNS,
    seed: int = SEED,
    overwrite: bool = False,
    named: bool = True,
    watch: Watch = UNWATCHED,
) -> list[Contender]:
    """Every policy in every world, `runs` times, each time in another world of its kind.

    The policies are those of `policies_named`; `named` says that somebody asked for them, and did not leave
    it at all. Cells finished in the folder already are not played again. The
    folder gets manifest.json and results.csv, the same bytes whatever the engine and however often it was
    interrupted; and speed.csv, the one file that tells how fast it went.
    """
    folder = as_path(folder)
    engine = engine_named(engine, 1) if isinstance(engine, str) else engine
    steps = whole_number("steps", steps, at_least=1)
    runs = whole_number("runs", runs, at_least=1)
    seed = seed_number(seed)
    fitted = [one for world in worlds for one in contenders(list(policies), world, steps, seed, named=named)]

    def cells_of(one: Contender) -> list[Cell]:
        at = Setting(one.world.name, "", one.n_items, one.n_features, one.world.k, steps, seed)
        return [Cell(at, one.policy, run, one.spec) for run in range(0 if one.reason else runs)]

    by_name = {world.name: world for world in worlds}

    def stage_of(cell: Cell) -> Stage:
        """Every run has a world of its own."""
        return by_name[cell.setting.dataset].stage(seed, cell.run, cell.data)

    order = list(by_name)
    cells = sorted(
        dict.fromkeys(cell for one in fitted for cell in cells_of(one)),
        key=lambda cell: (order.index(cell.setting.dataset), cell.run, cell.data),
    )
    with alone_in(folder, _manifest(fitted, worlds, steps, runs, seed), overwrite=overwrite):
        store = CellStore(folder / CELLS)
        played = play_cells(cells, stage_of, engine, store=store, watch=watch)
        records = dict(zip(cells, played, strict=True))
        done = [_with_results(one, [records[cell] for cell in cells_of(one)]) for one in fitted]
        write_whole(folder / "results.csv", as_csv(lines_of(done, steps)))
    return done


def _with_results(one: Contender, records: Sequence[Record]) -> Contender:
    return replace(
        one,
        regret=np.array([record.expected_regret[-1] for record in records]),
        clicks=np.array([record.reward[-1] for record in records]),
    )


def _manifest(
    fitted: Sequence[Contender], worlds: Sequence[GuideWorld], steps: int, runs: int, seed: int
) -> dict[str, Any]:
    return {
        "versions": installed_versions(),
        "steps": steps,
        "runs": runs,
        "seed": seed,
        "worlds": {
            world.name: {
                **world.about(),
                "k": world.k,
                "why": world.why,
                "policies": [one.policy.label for one in fitted if one.world == world and not one.reason],
            }
            for world in worlds
        },
    }
