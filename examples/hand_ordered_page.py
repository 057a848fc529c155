"""A page with a hand-ordered list, and its log: `python examples/hand_ordered_page.py`.

A made-up café shows two of six drinks. Most pages show the list that somebody ordered; 5 % show two drinks drawn
at random, so that the log can answer for other lists. Writes the list, the catalog and two weeks of logs:
`list.csv`, `items.csv`, `week1.jsonl`, `week2.jsonl`. docs/evaluate_story.md uses them.
"""

import json
from pathlib import Path

import numpy as np

PAGES = 100_000  # a week
EXPLORE = 0.05
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


def page(guests: np.random.Generator) -> dict[str, object]:
    """One page: what it showed, and what the guest clicked. Guests look from the top and click once."""
    explored = guests.random() < EXPLORE
    slate = guests.permutation(DRINKS)[: len(HAND_LIST)].tolist() if explored else HAND_LIST
    attracted = [place for place, drink in enumerate(slate) if guests.random() < ATTRACTION[drink]]
    return {
        "items": slate, "click": attracted[0] if attracted else None, "propensities": propensities(slate)
    }  # fmt: skip


def main() -> None:
    guests = np.random.default_rng(7)
    for week in ("week1.jsonl", "week2.jsonl"):
        with Path(week).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(page(guests)) + "\n" for _ in range(PAGES))
    Path("items.csv").write_text("id\n" + "\n".join(DRINKS) + "\n", encoding="utf-8")
    Path("list.csv").write_text("id\n" + "\n".join(HAND_LIST) + "\n", encoding="utf-8")
    print(f"wrote week1.jsonl, week2.jsonl ({PAGES:,} pages each), items.csv, list.csv")


if __name__ == "__main__":
    main()
