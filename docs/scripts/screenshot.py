"""Take docs/images/dashboard.png: the dashboard of `firstclick serve --demo` after its first minute.

    python docs/scripts/screenshot.py [--dark] [--phone] [FILE]

Needs playwright (a development tool of this repository) and Chromium; FIRSTCLICK_CHROMIUM names its file.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import FloatRect, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
SLATES = 1800  # thirty a second for a minute
PATIENCE = 300  # seconds
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
COLOURS = 256


@contextmanager
def demo() -> Iterator[str]:
    """The address of a demo of our own."""
    command = [sys.executable, "-m", "firstclick", "serve", "--demo", "--port", "0", "--seed", "1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if found := re.search(r"http://[\d.]+:\d+", line):
                yield found[0]
                return
        raise SystemExit("the demo did not start; try firstclick serve --demo")
    finally:
        server.terminate()
        server.communicate()


def wait_for_slates(page: Page) -> None:
    """Until so many visitors have answered; the page is the one that counts."""
    deadline = time.monotonic() + PATIENCE
    while int(re.sub(r"\D", "", page.inner_text("#accepted")) or 0) < SLATES:
        if time.monotonic() > deadline:
            raise SystemExit(f"the demo had no {SLATES} slates after {PATIENCE} seconds")
        page.wait_for_timeout(100)


def chromium() -> str:
    """The file of the browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("FIRSTCLICK_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise SystemExit("there is no chromium here; install it, or name its file by FIRSTCLICK_CHROMIUM")
    return path


def in_few_colours(file: Path) -> None:
    """A page has few colours: with a palette of them the file is a third as large and looks the same."""
    Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of the demo's dashboard.")
    parser.add_argument("file", nargs="?", type=Path, default=IMAGES / "dashboard.png")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--phone", action="store_true", help="as wide as a phone, and whole")
    wanted = parser.parse_args()
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(
            viewport={"width": 360 if wanted.phone else 1280, "height": 860},
            color_scheme="dark" if wanted.dark else "light",
            reduced_motion="reduce",
        )
        page.goto(address)
        wait_for_slates(page)
        # For a second an item that is new in the best slate is lit.
        page.wait_for_selector("#best-items:not(:has(.new))")
        # Down to the end of a row of panels: nothing is cut through.
        end = page.locator("#trial").bounding_box()
        assert end is not None
        clip = FloatRect(x=0.0, y=0.0, width=1280.0, height=end["y"] + end["height"] + 16)
        picture = (
            page.screenshot(full_page=True) if wanted.phone else page.screenshot(full_page=True, clip=clip)
        )
        browser.close()
    wanted.file.write_bytes(picture)
    in_few_colours(wanted.file)


if __name__ == "__main__":
    main()
