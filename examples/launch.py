"""Switch it on in a shop that has a list already: `python examples/launch.py`.

A made-up shop has 1,500 products and a hand-made list of six. The policy starts beside that list: the floor
promises that clicks never fall below 95 % of the list's. A trial keeps 10 % of the customers on the list and
answers whether the policy is better. Customers come back; their ids are the units of the trial.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from firstclick.catalog.item import Item
from firstclick.serve.service import Service, open_service
from firstclick.worlds.shop import Shop

PAGES = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
LIST = [40, 12, 90, 33, 150, 21]  # what the shop shows today: the places of its products by attraction


def serve(service: Service, pages: int, attraction: dict[str, float], customers: np.random.Generator) -> int:
    """Show so many pages, report what was clicked; how many had a click."""
    clicked, reports = 0, []
    for page in range(pages):
        customer = f"customer {int(customers.pareto(1.5) * 2000)}"  # some come often, most come once
        slate = service.recommend("shop", unit=customer)
        hits = [place for place, item in enumerate(slate.items) if customers.random() < attraction[item]]
        clicked += bool(hits)
        reports.append((slate, hits[0] if hits else None))
        if len(reports) == 10 or page == pages - 1:  # as they come in a shop: some pages later
            service.feedback_batch("shop", reports)
            reports = []
    return clicked


def main(store: Path) -> None:
    world = Shop().build(seed=3)
    best_first = np.argsort(-world.attractions)
    names = [f"product-{row}" for row in range(world.n_items)]
    attraction = dict(zip(names, world.attractions.tolist(), strict=True))
    items = [Item(name, features=row) for name, row in zip(names, world.features, strict=True)]
    baseline = [names[best_first[place]] for place in LIST]
    customers = np.random.default_rng(1)
    with open_service(str(store)) as service:
        service.create("shop", policy="cascade-mixed", k=6, items=items, baseline=baseline, seed=1)
        service.start_trial("shop")  # 90 % policy, 10 % baseline
        for part in range(4):
            clicked = serve(service, PAGES // 4, attraction, customers)
            first, last = part * PAGES // 4, (part + 1) * PAGES // 4
            print(f"pages {first:6,} to {last:6,}: {clicked / (last - first):.1%} with a click")
        print()
        print(service.trial_report("shop").text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "shop.db")
