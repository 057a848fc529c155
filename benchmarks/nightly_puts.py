"""Does a model stay as fast and as small as it was when all its items are put again every night?

    python -m benchmarks.nightly_puts [--policy cascade-mixed] [--items 1500] [--nights 30] [--slates 200]

A made-up shop (that of `benchmarks.encoding`) with about 45 features an item. Every night all items are put
with other prices, ratings and reviews, and users answer some slates in between. The restart is that of a
service whose store has a snapshot; `folding all` is that of one without any. A second model with as much
feedback and no puts tells what the feedback alone costs.

The three stores are timed in turn, round after round: a ratio is the median over rounds of day 30 by day 0,
so that a busy machine slows both. Its quartiles are told beside it.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.encoding import ITEMS, made_up_shop
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.item import Item
from firstclick.serve.model.replay import recover
from firstclick.serve.service import open_service
from firstclick.streams import stream

K = 6
# Of the 80 brands, so that there are about 45 features.
BRANDS = 23
RECOMMENDS = 500


def made_up_items(n_items, seed):
    """The first items of the shop, and its table."""
    _, table, _ = made_up_shop(seed, 0)
    brands = [name.strip().title() for name in table["brand"]]
    common = sorted(set(brands), key=brands.count, reverse=True)[:BRANDS]
    table["brand"] = [name if name in common else common[len(name) % BRANDS] for name in brands]
    return {name: cells[:n_items] for name, cells in table.items()}


def night(table, draw):
    """The table of the next day: prices move a little, reviews come in."""
    n_items = len(table["reviews"])
    moved = np.exp(draw.normal(0, 0.05, n_items))
    cents = [
        None if cents is None else max(round(cents * by), 1)
        for cents, by in zip(table["price_cents"], moved, strict=True)
    ]
    come = draw.poisson(2, n_items).tolist()
    return table | {
        "price": ["n/a" if one is None else f"{one / 100:.2f} €".replace(".", ",") for one in cents],
        "price_cents": cents,
        "reviews": [count + more for count, more in zip(table["reviews"], come, strict=True)],
        "rating": [f"{one:.1f}" for one in np.clip(draw.normal(3.9, 0.6, n_items), 1, 5)],
    }


def as_items(table, columns):
    """What a shop sends."""
    titles = table["title"]
    return [
        Item(f"item {row}", titles[row], table["category"][row], {name: table[name][row] for name in columns})
        for row in range(len(titles))
    ]


def play(service, slates, draw):
    """Users, one in five of whom clicks something."""
    shown = [service.recommend("shop") for _ in range(slates)]
    clicks = draw.integers(5 * K, size=slates).tolist()
    entries = [(one, click if click < K else None) for one, click in zip(shown, clicks, strict=True)]
    service.feedback_batch("shop", entries)


def kept(service):
    """Close the service with a young snapshot; the size of that, in bytes."""
    model = service.model("shop")
    service.maintenance.snapshot(model)
    size = len(model.snapshot()[1])
    service.close()
    return size


def timed(place):
    """Seconds of a restart, of folding the whole log, and the median of a recommendation."""
    start = time.perf_counter()
    service = open_service(str(place))
    restart = time.perf_counter() - start
    (stored,) = service.store.models()
    start = time.perf_counter()
    recover(service.store, stored, use_snapshots=False)
    folding = time.perf_counter() - start
    recommends = []
    for number in range(RECOMMENDS):
        start = time.perf_counter()
        service.recommend("shop", request_id=str(number))
        recommends.append(time.perf_counter() - start)
    service.close()
    return restart, folding, statistics.median(recommends)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="cascade-mixed")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--slates", type=int, default=200, help="answered slates a day")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    first = made_up_items(given.items, given.seed)
    encoder = Encoder.fitted({name: cells for name, cells in first.items() if name != "title"})
    sizes, puts = {}, []
    last = f"day {given.nights}"
    with tempfile.TemporaryDirectory() as folder:
        places = {day: Path(folder) / f"{day}.db" for day in ("day 0", "without puts", last)}
        for day, place in places.items():
            table, draw = first, stream(given.seed, "nights")
            service = open_service(str(place))
            items = as_items(table, encoder.inputs)
            service.create("shop", policy=given.policy, k=K, items=items, seed=given.seed)
            play(service, given.slates, draw)
            for _ in range(0 if day == "day 0" else given.nights):
                table = night(table, draw)
                items = as_items(table, encoder.inputs)
                if day == last:
                    start = time.perf_counter()
                    service.put_items("shop", items)
                    puts.append(time.perf_counter() - start)
                play(service, given.slates, draw)
            assert len(service.model("shop").catalog.items) == given.items, "an item has more than one row"
            n_events = service.model("shop").seq
            snapshot = kept(service)
            sizes[day] = sum(file.stat().st_size for file in Path(folder).glob(f"{day}.db*")), snapshot
        timed(places["day 0"])  # Nothing is compiled or read for the first time below.
        rounds = [{day: timed(place) for day, place in places.items()} for _ in range(given.rounds)]
    print(
        f"{given.policy}: {given.items:,} items, {encoder.n_features} features, {given.nights} nights, "
        f"{given.slates} slates a day, {n_events:,} events, {given.rounds} rounds\n"
    )
    later = ("without puts", last)
    print(f"{'':24}{'day 0':>12}" + "".join(f"{day:>14}{'ratio':>7}{'quartiles':>17}" for day in later))
    units = (("restart, ms", 1e3), ("folding all, ms", 1e3), ("recommend, us (median)", 1e6))
    for place, (what, unit) in enumerate(units):
        line = f"{what:24}{unit * statistics.median(one['day 0'][place] for one in rounds):>12,.1f}"
        for day in later:
            ratios = [one[day][place] / one["day 0"][place] for one in rounds]
            low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
            value = unit * statistics.median(one[day][place] for one in rounds)
            line += f"{value:>14,.1f}{ratio:>7.2f}{f'{low:.2f} to {high:.2f}':>17}"
        print(line)
    for place, what in enumerate(("store, kB", "snapshot, kB")):
        line = f"{what:24}{sizes['day 0'][place] / 1e3:>12,.1f}"
        for day in later:
            line += (
                f"{sizes[day][place] / 1e3:>14,.1f}{sizes[day][place] / sizes['day 0'][place]:>7.2f}{'':17}"
            )
        print(line.rstrip())
    print(f"\none nightly put of all items: {1e3 * statistics.median(puts):,.0f} ms (median)")


if __name__ == "__main__":
    main()
