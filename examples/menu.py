"""A menu of three drinks that learns what its guests like: `python examples/menu.py`.

The ranker knows two things about each drink (how strong, how sweet) and hears only which drink a
guest took first. The guests' taste is written below, where the ranker cannot see it.
"""

import numpy as np

from firstclick import Catalog, Ranker

DRINKS = {  # a constant, strength, sweetness
    "espresso": (1.0, 1.0, 0.0),
    "filter coffee": (1.0, 0.7, 0.1),
    "cappuccino": (1.0, 0.5, 0.4),
    "black tea": (1.0, 0.4, 0.1),
    "chai": (1.0, 0.3, 0.8),
    "cocoa": (1.0, 0.0, 1.0),
    "lemonade": (1.0, 0.0, 0.9),
    "water": (1.0, 0.0, 0.0),
}
TASTE = np.array([0.05, 0.15, 0.45])  # sweet-toothed guests


def first_taken(items: tuple[str, ...], guest: np.random.Generator) -> int | None:
    """The position of the first drink that attracts the guest, or None."""
    for position, item in enumerate(items):
        if guest.random() < TASTE @ DRINKS[item]:
            return position
    return None


def main() -> None:
    ranker = Ranker(Catalog(list(DRINKS), list(DRINKS.values())), k=3, policy="cascade-lin-ts", seed=1)
    guest = np.random.default_rng(1)
    served = 0
    for number in range(1, 2001):
        menu = ranker.recommend()
        taken = first_taken(menu.items, guest)
        ranker.learn(menu, click=taken)
        served += taken is not None
        if number in (1, 10, 100, 500, 1000, 2000):
            print(f"guest {number:5}   {served / number:4.0%} took something   {', '.join(menu.items)}")


if __name__ == "__main__":
    main()
