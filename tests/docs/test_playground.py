"""The playground: its policies give the slates of the Python ones, and its page works from a folder."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playground_items import cafe_items

from firstclick.testing import Driver

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

SCRIPTS = Path(__file__).parents[2] / "docs" / "assets" / "playground"
K, STEPS = 4, 2000
WITHOUT = "cascade-mixed without features"
# The names on the page, and the policies that they stand for.
TWINS = {
    "cascade-mixed": "cascade-mixed",
    WITHOUT: "cascade-mixed",
    "cascade-lin-ts": "cascade-lin-ts",
    "cascade-lin-ucb": "cascade-lin-ucb",
    "cascade-ts": "cascade-ts",
    "cascade-ucb1": "cascade-ucb1:start=first",
    "random": "random",
}
REPLAY = """({ name, features, key, k, log }) => {
  const policy = POLICIES[name](features);
  const slates = log.map(([slate, click], step) => {
    const own = policy.recommend(mix(BigInt(key), BigInt(step)), k);
    policy.learn(slate, click);
    return own;
  });
  return { slates, estimates: policy.estimates() };
}"""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright
    from screenshot import ARGUMENTS, chromium

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def scripts(browser: "Browser") -> "Page":
    """An empty page that has the policies."""
    page = browser.new_page()
    for name in ("items.js", "policies.js"):
        page.add_script_tag(path=SCRIPTS / name)
    return page


def cafe_features() -> NDArray[np.float64]:
    return np.array([item["features"] for item in cafe_items()])


def played(driver: Driver, attractions: NDArray[np.float64]) -> list[tuple[list[int], int | None]]:
    """Slates and clicks of a crowd that clicks the first item that attracts."""
    draw, log = np.random.default_rng(7), []
    for step in range(STEPS):
        slate = driver.recommend(step)
        attracted = np.flatnonzero(draw.random(K) < attractions[slate])
        click = int(attracted[0]) if len(attracted) else None
        driver.learn(slate, click)
        log.append((slate, click))
    return log


def compare(
    scripts: "Page", name: str, features: NDArray[np.float64], attractions: NDArray[np.float64]
) -> None:
    """Play the policy in Python, then in the browser with the same key and clicks: slates and estimates."""
    driver = Driver(TWINS[name], features[:, :0] if name == WITHOUT else features, k=K, seed=3)
    log = played(driver, attractions)
    assert sum(click is not None for _, click in log) > 100
    asked = {"name": name, "features": features.tolist(), "key": str(driver._key), "k": K, "log": log}
    found: dict[str, Any] = scripts.evaluate(REPLAY, asked)
    differ = [step for step in range(STEPS) if found["slates"][step] != log[step][0]]
    assert differ == []
    held = driver.estimate(range(len(features)))
    if found["estimates"] is None:
        assert np.isnan(held).all()
    else:
        ours = [found["estimates"]["means"], found["estimates"]["deviations"]]
        np.testing.assert_allclose(ours, held, rtol=1e-9, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("name", list(TWINS))
def test_slates_equal_those_of_python(scripts: "Page", name: str) -> None:
    features = cafe_features()
    compare(scripts, name, features, np.clip(np.random.default_rng(5).normal(0.1, 0.1, 60), 0.01, 0.4))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["features explain all", "one feature", "two values", "one star"])
def test_slates_of_the_default_equal_in_other_worlds(scripts: "Page", kind: str) -> None:
    draw = np.random.default_rng(11)
    features, attractions = draw.normal(size=(40, 3)) * [2.0, 0.5, 0.1], np.full(40, 0.004)
    if kind == "features explain all":
        attractions = np.clip(0.3 + 0.15 * features[:, 0], 0, 1)
    if kind == "one feature":
        attractions = np.where(features[:, 0] > 3, 0.9, 0.004)
    if kind == "two values":
        features[:, 1:] = (draw.random((40, 2)) < [0.5, 0.1]) * [1.0, 3.0]
        attractions = 0.02 + 0.1 * features[:, 1] + 0.1 * features[:, 2]
    if kind == "one star":
        attractions[17] = 0.6
    for name in ("cascade-mixed", WITHOUT):
        compare(scripts, name, features, attractions)


@pytest.mark.long
def test_every_policy_of_the_page_is_compared_with_its_twin(scripts: "Page") -> None:
    assert scripts.evaluate("Object.keys(POLICIES)") == list(TWINS)


@pytest.fixture
def page(browser: "Browser", site: Path) -> "Iterator[Page]":
    """The page of the site, opened from its folder. At the end: no error, and no request elsewhere."""
    errors: list[str] = []
    asked: list[str] = []
    opened = browser.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(told(message)) if message.type == "error" else None)
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto((site / "playground.html").as_uri())
    yield opened
    opened.close()
    # The theme asks for sitemap.xml on every page, which a browser refuses to pages from a folder.
    assert [text for text in errors if "sitemap.xml" not in text] == []
    assert [url for url in asked if not url.startswith("file:")] == []


def told(message: "ConsoleMessage") -> str:
    return f"{message.location['url']}: {message.text}"


def panel(page: "Page", letter: str) -> "Locator":
    return page.locator(f"[data-panel={letter}]")


def counts(page: "Page", letter: str) -> tuple[int, int]:
    """Clicks and pages."""
    words = panel(page, letter).locator("[data-part=counts]").inner_text().replace(",", "").split()
    return int(words[0]), int(words[3])


@pytest.mark.long
def test_a_crowd_teaches_both_policies(page: "Page") -> None:
    for letter in "AB":
        assert panel(page, letter).locator(".pg-name").count() == K
    page.click("#pg-step")
    assert counts(page, "A")[1] == counts(page, "B")[1] == 1
    page.select_option("#pg-speed", "1000")
    page.click("#pg-play")
    page.wait_for_function("Number(document.querySelector('#pg').dataset.pages) >= 400")
    page.click("#pg-play")
    assert page.inner_text("#pg-play") == "Play"
    rates = re.search(r"A, cascade-mixed: (\d+) after .*best slate: (\d+)", summary(page))
    assert rates is not None
    assert 0.8 * int(rates[2]) <= int(rates[1]) <= int(rates[2])
    page.click("#pg-reset")
    assert counts(page, "A") == (0, 0)
    page.select_option("#pg-k", "6")
    assert panel(page, "B").locator(".pg-name").count() == 6


def summary(page: "Page") -> str:
    return page.get_attribute("#pg-curves", "aria-label") or ""


@pytest.mark.long
def test_your_clicks_teach_the_panel_that_you_click(page: "Page") -> None:
    page.select_option("#pg-who", "you")
    assert page.is_disabled("#pg-play")
    shown = panel(page, "A")
    coffees = []
    for _ in range(60):
        groups = shown.locator(".pg-group").all_inner_texts()
        coffees.append(groups.count("coffee"))
        if "coffee" in groups:
            shown.locator(".pg-slate button").nth(groups.index("coffee")).click()
        else:
            shown.locator("[data-part=nothing]").click()
    assert counts(page, "A") == (sum(found > 0 for found in coffees), 60)
    assert counts(page, "B") == (0, 0)
    assert sum(coffees[:10]) < 20 < 30 < sum(coffees[-10:])


@pytest.mark.long
def test_a_keyboard_is_enough(page: "Page") -> None:
    page.focus("#pg-step")
    page.keyboard.press("Enter")
    assert counts(page, "A")[1] == 1
    page.select_option("#pg-who", "you")
    panel(page, "B").locator(".pg-slate button").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Space")
    assert counts(page, "B") == (2, 2)
