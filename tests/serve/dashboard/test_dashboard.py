"""The dashboard and the example page in a real browser, served by a real server."""

import json
import math
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

import firstclick.serve
from firstclick.serve import Item
from tests.support import seam
from tests.support.browsing import PHONE, check_fits
from tests.support.programs import program
from tests.support.serving import a_service, add_key, serve

FILES = Path(firstclick.serve.__file__).parent / "dashboard"
HOSTILE = [
    '<img src=x onerror="alert(1)">',
    "<script>alert(1)</script>",
    "'\"><svg onload=alert(1)><b>bold</b>",
    "\u202eגלדת שוקולד",
    "W" * 300,
    "شاي بالنعناع " * 20,
]


def visit(service, slates, *, model="shop"):
    """So many slates; every other one is clicked, at its second place."""
    shop = seam.model(service, model)
    tokens = [shop.recommend().token for _ in range(slates)]
    shop.feedback_batch([(token, 1 if i % 2 else None) for i, token in enumerate(tokens)])


def clicks(service):
    return [event["click"] for event in seam.model(service).events() if event["kind"] == "feedback"]


def paths_of(visitor):
    return {urlsplit(url).path for url in visitor.requests if not url.startswith("data:")}


def has_accepted(page, n):
    expect(page.locator("#accepted")).to_have_text(str(n))


def is_live(page):
    expect(page.locator("#status")).to_have_attribute("data-state", "live")


def test_the_page_shows_a_model_and_loads_nothing_from_elsewhere(service, server, visitor):
    visit(service, 500)
    page = visitor.page
    page.goto(server.address)
    is_live(page)
    expect(page).to_have_title("shop · firstclick")
    expect(page.locator("#headline")).to_have_text("50\u00a0%")
    expect(page.locator("#spoken")).to_have_text("50\u00a0% of slates got a click")
    expect(page.locator("#against-words")).to_contain_text("1.0 times the clicks of its own first 200 slates")
    has_accepted(page, 500)
    expect(page.get_by_role("img", name=re.compile("500 slates, 250 with a click"))).to_be_visible()
    assert page.locator("#clickthrough-chart .curve").count() >= 1
    for rows, n in (
        ("#best-items > li", 3), ("#estimates-list > li", 4), ("#recent-list > li", 8),
        ("#recent-list > li:first-child .clicked", 1), ("#replicas > li", 1),
    ):  # fmt: skip
        expect(page.locator(rows)).to_have_count(n)
    expect(page.locator("#positions-list > li .value")).to_have_text(["0", "250", "0"])
    expect(page.locator("#exploring-share")).to_have_text(re.compile(r"^[\d.]+\s%$"))
    expect(page.locator("#facts")).to_contain_text("cascade-lin-ts, slates of 3")
    page.fill("#search", "esPR")
    expect(page.locator("#estimates-list .name")).to_have_text(["Espresso"])

    page.goto(f"{server.address}/ui/example.html#shop")
    expect(page.locator("#slots button")).to_have_count(3)
    for _ in range(2):
        page.goto(f"{server.address}/ui/api")
        expect(page.locator(".route").first).to_be_visible()
    assert all(url.startswith((server.address, "data:")) for url in visitor.requests)
    # No file is missing, and there is none that no page asks for.
    names = {path.name for path in FILES.iterdir() if path.suffix in (".html", ".css", ".js")}
    files = {f"/ui/{name}" for name in names - {"page.html", "api.html"}} | {"/", "/ui/api"}
    assert {path for path in paths_of(visitor) if not path.startswith("/v1/")} - {"/openapi.json"} == files
    # A file that has not changed is not sent again.
    metrics = httpx.get(f"{server.address}/metrics").text
    assert 'firstclick_requests_total{code="304",method="GET",route="/ui/api.js"} 1.0' in metrics


