"""A menu for two kinds of guests, with a head start and a limit: `python examples/two_tastes.py`.

In the morning guests want it strong, in the evening sweet. The ranker is told the hour with each request,
begins from yesterday's slips, which count half, and shows at most two hot drinks. A guest may take several.
"""

import numpy as np

from firstclick import Catalog, Ranker

DRINKS = {  # a group; a constant, strength, sweetness
    "espresso": ("hot", (1.0, 1.0, 0.0)),
    "filter coffee": ("hot", (1.0, 0.7, 0.1)),
    "chai": ("hot", (1.0, 0.3, 0.8)),
    "cocoa": ("hot", (1.0, 0.0, 1.0)),
    "iced coffee": ("cold", (1.0, 0.8, 0.4)),
    "lemonade": ("cold", (1.0, 0.0, 0.9)),
    "water": ("cold", (1.0, 0.0, 0.0)),
    "drink of the day": ("cold", None),  # Nobody knows yet what it will be: taken for an average drink.
}
TASTES = {"morning": np.array([0.05, 0.6, 0.0]), "evening": np.array([0.05, 0.0, 0.6])}
CONTEXTS = {"morning": [1.0, 0.0], "evening": [0.0, 1.0]}


def taken(items: tuple[str, ...], taste: np.ndarray, guest: np.random.Generator) -> list[int]:
    """The positions of all drinks that the guest takes."""
    features = [DRINKS[item][1] or (1.0, 0.4, 0.4) for item in items]
    return [position for position, x in enumerate(features) if guest.random() < taste @ x]


def main() -> None:
    guest = np.random.default_rng(1)
    names, groups = list(DRINKS), [group for group, _ in DRINKS.values()]
    catalog = Catalog(names, [features for _, features in DRINKS.values()], groups=groups)
    ranker = Ranker(catalog, k=3, policy="context-lin-ts:context=2", seed=1)
    yesterday = []
    for hour in ("morning", "evening") * 30:
        items = tuple(guest.permutation(names)[:3].tolist())
        clicks = taken(items, TASTES[hour], guest)
        yesterday.append({"items": items, "clicks": clicks, "examined": 3, "context": CONTEXTS[hour]})
    print(f"{ranker.warm_start(yesterday, weight=0.5)} slips of yesterday were read")
    served = dict.fromkeys(TASTES, 0)
    for number in range(1, 601):
        hour = "morning" if number % 2 else "evening"
        menu = ranker.recommend(context=CONTEXTS[hour], at_most={"hot": 2})
        clicks = taken(menu.items, TASTES[hour], guest)
        ranker.learn(menu, clicks=clicks, examined=len(menu))  # They read the whole menu.
        served[hour] += len(clicks)
        if number in (1, 2, 599, 600):
            print(f"guest {number:4}   {hour}   {', '.join(menu.items)}")
    for hour, drinks in served.items():
        print(f"{drinks / 300:.2f} drinks a guest in the {hour}")


if __name__ == "__main__":
    main()
