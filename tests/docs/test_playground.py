"""The playground: its policies give the slates of the Python ones, and its page works from a folder."""

from pathlib import Path

import numpy as np
import pytest
from generate import items_script

from firstclick.testing import Driver

SCRIPTS = Path(__file__).parents[2] / "docs" / "assets" / "playground"
K, STEPS = 4, 2000
# The names on the page, and the policies that they stand for.
TWINS = {"cascade-lin-ts": "cascade-lin-ts", "cascade-ucb1": "cascade-ucb1:start=first", "random": "random"}
REPLAY = """({ name, key, k, log }) => {
  const policy = new POLICIES[name](ITEMS.map((item) => item.features));
  const slates = log.map(([slate, click], step) => {
    const own = policy.recommend(mix(BigInt(key), BigInt(step)), k);
    policy.learn(slate, click);
    return own;
  });
  return { slates, estimates: policy.estimates() };
}"""


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright
    from screenshot import ARGUMENTS, chromium

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.mark.long
@pytest.mark.parametrize("name", TWINS)
def test_slates_equal_those_of_python(browser, name):
    page = browser.new_page()
    page.add_script_tag(content=items_script())
    page.add_script_tag(path=SCRIPTS / "policies.js")
    features = np.array(page.evaluate("ITEMS.map((item) => item.features)"))
    attractions = np.clip(np.random.default_rng(5).normal(0.1, 0.1, len(features)), 0.01, 0.4)
    driver, draw, log = Driver(TWINS[name], features, k=K, seed=3), np.random.default_rng(7), []
    for step in range(STEPS):
        slate = driver.recommend(step)
        attracted = np.flatnonzero(draw.random(K) < attractions[slate])
        click = int(attracted[0]) if len(attracted) else None
        driver.learn(slate, click)
        log.append((slate, click))
    assert sum(click is not None for _, click in log) > 100
    replay = page.evaluate(REPLAY, {"name": name, "key": str(driver._key), "k": K, "log": log})
    assert [step for step in range(STEPS) if replay["slates"][step] != log[step][0]] == []
    if replay["estimates"] is not None:
        estimates = [replay["estimates"]["means"], replay["estimates"]["deviations"]]
        np.testing.assert_allclose(estimates, driver.estimate(range(len(features))), rtol=1e-9, atol=1e-10)


@pytest.mark.long
def test_both_policies_learn_on_the_page_of_the_site(browser, site):
    errors, requests = [], []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "playground.html").as_uri())
    page.focus("#pg-step")
    page.keyboard.press("Enter")
    assert page.locator("#pg-slate-A li").count() == page.locator("#pg-slate-B li").count() == K
    assert page.inner_text("#pg-counts-B").endswith(" 1 impressions")
    page.select_option("#pg-speed", "500")
    page.click("#pg-play")
    page.wait_for_function("Number(document.querySelector('#pg').dataset.impressions) >= 3000")
    page.click("#pg-play")
    linear, best = (int(page.inner_text(f"#pg-{part}").split()[-1][:-1]) for part in ("legend-A", "best"))
    assert 0.8 * best <= linear <= best
    page.select_option("#pg-policy-B", "random")
    assert page.inner_text("#pg-counts-A") == "0 clicks, 0 impressions"
    assert errors == []
    assert [url for url in requests if not url.startswith("file:")] == []