MARK = """() => {
    window.marked = ['#headline', '#best-items > li', '#estimates-list > li', 'figure svg', '#facts dd']
        .map(what => document.querySelector(what));
    window.scrollTo(0, 400);
}"""


def test_numbers_grow_in_place_and_the_page_goes_on_after_a_restart(tmp_path, visitor):
    page = visitor.page
    with a_service(tmp_path) as service, serve(service) as server:
        visit(service, 20)
        page.goto(server.address)
        has_accepted(page, 20)
        page.evaluate(MARK)
        for n, total in ((10, 30), (7, 37)):
            visit(service, n)
            has_accepted(page, total)
        expect(page.locator("#clickthrough-words")).to_contain_text("In all 37 slates, 18 with a click")
        assert page.evaluate("marked.length === 5 && marked.every(node => node.isConnected)")
        assert page.evaluate("scrollY") == 400
    expect(page.locator("#away")).to_be_visible()
    expect(page.locator("#away")).to_contain_text("Server away, trying again")
    expect(page.locator("#away")).to_contain_text("What you see is from before")
    has_accepted(page, 37)
    port = int(server.address.rpartition(":")[2])
    with a_service(tmp_path) as service, serve(service, port=port):
        visit(service, 22)
        is_live(page)
        expect(page.locator("#away")).to_be_hidden()
        expect(page.locator("#clickthrough-words")).to_contain_text("In all 59 slates")
        assert page.evaluate("marked[0].isConnected")
    visitor.forgive("net::ERR_")


def test_a_trial_is_answered_in_words_first(service, server, visitor):
    # Clicks follow who decided, so that the policy is better; who is in which arm is drawn anew each time.
    shop = seam.model(service)
    shop.set_baseline(["cake", "tea", 7, "espresso"], max_loss=1.0)
    page = visitor.page
    page.goto(server.address)
    expect(page.locator("#trial")).to_be_hidden()
    expect(page.locator("#floor-hint")).to_contain_text("firstclick trial start shop")
    shop.start_trial({"policy": 0.5, "baseline": 0.5})
    for _ in range(10):
        slates = [shop.recommend(unit=unit) for unit in range(200)]
        clicked = [slate.reasons[0] == "policy" or place % 4 == 0 for place, slate in enumerate(slates)]
        answers = [(slate.token, 0 if hit else None) for slate, hit in zip(slates, clicked, strict=True)]
        shop.feedback_batch(answers)
    trial = page.locator("#trial")
    expect(trial.locator(".answer[data-kind=better] strong")).to_have_text("Better")
    expect(trial.locator(".verdict")).to_contain_text("more clicks per page than baseline")
    expect(trial.get_by_role("img", name=re.compile("all 2,000 pages: \\+"))).to_be_visible()
    expect(trial.locator(".interval.up")).to_have_count(1)
    expect(page.locator("#trial-arms > tr")).to_have_count(2)
    expect(page.locator("#trial-arms > tr").last).to_contain_text(re.compile(r"^baseline50\s%"))
    expect(page.locator("#trial-checks")).to_contain_text("The shares are as planned")
    expect(page.locator("#against-words")).to_contain_text(
        re.compile(r"^\d+\.\d times the clicks of your list")
    )
    expect(page.locator("#clickthrough-chart .label.start")).to_have_text(re.compile(r"^list \d"))
    expect(page.locator("#floor-parts")).to_contain_text("your list, held out")
    expect(page.locator("#floor-hint")).to_be_hidden()
    expect(page.locator("#recent-list .of-list").first).to_be_visible()
    page.get_by_text("The difference as a table").click()
    expect(page.locator("#trial-table")).to_contain_text("policy, 2,000 pages")
    shop.stop_trial(show="baseline")
    expect(page.locator("#trial-stopped")).to_have_text(
        "Stopped by hand. Your list decides all slates since."
    )
    for width in (320, 700):
        page.set_viewport_size({"width": width, "height": 740})
        check_fits(page)


