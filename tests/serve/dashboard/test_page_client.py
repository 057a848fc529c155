"""firstclick.js on a shop's page, in a real browser, against a real server."""

import json
import re
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.sync_api import expect

from tests.support import seam
from tests.support.browsing import check_fits
from tests.support.serving import add_key, comes_to, serve

# Each item is most of the window: one is in sight at a time.
SHOP = """<!doctype html><title>A shop</title><body style="margin: 0"><div style="height: %(above)dpx"></div>
<div id="slate"></div><div style="height: 2000px"></div>%(extra)s
<script type="module">
import { FirstClick } from "%(server)s/ui/firstclick.js";
window.reports = [];
window.seen = [];
window.page = new FirstClick({ server: "%(server)s", model: "shop", %(options)s
  onreport: (report) => reports.push(report), onexamined: (examined) => seen.push(examined) });
window.tile = (item) => {
  const tile = document.createElement("div");
  tile.className = "item";
  tile.style.height = "700px";
  tile.textContent = item.name ?? item;
  return tile;
};
await page.show(document.querySelector("#slate"), tile);
</script>"""
TURN = """hidden => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


class Shop:
    """A page of the shop, on the server's own origin, and what the model learns from it."""

    def __init__(self, visitor, server, service):
        self.visitor, self.page, self.server, self.service = visitor, visitor.page, server, service

    def html(self, *, above=0, options="", extra=""):
        return SHOP % {"above": above, "server": self.server.address, "options": options, "extra": extra}

    def open(self, page=None, **how):
        page = page or self.page
        self.answer("**/shop.html", body=self.html(**how), content_type="text/html", page=page)
        page.goto(f"{self.server.address}/shop.html")
        expect(page.locator(".item")).to_have_count(3)

    def answer(self, address, page=None, **answer):
        """Answer requests to this address in place of the server."""
        (page or self.page).route(address, lambda route: route.fulfill(**answer))

    def open_and_see(self):
        """Open the page and look at the first item."""
        self.open()
        self.sees(1)

    def leave(self):
        self.page.goto(f"{self.server.address}/ui/api")
        expect(self.page.locator(".route").first).to_be_visible()

    def click(self, position, **how):
        self.page.locator(".item").nth(position).click(**how)

    def scroll(self, to):
        self.page.evaluate(f"scrollTo(0, {to})")

    def sees(self, examined):
        self.page.wait_for_function(f"window.seen?.includes({examined})")

    def turn(self, *, hidden):
        """Put the tab into the background, or back before the visitor."""
        self.page.evaluate(TURN, hidden)

    def reports(self, *statuses):
        self.page.wait_for_function("n => reports.length >= n", arg=len(statuses))
        assert [report.get("status") for report in self.page.evaluate("reports")] == list(statuses)

    def learned(self):
        """The click and `examined` of all that the model has learned from."""
        events = seam.model(self.service).events()
        return [(event["click"], event["examined"]) for event in events if event["kind"] == "feedback"]

    def learns(self, *expected):
        comes_to(self.learned, list(expected))

    def unsent(self):
        """The number of reports that wait in the browser."""
        return self.page.evaluate(
            "Object.keys(localStorage).filter(key => key.startsWith('firstclick')).length"
        )

    def sent(self):
        """The number of reports that were sent."""
        return sum(url.endswith("/feedback") for url in self.visitor.requests)

    def mark_slate(self):
        self.page.locator(".item").first.evaluate("node => { node.dataset.old = '' }")

    def has_new_slate(self):
        expect(self.page.locator("[data-old]")).to_have_count(0)

    def token(self):
        """The token of a slate that no page shows."""
        return seam.model(self.service).recommend().token


@pytest.fixture
def shop(visitor, server, service):
    return Shop(visitor, server, service)


