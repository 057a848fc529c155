"""Take pictures of the dashboard with a trial in each of its states, from made-up clicks.

    python docs/scripts/trial_screens.py [--state won] [--dark] [--phone] [--whole] [FOLDER]
    python docs/scripts/trial_screens.py --picture       # docs/images/trial.png

Needs playwright (a development tool of this repository) and Chromium; FIRSTCLICK_CHROMIUM names its file.
"""

import argparse
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from playwright.sync_api import FloatRect, Page, sync_playwright
from screenshot import ARGUMENTS, IMAGES, chromium, in_few_colours

from firstclick.serve import no_clicks
from firstclick.serve.config import Settings
from firstclick.serve.demo import demo_catalog, demo_list
from firstclick.serve.http.server import Server
from firstclick.serve.service import Service, open_service

SEED = 1
K = 6
AT_ONCE = 40
SECONDS = 60.0  # between two batches
LIST_RATE = 0.2
LAST_PAGES = 4_000
RETURNING = 1500  # the mean number of a unit: small ones come again and again
LISTED = ("floor", "holdout", "baseline")


class Made(NamedTuple):
    """What a trial is made of: pages, how often slates of the policy and of the list are clicked, and how it
    is set up."""

    pages: int
    rate: float
    list_rate: float = LIST_RATE
    max_loss: float = 0.05
    trial: bool = True
    stop_if_worse: bool = False
    stop: str = ""
    arms: dict[str, float] | None = None


STATES = {
    "none": Made(3_000, 0.29, trial=False),
    "early": Made(120, 0.25),
    "undecided": Made(3_000, 0.22),
    "won": Made(16_000, 0.29),
    # Without a floor: under one the policy would not decide enough slates to lose by much.
    "lost": Made(8_000, 0.1, max_loss=1.0, arms={"policy": 0.5, "baseline": 0.5}),
    "stopped": Made(8_000, 0.1, max_loss=1.0, stop_if_worse=True, arms={"policy": 0.5, "baseline": 0.5}),
    "ended": Made(16_000, 0.29, stop="policy"),
    "arms": Made(8_000, 0.29, arms={"policy": 0.4, "policy:cascade-ucb1": 0.4, "baseline": 0.2}),
    "equal": Made(16_000, 0.8, list_rate=0.8, max_loss=1.0, arms={"policy": 0.5, "baseline": 0.5}),
}
FIVE = ("early", "undecided", "won", "lost", "stopped")


class Clock:
    """In a made-up log minutes pass between two batches: to all who ask, it is as long ago."""

    def __init__(self) -> None:
        self.behind = 0.0
        self._now = time.time
        time.time = self

    def __call__(self) -> float:
        return self._now() - self.behind


clock = Clock()


@contextmanager
def made(made: Made) -> Iterator[Service]:
    """A café whose visitors click by chance: by the list's rate on its slates, else by another one."""
    clock.behind = made.pages / AT_ONCE * SECONDS
    cafe, draw = demo_catalog(), np.random.default_rng(SEED)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_service(f"{folder}/cafe.db") as service,
    ):
        service.create(
            "cafe", policy="cascade-ts", k=K, items=cafe.items, seed=SEED, baseline=demo_list(),
            max_loss=made.max_loss,
        )  # fmt: skip
        if made.trial:
            service.start_trial("cafe", made.arms, stop_if_worse=made.stop_if_worse, last_pages=LAST_PAGES)
        for batch in range(0, made.pages, AT_ONCE):
            clock.behind = (made.pages - batch) / AT_ONCE * SECONDS
            slates = [
                service.recommend("cafe", unit=int(unit)) for unit in draw.exponential(RETURNING, AT_ONCE)
            ]
            rates = [made.list_rate if slate.reasons[0] in LISTED else made.rate for slate in slates]
            clicks = np.where(draw.random(len(slates)) < rates, draw.integers(0, K, len(slates)), -1)
            answers = [
                (slate.token, None if click < 0 else int(click))
                for slate, click in zip(slates, clicks, strict=True)
            ]
            service.feedback_batch("cafe", answers)
            service.stop_if_worse(service.model("cafe"))
        clock.behind = 0.0
        if made.stop:
            service.stop_trial("cafe", show=made.stop)
        yield service


def take(page: Page, address: str, file: Path, *, card: bool = False, whole: bool = False) -> None:
    """The page, down to the end of the row with the trial, or the trial alone."""
    page.goto(address)
    page.wait_for_selector("#status[data-state=live]")
    page.wait_for_timeout(300)
    ends = [page.locator(f"#{one}").bounding_box() for one in ("trial", "floor")]
    found = [end for end in ends if end is not None]
    if card:
        top = min(end["y"] for end in found) - 12
        bottom = max(end["y"] + end["height"] for end in found) + 12
        left = min(end["x"] for end in found) - 12
        right = max(end["x"] + end["width"] for end in found) + 12
        clip = FloatRect(x=left, y=top, width=right - left, height=bottom - top)
        picture = page.screenshot(full_page=True, clip=clip)
    else:
        picture = page.screenshot(full_page=True)
        if not whole:
            height = max(end["y"] + end["height"] for end in found) + 16
            width = page.viewport_size["width"] if page.viewport_size else 0
            clip = FloatRect(x=0.0, y=0.0, width=width, height=height)
            picture = page.screenshot(full_page=True, clip=clip)
    file.write_bytes(picture)
    in_few_colours(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take pictures of trials.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("trial-screens"))
    parser.add_argument("--state", action="append", choices=[*STATES], help="early to stopped, if not said")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--phone", action="store_true", help="as wide as a phone")
    parser.add_argument("--whole", action="store_true", help="the whole page")
    parser.add_argument("--picture", action="store_true", help="only the picture of the documentation")
    wanted = parser.parse_args()
    no_clicks.COUNT_SECONDS = 1.0  # By a clock that nobody sets: a minute would be too long.
    logging.getLogger("firstclick.serve").setLevel(logging.ERROR)  # It says that the clock jumps.
    if not wanted.picture:
        wanted.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(
            viewport={"width": 360 if wanted.phone else 1280, "height": 860},
            color_scheme="dark" if wanted.dark else "light",
            reduced_motion="reduce",
        )
        for state in ["won"] if wanted.picture else wanted.state or FIVE:
            file = IMAGES / "trial.png" if wanted.picture else wanted.folder / f"{state}.png"
            with made(STATES[state]) as service, Server(service, Settings(port=0)) as server:
                take(page, server.address, file, card=wanted.picture, whole=wanted.whole)
        browser.close()


if __name__ == "__main__":
    main()
