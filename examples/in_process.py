"""A menu that learns within one program, and forgets nothing: `python examples/in_process.py`.

The service without HTTP: every click is on the disk, and counted once, when `feedback` returns. What the
guests like is written below, where the learner cannot see it. Stop the program wherever you want; with the
same file it goes on where it was. (Here the file is a temporary one, so that the example leaves nothing.)
"""

import tempfile
from pathlib import Path

import numpy as np

from firstclick.catalog.item import Item
from firstclick.serve.service import open_service

DRINKS = {  # strength, sweetness
    "espresso": (1.0, 0.0),
    "filter coffee": (0.7, 0.1),
    "cappuccino": (0.5, 0.4),
    "black tea": (0.4, 0.1),
    "chai": (0.3, 0.8),
    "cocoa": (0.0, 1.0),
    "lemonade": (0.0, 0.9),
    "water": (0.0, 0.0),
}
TASTE = np.array([0.15, 0.45])  # sweet-toothed guests


def first_taken(items: list[str], guest: np.random.Generator) -> int | None:
    """The position of the first drink that attracts the guest, or None."""
    for position, item in enumerate(items):
        if guest.random() < 0.05 + TASTE @ DRINKS[item]:
            return position
    return None


def main(store: Path) -> None:
    guest = np.random.default_rng(1)
    items = [Item(drink, features=np.array(known)) for drink, known in DRINKS.items()]
    with open_service(str(store)) as service:
        service.create("menu", policy="cascade-lin-ts", k=3, items=items, seed=1)
        for _ in range(150):
            shown = service.recommend("menu")  # writes nothing
            taken = first_taken(shown.items, guest)
            service.feedback("menu", shown.token, taken)
        # A client that is not sure whether it was heard sends the same again: still one click.
        print("sent again:", service.feedback("menu", shown.token, taken).status)
    with open_service(str(store)) as service:  # as after a restart, or a crash
        told = service.model("menu").describe()
        print(f"after a restart: {told['slates']} guests, {told['clicks']} took something")
        print("shown now:", ", ".join(service.recommend("menu").items))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "menu.db")