def test_the_first_click_is_learned_once(shop):
    shop.open()
    shop.sees(1)
    for position in (1, 0, 1):
        shop.click(position)
    shop.reports("accepted")
    # What is below the click was not rejected, so that it is not reported as examined.
    shop.learns((1, 2))
    assert shop.unsent() == 0
    # Nor does leaving add anything.
    shop.leave()
    assert shop.learned() == [(1, 2)]
    assert shop.sent() == 1


def test_a_report_whose_answer_was_lost_is_sent_again_and_counted_once(shop):
    bodies = []

    def lose_the_first(route):
        bodies.append(route.request.post_data)
        if len(bodies) == 1:
            assert route.fetch().status == 201  # the server has it, and the page never learns of it
            route.abort()
        else:
            route.continue_()

    shop.page.route("**/feedback", lose_the_first)
    shop.open()
    shop.click(0)
    shop.reports("waiting", "duplicate")
    assert bodies == bodies[:1] * 2
    assert shop.learned() == [(0, 1)]
    assert shop.unsent() == 0
    shop.visitor.forgive("net::ERR_FAILED")


def test_a_refusal_for_now_is_tried_again_when_the_server_allows(shop):
    times, refusals = [], [(429, {"Retry-After": "2"}), (500, {}), (503, {})]

    def refuse(route):
        times.append(time.monotonic())
        if len(times) <= len(refusals):
            code, headers = refusals[len(times) - 1]
            route.fulfill(status=code, headers=headers, json={})
        else:
            route.continue_()

    shop.page.route("**/feedback", refuse)
    shop.open()
    shop.click(0)
    shop.reports("waiting", "waiting", "waiting", "accepted")
    assert times[1] - times[0] >= 2.0
    assert shop.learned() == [(0, 1)]
    shop.visitor.forgive("429", "500", "503")


def test_a_refusal_of_the_report_is_final(shop):
    shop.open()
    codes = [404, 409, 410, 422]
    for code in codes:
        shop.answer("**/feedback", status=code, json={"error": {"message": "no"}})
        shop.click(0)
        shop.page.wait_for_function("code => reports.at(-1)?.code === code", arg=code)
        assert shop.unsent() == 0
        shop.page.evaluate("page.show(document.querySelector('#slate'), tile)")
    shop.page.wait_for_timeout(1000)  # the first wait is 750 ms at most
    assert shop.sent() == len(codes)
    shop.visitor.forgive(*map(str, codes))


def test_items_in_sight_are_examined_and_reported_on_leaving(shop):
    shop.open_and_see()
    # The third item alone shows nothing of the second, which was not in sight.
    shop.scroll(1400)
    shop.page.wait_for_function("seen.length === 2")
    assert shop.page.evaluate("seen") == [1, 1]
    shop.scroll(0)
    shop.leave()
    shop.learns((None, 1))
    shop.open_and_see()
    shop.scroll(700)
    shop.sees(2)
    shop.leave()
    shop.learns((None, 1), (None, 2))


def test_an_item_is_examined_after_a_moment(shop):
    page = shop.page
    page.clock.install()
    shop.open()
    page.wait_for_timeout(500)  # of real time; the page's clock stands still but for what follows
    page.clock.pause_at(time.time() + 3600)
    shop.sees(1)
    shop.scroll(700)
    page.wait_for_timeout(500)
    page.clock.run_for(250)
    shop.scroll(0)
    page.wait_for_timeout(500)
    page.clock.run_for(2000)
    assert page.evaluate("seen") == [1]


def test_a_slate_out_of_sight_is_not_reported(shop):
    shop.open(above=3000)
    shop.page.wait_for_timeout(600)
    shop.leave()
    assert (shop.learned(), shop.unsent(), shop.sent()) == ([], 0, 0)


def test_a_tab_in_the_background_waits_for_its_visitor(shop):
    shop.open_and_see()
    shop.turn(hidden=True)
    assert shop.unsent() == 1
    # Another tab, which has nothing in sight to report, leaves it alone for now.
    other = shop.page.context.new_page()
    shop.open(other, above=3000)
    other.close()
    assert shop.sent() == 0
    shop.turn(hidden=False)
    assert shop.unsent() == 0
    shop.click(0)
    shop.reports("accepted")
    assert shop.learned() == [(0, 1)]


