"""Does a model stay as fast and as small as it was when all its items are put again every night?

    python -m benchmarks.nightly_puts [--policy cascade-mixed] [--items 1500] [--nights 30] [--slates 200]

A made-up shop (that of `benchmarks.encoding`) with about 45 features an item. Every night all items are put
with other prices, ratings and reviews, and users answer some slates in between. The restart is that of a
service whose store has a snapshot; `folding all` is that of one without any. A second model with as much
feedback and no puts tells what the feedback alone costs. Ratios are those to day 0, in the same run.
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
RESTARTS, RECOMMENDS = 9, 3000


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


def measured(place, service):
    """The service, started again, and what it takes to start it, to ask it and to keep it."""
    service.maintenance.snapshot(service.model("shop"))
    snapshot = len(service.model("shop").snapshot()[1])
    service.close()
    restarts = []
    for _ in range(RESTARTS):
        start = time.perf_counter()
        service = open_service(str(place))
        restarts.append(time.perf_counter() - start)
        if len(restarts) < RESTARTS:
            service.close()
    (stored,) = service.store.models()
    start = time.perf_counter()
    recover(service.store, stored, use_snapshots=False)
    folding = time.perf_counter() - start
    recommends = []
    for number in range(RECOMMENDS):
        start = time.perf_counter()
        service.recommend("shop", request_id=str(number))
        recommends.append(time.perf_counter() - start)
    size = sum(file.stat().st_size for file in place.parent.glob(f"{place.name}*"))
    return service, {
        "restart, ms (best)": 1e3 * min(restarts),
        "folding all, ms": 1e3 * folding,
        "recommend, us (median)": 1e6 * statistics.median(recommends),
        "store, kB": size / 1e3,
        "snapshot, kB": snapshot / 1e3,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="cascade-mixed")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--slates", type=int, default=200, help="answered slates a day")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    first = made_up_items(given.items, given.seed)
    encoder = Encoder.fitted({name: cells for name, cells in first.items() if name != "title"})
    days, puts = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for putting in (False, True):
            table, draw = first, stream(given.seed, "nights")
            place = Path(folder) / f"shop-{putting}.db"
            service = open_service(str(place))
            items = as_items(table, encoder.inputs)
            service.create("shop", policy=given.policy, k=K, items=items, seed=given.seed)
            play(service, given.slates, draw)
            service, days["day 0"] = measured(place, service)
            for _ in range(given.nights):
                table = night(table, draw)
                items = as_items(table, encoder.inputs)
                start = time.perf_counter()
                if putting:
                    service.put_items("shop", items)
                    puts.append(time.perf_counter() - start)
                play(service, given.slates, draw)
            word = f"day {given.nights}" if putting else "without puts"
            service, days[word] = measured(place, service)
            model = service.model("shop")
            assert len(model.catalog.items) == given.items, "an item has more than one row"
            service.close()
    print(
        f"{given.policy}: {given.items:,} items, {encoder.n_features} features, {given.nights} nights, "
        f"{given.slates} slates a day, {model.seq:,} events\n"
    )
    words = ("day 0", "without puts", f"day {given.nights}")
    print(f"{'':24}{words[0]:>12}" + "".join(f"{word:>14}{'ratio':>8}" for word in words[1:]))
    for what, value in days["day 0"].items():
        later = [days[word][what] for word in words[1:]]
        print(f"{what:24}{value:>12,.1f}" + "".join(f"{one:>14,.1f}{one / value:>8.2f}" for one in later))
    print(f"\none nightly put of all items: {1e3 * statistics.median(puts):,.0f} ms (median)")


if __name__ == "__main__":
    main()
