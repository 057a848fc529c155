"""A shop that asks a server what to show, and tells it what was clicked.

Start a server in one terminal, and this in another:

    firstclick serve --demo                         # or your own items: --catalog items.csv
    python examples/shop.py http://127.0.0.1:8000 cafe

The customers here prefer whatever is longest in name: not even the server can know that beforehand.
"""

import sys

import numpy as np

from firstclick.client.client import Client
from firstclick.wire.errors import Refused

VISITS = 50


def first_clicked(items: list[str | int], customer: np.random.Generator) -> int | None:
    """The position of the first item that attracts the customer, or None."""
    for position, item in enumerate(items):
        if customer.random() < min(0.5, 0.03 * len(str(item))):
            return position
    return None


def main(address: str, model: str) -> None:
    customer = np.random.default_rng()
    with Client(address, model=model) as shop:  # keeps its connections: make one, use it everywhere
        clicks = 0
        for _ in range(VISITS):
            shown = shop.recommend()
            click = first_clicked(shown.items, customer)
            # Sent again by itself when no answer comes; the token counts once however often it arrives.
            shop.feedback(shown, click)
            clicks += click is not None
        print(f"{clicks} of {VISITS} visits ended with a click; the last page showed {shown.items}")

        # Nightly jobs send what they have gathered in one go. Each entry has its own outcome.
        pages = [shop.recommend() for _ in range(3)]
        for outcome in shop.feedback_batch([(page, None) for page in pages]):
            print("refused:" if isinstance(outcome, Refused) else "in the log:", outcome)

        told = shop.describe()
        print(f"{told['name']}: {told['slates']} slates and {told['clicks']} clicks so far")


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