@pytest.mark.long
def test_a_background_tab_that_never_comes_back_is_reported_by_the_next_page(shop):
    shop.open_and_see()
    shop.turn(hidden=True)
    shop.page.evaluate("""() => { for (const key of Object.keys(localStorage)) {
        const report = JSON.parse(localStorage[key]);
        localStorage[key] = JSON.stringify({...report, after: report.after - 31 * 60_000});
    } }""")
    shop.open(shop.page.context.new_page())
    shop.learns((None, 1))
    # The tab that comes back after all shows a new slate: a click on the old one could not count.
    shop.mark_slate()
    comes_to(shop.unsent, 0)
    shop.turn(hidden=False)
    shop.has_new_slate()
    shop.click(0)
    shop.reports("accepted")


@pytest.mark.long
def test_a_report_that_another_tab_is_sending_is_not_taken_back(shop):
    shop.open_and_see()
    shop.turn(hidden=True)
    # As another tab leaves it, while the answer is on its way.
    shop.page.evaluate("""() => { for (const key of Object.keys(localStorage))
        localStorage[key] = JSON.stringify({...JSON.parse(localStorage[key]), sending: true}); }""")
    shop.mark_slate()
    shop.turn(hidden=False)
    shop.has_new_slate()
    assert shop.unsent() == 1


def test_a_report_that_could_not_be_sent_is_sent_by_the_next_page(shop):
    shop.page.route("**/feedback", lambda route: route.abort())
    shop.open()
    shop.click(1)
    shop.page.wait_for_function("reports.length >= 1")
    assert shop.unsent() == 1
    shop.page.goto("about:blank")  # before the way is free: the page tries again soon
    shop.page.unroute("**/feedback")
    assert shop.learned() == []
    shop.open()
    shop.reports("accepted")
    assert shop.learned() == [(1, 2)]
    assert shop.unsent() == 0
    shop.visitor.forgive("net::ERR_FAILED")


@contextmanager
def shop_site():
    """The shop's own web server: one page. The browser must see that it is on this machine too."""

    class OnePage(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(site.html.encode())

        def log_message(self, *_):
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), OnePage) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield site
        site.shutdown()


@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_of_another_origin_needs_a_page_key_and_to_be_allowed(service, visitor, allowed):
    key, page = add_key(service, "page"), visitor.page
    with shop_site() as site:
        address = f"http://127.0.0.1:{site.server_port}"
        with serve(service, allow_origin=(address if allowed else "https://other.example",)) as server:
            shop = Shop(visitor, server, service)
            site.html = shop.html(options=f"key: '{key}',")
            page.goto(address)
            if not allowed:
                comes_to(lambda: any("CORS policy" in text for text in visitor.complaints), True)
                assert page.locator(".item").count() == 0
                visitor.complaints.clear()
                return
            shop.sees(1)
            page.goto("about:blank")
            shop.learns((None, 1))
            page.goto(address)
            shop.click(2)
            page.wait_for_function("reports.some(report => report.click === 2)")
            assert shop.learned() == [(None, 1), (2, 3)]


def test_slates_may_come_through_the_shops_own_server(shop):
    keys = []

    def recommend(route):
        keys.append(route.request.headers.get("authorization"))
        slate = seam.model(shop.service).recommend()
        items = [{"name": f"item {item}"} for item in slate.items]
        route.fulfill(json={"items": items, "token": slate.token})

    shop.page.route("**/own/slate", recommend)
    shop.open(options="recommend: '/own/slate', key: 'fc_secret_of_firstclick',")
    expect(shop.page.locator(".item").first).to_contain_text("item ")
    assert keys == [None]  # the key goes to firstclick alone
    assert not any(url.endswith("/recommend") for url in shop.visitor.requests)


# When firstclick is away