def test_names_are_text_whatever_is_in_them(service, server, visitor):
    items = [Item(f"{i}{name}"[:256], name, name, np.array([1.0, 0.1 * i])) for i, name in enumerate(HOSTILE)]
    service.create("hostile", policy="cascade-lin-ts", k=len(items), items=items, seed=1)
    visit(service, 300, model="hostile")
    page = visitor.page
    page.set_viewport_size(PHONE)
    page.goto(f"{server.address}/#hostile")
    for name in HOSTILE:
        expect(page.locator("#estimates-list").get_by_text(name, exact=True).first).to_be_attached()
    for text, n in ((HOSTILE[0], 1), (HOSTILE[0] * 2, 0), ("", len(HOSTILE))):
        page.fill("#search", text)
        expect(page.locator("#estimates-list > li")).to_have_count(n)
        expect(page.locator("#estimates-none")).to_be_visible(visible=n == 0)
    has_names_as_text(page)
    page.goto(f"{server.address}/ui/example.html#hostile")
    has_names_as_text(page)
    ours = ("/ui/", "/v1/models/hostile/")
    strange = [path for path in paths_of(visitor) - {"/", "/v1/models"} if not path.startswith(ours)]
    assert not strange


def has_names_as_text(page):
    shown = page.locator("#best-items bdi, #recent-list bdi, #slots :is(bdi, small)")
    expect(shown.first).to_be_attached()
    assert set(shown.all_text_contents()) - {""} == set(HOSTILE)
    assert page.locator("main :is(img, script, b, svg[onload])").count() == 0
    # A name that runs from right to left does not turn around what is beside it.
    directions = shown.evaluate_all("nodes => nodes.map(node => getComputedStyle(node).unicodeBidi)")
    assert set(directions) == {"isolate"}
    check_fits(page)


@pytest.mark.long
def test_a_server_with_keys_is_shown_to_who_has_one(service, server, visitor):
    reader, of_page = add_key(service, "read"), add_key(service, "page")
    visit(service, 20)
    page = visitor.page
    page.goto(server.address)
    expect(page.locator("#ask-key")).to_be_visible()
    expect(page.locator("#panels")).to_be_hidden()
    expect(page.locator("#key-refused")).to_be_hidden()
    for key in ("fc_wrong", "no key\u2026", of_page):
        visitor.enter_key(key)
        expect(page.locator("#key-refused")).to_be_visible()
    page.reload()  # a key that may not read does not take the form away
    expect(page.locator("#key-refused")).to_contain_text("this key's role is 'page'")
    visitor.enter_key(reader)
    has_accepted(page, 20)
    page.reload()
    has_accepted(page, 20)
    # It is in no place where others may see it: not on the page, not in an address, and in this tab only.
    assert reader not in page.content()
    assert not any(reader in url for url in visitor.requests)
    other = page.context.new_page()
    other.goto(server.address)
    expect(other.locator("#ask-key")).to_be_visible()
    page.click("#forget-key")
    expect(page.locator("#ask-key")).to_be_visible()
    expect(page.locator("#panels")).to_be_hidden()
    assert page.evaluate("sessionStorage.length") == 0
    visitor.forgive("401", "403")


@pytest.mark.long
def test_the_model_is_chosen_by_a_list_or_by_the_address(service, server, visitor):
    service.create("tea-room", policy="random", k=2, items=[Item(n, n, "", None) for n in "abc"], seed=1)
    visit(service, 20)
    visit(service, 30, model="tea-room")
    page = visitor.page
    page.goto(server.address)
    expect(page.locator("#picker")).to_have_value("shop")
    has_accepted(page, 20)
    page.get_by_label("Model").select_option("tea-room")
    expect(page).to_have_url(f"{server.address}/#tea-room")
    has_accepted(page, 30)
    expect(page.locator("#estimates-words")).to_contain_text("no opinion")
    expect(page.locator("#best-words")).to_contain_text("draws slates by chance")
    page.goto(f"{server.address}/#nosuch")
    expect(page.locator("#no-model")).to_be_visible()
    expect(page.locator("#no-model")).to_contain_text("no model named “nosuch”")
    expect(page.locator("#panels")).to_be_hidden()
    page.go_back()
    has_accepted(page, 30)


