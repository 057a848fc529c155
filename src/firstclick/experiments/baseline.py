"""The baseline of a simulation: a list of names, or one that is made up, as good as is asked for."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.clicks import expected_reward, new_memo
from firstclick.streams import stream
from firstclick.validation.quoting import quoted
from firstclick.worlds.base import Stage, World

# How many lists are tried for one that is as good as is asked for.
LENGTHS, DRAWS = 200, 3


def check_list_or_share(baseline: object) -> Sequence[str | int] | float:
    """A list of items, or a share of the best slate's clicks; or InvalidInput."""
    number = isinstance(baseline, int | float) and not isinstance(baseline, bool)
    if number and 0 < baseline <= 1:  # type: ignore[operator]
        return float(baseline)  # type: ignore[arg-type]
    if isinstance(baseline, Sequence) and not isinstance(baseline, str | bytes) and len(baseline) > 0:
        return baseline
    raise InvalidInput(
        "must be a list of items, or a number above 0 and up to 1: a made-up list that gets this share of "
        f"the best slate's clicks; got {quoted(baseline)}",
        "baseline",
    )


def baseline_rows(
    baseline: Sequence[str | int] | float, stage: Stage, k: int, seed: int, run: int
) -> NDArray[np.int64]:
    """The first k items of the baseline, as rows of the stage."""
    if isinstance(baseline, float):
        return made_up_list(stage.world, k, baseline, seed, run)
    row_of = {str(name): row for row, name in enumerate(stage.item_names)}
    rows: list[int] = []
    for name in baseline:
        # Items of a world are called "item 7", or 7.
        row = row_of.get(str(name), row_of.get(f"item {name}"))
        if row is None:
            raise InvalidInput(f"names {quoted(name)}, which is no item of this world", "baseline")
        if row in rows:
            raise InvalidInput(f"names {quoted(name)} twice", "baseline")
        rows.append(row)
    if len(rows) < k:
        raise InvalidInput(f"must have at least k = {k} items, got {len(rows)}", "baseline")
    return np.array(rows[:k], np.int64)


def made_up_list(world: World, k: int, share: float, seed: int, run: int) -> NDArray[np.int64]:
    """A list that gets about this share of the reward of the best one: k of the m best or worst items, drawn
    at random, best first, for the m that comes closest. One list for all users; 1 is the best one."""
    worth = _Worth(world, k)
    best = _best_list(world, k, worth)
    if share == 1:
        return best
    target = share * worth(best)
    order = np.argsort([-worth(np.array([item])) for item in range(world.n_items)], kind="stable")
    draw = stream(seed, "run", run, "baseline")
    closest, distance = best, np.inf
    for m in np.unique(np.geomspace(k, world.n_items, LENGTHS).astype(int)).tolist():
        for number in range(2 * DRAWS):
            among = order[:m] if number < DRAWS else order[-m:]
            rows = among[np.sort(draw.permutation(m)[:k])]
            away = abs(worth(rows) - target)
            if away < distance:
                closest, distance = rows, away
    return np.asarray(closest, np.int64)


class _Worth:
    """The expected reward of a list, on the average over users and times."""

    def __init__(self, world: World, k: int) -> None:
        self.world, self.arrays, self.memo = world, world.arrays(), new_memo(k)
        self.bits = np.empty((self.arrays.n_users + 63) // 64, np.uint64)

    def __call__(self, rows: NDArray[np.int64]) -> float:
        world = self.world
        if world.n_views == 1:  # The same as below, and for a large matrix far quicker.
            return float(expected_reward(self.arrays, 0, rows, len(rows), self.memo, self.bits))
        return world.mean_over_views([world.expected_reward(rows, view) for view in range(world.n_views)])


def _best_list(world: World, k: int, worth: _Worth) -> NDArray[np.int64]:
    """The best slate; where users differ or tastes move, one for all, put together item by item."""
    if world.n_views == 1:
        return world.optimal_slate(k)
    rows: list[int] = []
    for _ in range(k):
        left = [item for item in range(world.n_items) if item not in rows]
        rows.append(max(left, key=lambda item: worth(np.array([*rows, item]))))
    return np.array(rows, np.int64)