GUIDE = Path(__file__).parents[3] / "docs" / "service" / "page_client.md"


@pytest.mark.long
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("copied", [True, False])
def test_the_documented_page_has_a_list_to_show_when_firstclick_is_away(shop, up, copied):
    page, address = shop.page, shop.server.address
    (html,) = re.findall(r"```html\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    html = html.replace("https://firstclick.shop.example", address).replace("fc_...", "")
    if not copied:
        assert '"/firstclick.js"' in html
        html = html.replace('"/firstclick.js"', f'"{address}/ui/firstclick.js"')
    copy = httpx.get(f"{address}/ui/firstclick.js").content
    shop.answer("**/shop.html", body=html, content_type="text/html")
    shop.answer("**/firstclick.js", body=copy, content_type="text/javascript")
    if not up:
        page.route(re.compile("/(ui|v1)/"), lambda route: route.abort())
    page.goto(f"{address}/shop.html")
    expect(page.locator("#slate li")).to_have_count(3 if up else 2)
    if not up:
        expect(page.locator("#slate li")).to_have_text(["Espresso", "Tea"])
        shop.visitor.forgive("net::ERR_FAILED", "warning: ")  # the page logs why


LEAVE = """([tokens, url, age]) => tokens.forEach(token => {
    const body = {token, click: 0, examined: 1};
    const report = {url, body, since: Date.now() - age, after: 0, sending: true};
    localStorage.setItem('firstclick-report:' + token, JSON.stringify(report));
})"""


def leave_reports(shop, n, *, days=0):
    """Leave reports in the browser, as an earlier page of the shop does that could not send them."""
    shop.answer("**/earlier.html", body="", content_type="text/html")
    shop.page.goto(f"{shop.server.address}/earlier.html")
    url = f"{shop.server.address}/v1/models/shop/feedback"
    shop.page.evaluate(LEAVE, [[shop.token() for _ in range(n)], url, days * 24 * 3600_000])


def test_a_backlog_does_not_keep_the_next_slate_away(service, visitor):
    key = add_key(service, "page")
    with serve(service, page_requests_per_second=5) as server:
        shop = Shop(visitor, server, service)
        leave_reports(shop, 8)
        shop.open(options=f"key: '{key}',")
        calls = [url for url in visitor.requests if "/v1/" in url]
        assert calls[0].endswith("/recommend")
        assert len(calls) < 4
        # Slower than the limit, so that none is refused, and a slate or a click has room between them.
        shop.reports(*["accepted"] * 8)
    assert shop.unsent() == 0


@pytest.mark.long
def test_a_backlog_is_sent_by_a_page_without_a_slate(shop):
    leave_reports(shop, 1)
    shop.page.evaluate("""async () => {
        const { FirstClick } = await import('/ui/firstclick.js');
        window.page = new FirstClick({server: location.origin, model: 'shop'});
    }""")
    shop.learns((0, 1))
    comes_to(shop.unsent, 0)


@pytest.mark.long
def test_a_report_in_a_backlog_that_was_taken_back_is_not_sent(shop):
    leave_reports(shop, 2)
    shop.open()
    # As a tab that came back from the background does with its own; before the second one is read.
    shop.page.wait_for_function("reports.length === 1 && (localStorage.clear(), true)")
    shop.page.wait_for_timeout(600)
    assert len(shop.learned()) == 1


@pytest.mark.long
@pytest.mark.parametrize("code", [201, 403, 503])
def test_a_clock_that_was_set_right_does_not_lose_a_report(shop, code):
    if code != 201:
        shop.answer("**/feedback", status=code, json={})
    leave_reports(shop, 1, days=3)
    shop.open()
    # It is sent once, whatever its age: the server knows how old a token is. Then it is dropped.
    shop.page.wait_for_function("reports.length === 1")
    comes_to(shop.unsent, 0)
    assert shop.learned() == ([(0, 1)] if code == 201 else [])
    assert shop.sent() == 1
    shop.visitor.forgive(*{201: (), 403: ("403", "the key is refused"), 503: ("503",)}[code])


# Pages that change without being left


@pytest.mark.long
def test_a_container_taken_from_the_page_is_reported_and_forgotten(shop):
    shop.open_and_see()
    shop.page.evaluate("""async () => {
        document.querySelector('#slate').remove();
        const next = document.createElement('div');
        next.id = 'slate';
        document.body.prepend(next);
        await page.show(next, tile);
    }""")
    shop.learns((None, 1))
    assert shop.page.evaluate("page.slates.size") == 1
    shop.click(0)
    shop.learns((None, 1), (0, 1))
    # The last one, when the visitor goes to another tab.
    shop.page.evaluate("document.querySelector('#slate').remove()")
    shop.turn(hidden=True)
    assert shop.page.evaluate("page.slates.size") == 0
    assert shop.unsent() == 0


@pytest.mark.long
def test_a_container_that_is_not_in_the_page_yet_is_not_forgotten(shop):
    shop.open()
    shop.page.evaluate("""async () => {
        window.next = document.createElement('div');
        next.id = 'next';
        await page.show(next, tile);
        await page.show(document.querySelector('#slate'), tile);
        document.body.prepend(next);
    }""")
    shop.page.locator("#next .item").nth(0).click()
    # The slate before, if it was in sight long enough, is reported too.
    comes_to(lambda: shop.learned()[-1:], [(0, 1)])


# What is seen

COVERS = [
    "<div id=cover style='position: fixed; inset: 0; background: white'>We value your privacy</div>",
    "<style id=cover>#slate { opacity: 0 }</style>",
    "<style id=cover>.item { visibility: hidden }</style>",
]


@pytest.mark.parametrize("cover", COVERS, ids=["wall", "transparent", "hidden"])
def test_a_covered_item_is_not_seen_until_the_cover_is_gone(shop, cover):
    shop.open(extra=cover)
    shop.page.wait_for_timeout(800)
    assert shop.page.evaluate("seen") == []
    shop.page.evaluate("document.querySelector('#cover').remove()")
    shop.sees(1)
    shop.leave()
    shop.learns((None, 1))


DECORATIONS = [
    "#slate { opacity: 0.9; filter: saturate(1.2) } .item { transform: rotate(1deg) }",
    ".item { pointer-events: none }",
    "body::after { content: 'Chat'; position: fixed; right: 9px; bottom: 9px; padding: 90px }",
]


@pytest.mark.long
def test_an_item_that_is_decorated_or_touched_by_a_corner_is_seen(shop):
    for style in DECORATIONS:
        shop.open(extra=f"<style>{style}</style><div style='position: fixed; top: 0'>Menu</div>")
        shop.sees(1)


@pytest.mark.long
def test_an_item_without_a_box_of_its_own_is_seen_by_what_is_in_it(shop):
    shop.open_and_see()
    shop.page.evaluate("""() => {
        seen.length = 0;
        return page.show(document.querySelector('#slate'), (item) => {
            const row = document.createElement('div');
            row.style.display = 'contents';
            row.append(tile(item));
            return row;
        });
    }""")
    shop.sees(1)
    shop.click(0)
    shop.page.wait_for_function("reports.some(report => report.click === 0)")


# The shop's own code


@pytest.mark.long
def test_a_render_that_fails_leaves_the_old_slate_as_it_was(shop):
    shop.open_and_see()
    no_element = "TypeError: render must return an element, got [object {}]"
    for render, error in (
        ("() => { throw new Error('boom') }", "Error: boom"),
        ("(item) => '<li>' + item", no_element.format("String")),
        ("async (item) => tile(item)", no_element.format("Promise")),
        ("() => {}", no_element.format("Undefined")),
    ):
        code = f"page.show(document.querySelector('#slate'), {render}).then(() => 'shown', String)"
        assert shop.page.evaluate(code) == error
    shop.click(1)
    shop.reports("accepted")
    assert shop.learned() == [(1, 2)]


def test_callbacks_that_fail_break_nothing_else(shop):
    shop.open()
    shop.page.evaluate("""() => {
        page.onreport = ({status}) => {
            if (status !== 'waiting') throw new Error('onreport is broken');
        };
        page.onexamined = () => { throw new Error('onexamined is broken') };
        return page.show(document.querySelector('#slate'), tile);
    }""")
    shop.page.wait_for_timeout(600)
    shop.click(0)
    shop.page.wait_for_timeout(1000)  # the first wait is 750 ms at most
    # The slate before, if it was in sight long enough, is reported too. None is sent again.
    assert shop.learned()[-1] == (0, 1)
    assert shop.sent() == len(shop.learned())
    assert shop.unsent() == 0
    shop.visitor.forgive("onexamined is broken", "onreport is broken")


def test_the_middle_button_counts_on_a_link_alone(shop):
    shop.open()
    shop.click(0, button="middle")
    shop.page.evaluate("document.querySelectorAll('.item')[1].innerHTML = '<a href=/ui/api><b>Tea</b></a>'")
    with shop.page.context.expect_page():
        shop.page.locator(".item b").click(button="middle")
    shop.reports("accepted")
    assert shop.learned() == [(1, 2)]


# The viewer of the HTTP interface


def test_the_viewer_lists_every_documented_route(server, visitor):
    page = visitor.page
    page.goto(f"{server.address}/ui/api")
    paths = httpx.get(f"{server.address}/openapi.json").json()["paths"]
    ids = {f"{method}{path}" for path, operations in paths.items() for method in operations}
    expect(page.locator(".route")).to_have_count(len(ids))
    assert set(page.locator(".route").evaluate_all("nodes => nodes.map(node => node.id)")) == ids
    feedback = page.locator("[id='post/v1/models/{model}/feedback']")
    feedback.locator("summary").click()
    fields = feedback.locator("section", has_text="Body, application/json").locator(".field")
    expect(fields).to_have_count(4)
    expect(fields.nth(0)).to_contain_text("token required")
    expect(fields.nth(3)).to_contain_text(re.compile("examined.*integer from 0 or null"))
    call = f"curl -s -X POST '{server.address}/v1/models/default/feed"
    expect(feedback.locator("pre")).to_contain_text(call)
    page.fill("#search", "POST warm-start")
    expect(page.locator(".route:visible")).to_have_count(1)
    page.fill("#search", "")
    page.evaluate("document.querySelectorAll('.route').forEach(node => { node.open = true })")
    expect(page.locator("pre")).to_have_count(len(ids))
    for width in (320, 700, 1280):
        page.set_viewport_size({"width": width, "height": 740})
        check_fits(page)


def test_the_viewer_asks_for_a_key(service, server, visitor):
    reader, of_page, wrong = add_key(service, "read"), add_key(service, "page"), "fc_wrong"
    page = visitor.page
    page.goto(f"{server.address}/ui/api")
    expect(page.locator("#ask-key")).to_be_visible()
    expect(page.locator("#openapi")).to_be_hidden()  # a plain link sends no key
    for key in (wrong, of_page, reader):
        expect(page.locator("#document")).to_be_hidden()
        with page.expect_response("**/openapi.json"):
            visitor.enter_key(key)
        expect(page.locator("#key-refused")).to_be_visible(visible=key != reader)
        page.reload()  # a wrong key does not take the form away
        expect(page.locator("#key-refused")).to_be_visible(visible=key != reader)
    expect(page.locator(".route").first).to_be_visible()
    page.locator(".route summary").first.click()
    expect(page.locator("pre").first).to_contain_text("$FIRSTCLICK_KEY")
    assert reader not in page.content()
    with page.expect_download() as download:
        page.locator("#openapi").click()
    assert download.value.suggested_filename == "openapi.json"
    assert json.loads(Path(download.value.path()).read_bytes())["openapi"] == "3.1.0"
    visitor.forgive("401", "403")