@pytest.mark.long
def test_a_phone_needs_no_sideways_scroll_and_a_dark_room_no_lamp(service, server, visitor):
    items = [Item(n, n, "", None) for n in "abc"]
    service.create("unvisited", policy="cascade-ts", k=3, items=items, seed=1)
    visit(service, 500)
    page = visitor.page
    page.emulate_media(color_scheme="dark")
    for width in (320, 360, 620, 1000):
        page.set_viewport_size({"width": width, "height": 740})
        for model, panel in (("shop", "#learning"), ("unvisited", "#first-calls")):
            page.goto(f"{server.address}/#{model}")
            expect(page.locator(panel)).to_be_visible()
            check_fits(page)

    def brightness(what):
        colour = page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    assert brightness("backgroundColor") < 150 < 600 < brightness("color")
    page.get_by_role("button", name="Change to light").click()
    assert brightness("color") < 150 < 600 < brightness("backgroundColor")
    page.reload()
    is_live(page)
    assert brightness("color") < 150 < 600 < brightness("backgroundColor")


@pytest.mark.long
@pytest.mark.parametrize("keyed", [False, True], ids=["open", "with keys"])
def test_the_calls_that_an_unvisited_model_offers_work(service, server, visitor, keyed):
    program("curl")
    page, environment = visitor.page, os.environ | {"NO_PROXY": "127.0.0.1"}
    page.goto(server.address)
    if keyed:
        environment["FIRSTCLICK_KEY"] = add_key(service, "write")
        visitor.enter_key(environment["FIRSTCLICK_KEY"])
        expect(page.locator("#call-recommend")).to_contain_text("$FIRSTCLICK_KEY")
        visitor.forgive("401")
    expect(page.locator("#first-calls")).to_be_visible()
    expect(page.locator("#learning")).to_be_hidden()

    def call(text):
        done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, check=True)
        return json.loads(done.stdout)

    token = call(page.inner_text("#call-recommend"))["token"]
    receipt = call(page.inner_text("#call-feedback").replace("TOKEN", token))
    assert receipt == {"status": "accepted", "seq": 2}
    expect(page.locator("#learning")).to_be_visible()
    expect(page.locator("#first-calls")).to_be_hidden()
    has_accepted(page, 1)


# The example page


def mark_slate(page):
    page.locator("#slots li").first.evaluate("node => { node.dataset.old = '' }")


def has_next_slate(page):
    """Another slate than the one that was marked; until it is there no click counts."""
    expect(page.locator("#slots [data-old]")).to_have_count(0)
    expect(page.locator("#slots button")).to_have_count(3)


def answer(page, what):
    mark_slate(page)
    page.locator(what).click()
    has_next_slate(page)


def test_the_example_page_sends_the_click_and_the_lack_of_one(service, server, visitor):
    page = visitor.page
    page.goto(f"{server.address}/ui/example.html#shop")
    expect(page.locator("#slots button")).to_have_count(3)
    for what, event in (("#slots li:nth-child(3) button", 2), ("#others", 3)):
        answer(page, what)
        expect(page.locator("#said")).to_contain_text(f"Kept as event {event} (accepted)")
    assert clicks(service) == [2, None]
    # Leaving without a click is reported too, and the next page shows it.
    expect(page.locator("#seen")).to_have_text("Seen: 3 of 3.")
    page.get_by_role("link", name="Dashboard").click()
    has_accepted(page, 3)
    assert clicks(service) == [2, None, None]
    # A slate that was left is not shown again as if it were open. The browser keeps no pages that were left
    # while Playwright drives it, so that it brings one back is played here.
    page.go_back()
    expect(page.locator("#seen")).to_have_text("Seen: 3 of 3.")
    mark_slate(page)
    with page.expect_response("**/feedback"):
        page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    has_next_slate(page)
    answer(page, "#slots li:nth-child(1) button")
    expect(page.locator("#said")).to_contain_text("Kept as event 6 (accepted)")
    assert clicks(service) == [2, None, None, None, 0]


