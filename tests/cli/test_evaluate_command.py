"""`firstclick evaluate describe` and `run`, on good logs and on bad ones."""

import json
import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.serve import Item, open_service

CSV = "ranking,pos,who\ntea|milk|jam,1,q1\nmilk|tea|jam,3,q2\njam|tea|milk,,q1\njam|jam|tea,1,q1\n"
ITEMS = ["tea", "coffee", "cocoa", "milk"]
ATTRACTION = np.array([0.5, 0.3, 0.15, 0.1])
BEST = "list:tea,coffee"


def test_file_is_described_in_words_json_and_a_page(run, folder):
    (folder / "clicks.csv").write_text(CSV)
    describe = ("evaluate", "describe", "clicks.csv", "--column", "click=pos")
    seen = run(*describe, "--column", "segment=who")
    assert seen.code == 0
    assert seen.out.startswith("clicks.csv: 3 slates of up to 3 of 3 items\n")
    assert "  - 1 with an item twice (row 3)\n" in seen.out
    described = json.loads(run(*describe, "--json", "--page", "log.html").out)
    assert (described["slates"], described["clicks"]) == (3, 2)
    assert "with an item twice (row 3)" in (folder / "log.html").read_text()


def test_model_in_a_store_is_described(run, folder):
    with open_service("shop.db") as service:
        items = [Item("tea"), Item("bun"), Item(7), Item("pie")]
        service.create("shop", policy="random", k=2, items=items, seed=4)
        for click in (0, None, 1):
            service.feedback("shop", service.recommend("shop").token, click=click)
    seen = run("evaluate", "describe", "shop.db", "--model", "shop")
    assert seen.out.startswith("shop: 3 slates of up to 2 of 4 items\n")
    assert run("export", "shop", "--store", "shop.db", "--out", "shop.model").code == 0
    assert run("evaluate", "describe", "shop.model").out == seen.out
    assert run("evaluate", "describe", "shop.model", "--log-option", "timed-out=not-reported").code == 0


def rows(n=1200, seed=1):
    """Slates of 2 of 4 items: cocoa and milk by hand, and 60% uniform ones."""
    draw = np.random.default_rng(seed)
    slates = list(permutations(range(4), 2))
    log = []
    for _ in range(n):
        slate = slates[draw.integers(12)] if draw.random() < 0.6 else (2, 3)
        clicks = [position for position, item in enumerate(slate) if draw.random() < ATTRACTION[item]][:1]
        same = np.cumprod([slate[0] == 2, slate[1] == 3])
        propensities = 0.6 / np.cumprod([4, 3]) + 0.4 * same
        items = [ITEMS[item] for item in slate]
        log.append({"items": items, "clicks": clicks, "propensities": propensities.tolist()})
    return log


@pytest.fixture
def evaluate(run):
    """`evaluate(rows, "random", "--json")`: `firstclick evaluate run` of these rows and this policy."""

    def evaluate(log, policy, *more):
        Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log))
        return run("evaluate", "run", "log.jsonl", "--policy", policy, *more)

    return evaluate


def test_json_repeats_and_has_no_number_without_support(evaluate):
    seen = evaluate(rows(), BEST, "--policy", "list:tea,wine", "--json")
    assert seen.code == 3
    page = json.loads(seen.out)
    best, strange = page["policies"]
    assert set(best) == set(strange)
    assert best["difference"]["low"] < best["difference"]["value"] < best["difference"]["high"]
    assert (strange["verdict"], strange["difference"], strange["value"]) == ("cannot say", None, None)
    assert (page["exit_code"], page["model_based"], page["seed"]) == (3, None, 0)
    assert evaluate(rows(), BEST, "--policy", "list:tea,wine", "--json").out == seen.out


def test_lists_longer_or_shorter_than_the_slates_are_reported(evaluate, folder):
    shorter = evaluate(rows(), "list:tea")
    assert shorter.code == 3
    assert "the list has 1 item and the log's slates up to 2" in shorter.out
    (folder / "order.csv").write_text("item\ntea\ncoffee\nmilk\n")
    longer = evaluate(rows(), "list:order.csv")
    assert longer.code == 0, longer.err
    assert "list:order.csv: the first 2 of its 3 items are judged: slates have no more" in longer.out


def test_saved_ranker_is_evaluated_as_greedy_and_as_sampled(evaluate):
    ranker = Ranker(Catalog(ITEMS), k=2, policy="cascade-ts", seed=1)
    for _ in range(20):
        slate = ranker.recommend()
        ranker.learn(slate, click=slate.items.index("tea") if "tea" in slate.items else None)
    ranker.save("ranker.npz")
    seen = evaluate(rows(), "greedy:ranker.npz", "--policy", "sample:ranker.npz")
    assert seen.code == 0, seen.out + seen.err
    assert seen.out.startswith("greedy:ranker.npz: +0.")
    assert "sample:ranker.npz: probabilities of 12 different slates by quadrature" in seen.out
    assert "judged: 1,200 slates of log.jsonl" in seen.out


def test_page_and_figure_hold_no_number_without_support(evaluate, folder):
    more = ("--policy", "random", "--page", "a.html", "--figure", "a.svg")
    seen = evaluate(rows(300), "list:tea,wine", *more)
    assert seen.code == 3
    page = (folder / "a.html").read_text()
    assert "firstclick evaluate run log.jsonl --policy list:tea,wine --policy random" in page
    row = re.search(r"<tr>\s*<th[^>]*>list:tea,wine.*?</tr>", page, re.DOTALL)
    assert not re.search(r"\d", re.sub(r"<[^>]*>", "", row[0]))
    assert (folder / "a.svg").read_text().count("cannot say") == 1


@pytest.mark.long
def test_store_is_evaluated_with_propensities_of_its_replay(run):
    with open_service("shop.db") as service:
        items = [Item(name) for name in ITEMS]
        service.create("shop", items=items, k=2, policy="cascade-ts", seed=1, explore=0.5)
        for number in range(400):
            service.feedback(
                "shop", service.recommend("shop").token, click=None if number % 3 else number % 2
            )
    of_shop = ("evaluate", "run", "shop.db", "--model", "shop", "--policy")
    seen = run(*of_shop, "random", "--policy", "sample:shop,event=50")
    assert "400 quadrature" in seen.out, seen.out + seen.err
    assert "one that learned" in seen.out
    assert "judged: 400 slates of shop" in seen.out
    late = run(*of_shop, "sample:shop,event=5000")
    assert (late.code, "event must be at most 401" in late.err) == (2, True)


def test_log_with_a_matrix_of_positions_is_answered_by_iips(evaluate, folder):
    log = [{"items": row["items"], "clicks": row["clicks"]} for row in rows()]
    cells = ("tea,0.15,0.15", "coffee,0.15,0.15", "cocoa,0.55,0.15", "milk,0.15,0.55")
    (folder / "places.csv").write_text("item,1,2\n" + "".join(f"{cell}\n" for cell in cells))
    seen = evaluate(log, BEST, "--log-option", "places=places.csv", "--json")
    (best,) = json.loads(seen.out)["policies"]
    assert (seen.code, best["estimator"][:4]) == (0, "IIPS"), seen.err + seen.out
