"""A page with a hand-ordered list, and its log: `python examples/hand_ordered_page.py`.

A made-up café shows two of six drinks. Most pages show the list that somebody ordered; 5 % show two drinks
drawn at random, so that the log can answer for other lists. Writes the list, the catalog and two weeks of
logs: `list.csv`, `items.csv`, `week1.jsonl`, `week2.jsonl`. With an address it sends guests to a server:
`python examples/hand_ordered_page.py http://127.0.0.1:8000`. docs/guide/log_to_launch.md uses both.
"""

import json
import sys
from pathlib import Path

import numpy as np

from firstclick.client import Client

PAGES = 100_000  # a week
EXPLORE = 0.05
GUESTS = 3_000
HAND_LIST = ["espresso", "cocoa"]
# How likely a guest who looks at a drink clicks it. The café does not know this.
ATTRACTION = {
    "espresso": 0.11, "cocoa": 0.09, "chai": 0.18, "matcha": 0.26, "flat-white": 0.21, "iced-tea": 0.05,
}  # fmt: skip
DRINKS = list(ATTRACTION)


def value(slate: list[str]) -> float:
    """The probability that a guest clicks: the truth that estimates are compared with."""
    return float(1 - np.prod([1 - ATTRACTION[drink] for drink in slate]))


def propensities(slate: list[str]) -> list[float]:
    """The probability that this page shows the first drink, and both drinks, of the slate."""
    drawn, found = 1.0, []
    for place in range(len(slate)):
        drawn /= len(DRINKS) - place
        listed = slate[: place + 1] == HAND_LIST[: place + 1]
        found.append((1 - EXPLORE) * listed + EXPLORE * drawn)
    return found


def first_click(slate: list[str], guests: np.random.Generator) -> int | None:
    """What the next guest clicks: guests look from the top and click the first drink that attracts them."""
    attracted = [place for place, drink in enumerate(slate) if guests.random() < ATTRACTION[drink]]
    return attracted[0] if attracted else None


def page(guests: np.random.Generator) -> dict[str, object]:
    """One page of the log."""
    explored = guests.random() < EXPLORE
    slate = guests.permutation(DRINKS)[: len(HAND_LIST)].tolist() if explored else HAND_LIST
    return {"items": slate, "click": first_click(slate, guests), "propensities": propensities(slate)}


def write_logs(guests: np.random.Generator) -> None:
    for week in ("week1.jsonl", "week2.jsonl"):
        with Path(week).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(page(guests)) + "\n" for _ in range(PAGES))
    Path("items.csv").write_text("id\n" + "\n".join(DRINKS) + "\n", encoding="utf-8")
    Path("list.csv").write_text("id\n" + "\n".join(HAND_LIST) + "\n", encoding="utf-8")
    print(f"wrote week1.jsonl and week2.jsonl ({PAGES:,} pages each), items.csv and list.csv")


def visit(server: str, guests: np.random.Generator) -> None:
    """Send guests to the model `cafe` of a server."""
    slates = []
    with Client(server, "cafe") as cafe:
        for number in range(GUESTS):
            shown = cafe.recommend(unit=f"guest {number}")
            slates.append(list(shown.items))
            cafe.feedback(shown, click=first_click(slates[-1], guests))
    late = np.mean([value(slate) for slate in slates[-1000:]])
    print(f"{GUESTS:,} guests; in truth the last 1,000 slates are worth {late:.3f} clicks per page")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        visit(sys.argv[1], np.random.default_rng(9))
    else:
        write_logs(np.random.default_rng(7))