def test_the_example_page_shows_the_first_model_unless_another_is_named(service, server, visitor):
    page = visitor.page
    for fragment, words in (("", ""), ("#", ""), ("#100%", "100%"), ("#nope", "nope")):
        page.goto("about:blank")
        page.goto(f"{server.address}/ui/example.html{fragment}")
        if words:
            expect(page.locator("#said")).to_contain_text(words)
        else:
            expect(page.locator("#slots button")).to_have_count(3)
            expect(page.locator("#model")).to_have_text("shop")
    add_key(service, "read")
    for fragment in ("", "#shop"):
        page.goto("about:blank")
        page.goto(f"{server.address}/ui/example.html{fragment}")
        expect(page.locator("#said")).to_contain_text("This example is for servers without keys")
        expect(page.locator("#others")).to_be_hidden()
    visitor.forgive("404", "401")


@pytest.mark.long
def test_intervals_and_steps_are_computed_right(server, visitor):
    page = visitor.page
    page.goto(server.address)

    def numbers(call):
        return page.evaluate(f"import('/ui/numbers.js').then((numbers) => {call})")

    assert numbers("numbers.wilson(0, 0)") == {"rate": None, "low": 0, "high": 1}
    for clicks, slates in ((231, 1000), (0, 10), (10, 10), (1, 3), (5_000_000, 10_000_000)):
        interval = numbers(f"numbers.wilson({clicks}, {slates})")
        for end in (interval["low"], interval["high"]):
            # Wilson's ends are where the share seen is 1.96 standard errors away.
            distance = (clicks / slates - end) ** 2
            assert distance == pytest.approx(1.959964**2 * end * (1 - end) / slates, abs=1e-12)
    times = numbers("numbers.timesAsMany({slates: 1000, clicks: 231}, {slates: 1000, clicks: 512})")
    spread = math.exp(1.959964 * math.sqrt(1 / 231 + 1 / 512 - 2 / 1000))
    assert times["low"] == pytest.approx(512 / 231 / spread)
    assert times["high"] == pytest.approx(512 / 231 * spread)
    assert numbers("numbers.timesAsMany({slates: 10, clicks: 0}, {slates: 10, clicks: 3})") is None
    assert numbers("[0.512, 0, 0.0423, 0.00423, 1, null].map((share) => numbers.percent(share))") == [
        "51\u00a0%", "0\u00a0%", "4.2\u00a0%", "0.42\u00a0%", "100\u00a0%", "–",
    ]  # fmt: skip
    assert numbers("[0.38, -0.004, 0, 14.1].map((share) => numbers.signed(share))") == [
        "+38\u00a0%", "−0.40\u00a0%", "0\u00a0%", "+1,410\u00a0%",
    ]  # fmt: skip
    assert numbers("numbers.percent(0.2046, 1)") == "20.5\u00a0%"
    assert numbers("numbers.roundSteps(0.61)") == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert numbers("numbers.roundSteps(0.03)") == pytest.approx([0, 0.01, 0.02, 0.03])
    for seconds in (5, 230, 240):
        buckets = [
            {"start": 100.0 + i, "width": 1.0, "slates": i % 7, "clicks": i % 3} for i in range(seconds)
        ]
        points = numbers(f"numbers.gather({json.dumps(buckets)})")
        assert len(points) <= 61
        for what in ("slates", "clicks"):
            assert sum(point[what] for point in points) == sum(bucket[what] for bucket in buckets)
