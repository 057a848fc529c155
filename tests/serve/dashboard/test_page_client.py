"""firstclick.js on a shop's page, in a real browser, against a real server."""

import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from playwright.sync_api import expect

from firstclick.serve.config import Settings
from firstclick.serve.http.auth import new_key
from firstclick.serve.http.openapi import document
from firstclick.serve.http.server import Server
from firstclick.serve.http.static import static_files
from tests.support.browsing import AT_LAST, SIDEWAYS

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


def open_shop(page, server, *, above=0, options="", extra=""):
    """A page of the shop, on the server's own origin."""
    address = f"{server.address}/shop.html"
    html = SHOP % {"above": above, "server": server.address, "options": options, "extra": extra}
    page.route(address, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(address)
    expect(page.locator(".item")).to_have_count(3)


def heard(service):
    """Click and `examined` of all that the model has learned from."""
    return [(said.click, said.examined) for _, said in service.model("shop").recent]


def comes_to(told, wanted):
    end = time.monotonic() + AT_LAST
    while told() != wanted and time.monotonic() < end:
        time.sleep(0.02)
    assert told() == wanted


def has_reported(page, *statuses):
    page.wait_for_function("n => reports.length >= n", arg=len(statuses))
    assert [report.get("status") for report in page.evaluate("reports")] == list(statuses)


def unsent(page):
    return int(page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('firstclick')).length"))


def test_the_first_click_is_learned_once(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.locator(".item").nth(1).click()
    page.locator(".item").nth(0).click()
    page.locator(".item").nth(1).click()
    has_reported(page, "accepted")
    # What stood below the click was not rejected, so that it is not said to be examined.
    assert heard(service) == [(1, 2)]
    assert unsent(page) == 0
    # Nor does leaving add anything.
    page.goto(f"{server.address}/ui/api")
    expect(page.locator(".route").first).to_be_visible()
    assert heard(service) == [(1, 2)]
    assert sum(url.endswith("/feedback") for url in visitor.requests) == 1


def test_a_lost_answer_is_asked_for_again_and_counted_once(service, server, visitor):
    page = visitor.page
    bodies = []

    def lose_the_first(route):
        bodies.append(route.request.post_data)
        if len(bodies) == 1:
            assert route.fetch().status == 201  # the server has it, and the page never hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/feedback", lose_the_first)
    open_shop(page, server)
    page.locator(".item").nth(0).click()
    has_reported(page, "waiting", "duplicate")
    assert len(bodies) == 2
    assert len(set(bodies)) == 1
    assert heard(service) == [(0, 1)]
    assert unsent(page) == 0
    visitor.forgive("net::ERR_FAILED")


@pytest.mark.parametrize("code", [429, 500, 503])
def test_not_now_is_tried_again_when_the_server_says(service, server, visitor, code):
    page = visitor.page
    times = []

    def refuse_the_first(route):
        times.append(time.monotonic())
        if len(times) == 1:
            route.fulfill(status=code, headers={"Retry-After": "2"}, json={})
        else:
            route.continue_()

    page.route("**/feedback", refuse_the_first)
    open_shop(page, server)
    page.locator(".item").nth(0).click()
    has_reported(page, "waiting", "accepted")
    assert times[1] - times[0] >= 2.0
    assert heard(service) == [(0, 1)]
    visitor.forgive(str(code))


@pytest.mark.parametrize("code", [404, 409, 410, 422])
def test_a_refusal_is_final(server, visitor, code):
    page = visitor.page
    page.route("**/feedback", lambda route: route.fulfill(status=code, json={"error": {"message": "no"}}))
    open_shop(page, server)
    page.locator(".item").nth(0).click()
    page.wait_for_function("reports.length === 1")
    assert page.evaluate("reports[0].code") == code
    assert unsent(page) == 0
    page.wait_for_timeout(1000)  # the first wait is 750 ms at most
    assert sum(url.endswith("/feedback") for url in visitor.requests) == 1
    visitor.forgive(str(code))


def test_what_was_seen_is_measured_by_scrolling_and_told_on_leaving(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    # The third item alone says nothing of the second, which nobody has looked at.
    page.evaluate("scrollTo(0, 1400)")
    page.wait_for_function("seen.length === 2")
    assert page.evaluate("seen") == [1, 1]
    page.evaluate("scrollTo(0, 0)")
    page.goto(f"{server.address}/ui/api")
    comes_to(lambda: heard(service), [(None, 1)])
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate("scrollTo(0, 700)")
    page.wait_for_function("seen.includes(2)")
    page.goto(f"{server.address}/ui/api")
    comes_to(lambda: heard(service), [(None, 1), (None, 2)])


def test_a_look_takes_a_moment(server, visitor):
    page = visitor.page
    page.clock.install()
    open_shop(page, server)
    page.wait_for_timeout(500)  # of the world; the page's clock stands still but for what follows
    page.clock.pause_at(time.time() + 3600)
    page.wait_for_function("seen.includes(1)")
    page.evaluate("scrollTo(0, 700)")
    page.wait_for_timeout(500)
    page.clock.run_for(250)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    page.clock.run_for(2000)
    assert page.evaluate("seen") == [1]


def test_a_slate_that_nobody_saw_is_not_reported(service, server, visitor):
    page = visitor.page
    open_shop(page, server, above=3000)
    page.wait_for_timeout(600)
    page.goto(f"{server.address}/ui/api")
    expect(page.locator(".route").first).to_be_visible()
    assert heard(service) == []
    assert unsent(page) == 0
    assert not any(url.endswith("/feedback") for url in visitor.requests)


TURN = """hidden => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_tab_in_the_background_waits_for_its_visitor(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate(TURN, True)
    assert unsent(page) == 1
    # Another tab, which has nothing in sight to report, leaves it alone for now.
    other = page.context.new_page()
    open_shop(other, server, above=3000)
    other.close()
    assert not any(url.endswith("/feedback") for url in visitor.requests)
    page.evaluate(TURN, False)
    assert unsent(page) == 0
    page.locator(".item").nth(0).click()
    has_reported(page, "accepted")
    assert heard(service)[-1] == (0, 1)
    assert (0, 1) in heard(service)


@pytest.mark.long
def test_a_background_tab_that_never_comes_back_is_reported_by_the_next_page(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate(TURN, True)
    page.evaluate("""() => { for (const key of Object.keys(localStorage)) {
        const report = JSON.parse(localStorage[key]);
        localStorage[key] = JSON.stringify({...report, after: report.after - 31 * 60_000});
    } }""")
    other = page.context.new_page()
    open_shop(other, server)
    comes_to(lambda: heard(service), [(None, 1)])
    # The tab that comes back after all shows a new slate: a click on the old one could not count.
    page.locator(".item").first.evaluate("node => { node.dataset.old = '' }")
    comes_to(lambda: unsent(page), 0)
    page.evaluate(TURN, False)
    expect(page.locator("[data-old]")).to_have_count(0)
    page.locator(".item").nth(0).click()
    has_reported(page, "accepted")


@pytest.mark.long
def test_a_report_that_another_tab_is_sending_is_not_taken_back(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate(TURN, True)
    # As another tab leaves it, while the answer is on its way.
    page.evaluate("""() => { for (const key of Object.keys(localStorage))
        localStorage[key] = JSON.stringify({...JSON.parse(localStorage[key]), sending: true}); }""")
    page.locator(".item").first.evaluate("node => { node.dataset.old = '' }")
    page.evaluate(TURN, False)
    expect(page.locator("[data-old]")).to_have_count(0)  # a new slate: a click on the old one could not count
    assert unsent(page) == 1


def test_what_could_not_be_sent_is_sent_by_the_next_page(service, server, visitor):
    page = visitor.page
    page.route("**/feedback", lambda route: route.abort())
    open_shop(page, server)
    page.locator(".item").nth(1).click()
    page.wait_for_function("reports.length >= 1")
    assert unsent(page) == 1
    page.goto("about:blank")  # before the way is free: the page tries again soon
    page.unroute("**/feedback")
    assert heard(service) == []
    open_shop(page, server)
    has_reported(page, "accepted")
    assert heard(service) == [(1, 2)]
    assert unsent(page) == 0
    visitor.forgive("net::ERR_FAILED")


class ShopSite(BaseHTTPRequestHandler):
    """The shop's own web server: one page."""

    html = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.html)

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_of_another_origin_with_a_page_key(service, visitor, allowed):
    page = visitor.page
    key, digest = new_key()
    service.store.add_api_key("web", "page", digest, 0.0)
    service.maintenance.reload_api_keys()
    # A server of its own, not a route: the browser must see that it is on this machine too.
    with ThreadingHTTPServer(("127.0.0.1", 0), ShopSite) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        shop = f"http://127.0.0.1:{site.server_port}"
        origins = (shop if allowed else "https://other.example",)
        with Server(service, Settings(port=0, allow_origin=origins)) as server:
            options = {"above": 0, "server": server.address, "options": f"key: '{key}',", "extra": ""}
            ShopSite.html = (SHOP % options).encode()
            page.goto(shop)
            if not allowed:
                comes_to(lambda: any("CORS policy" in one for one in visitor.complaints), True)
                assert page.locator(".item").count() == 0
                visitor.complaints.clear()
                site.shutdown()
                return
            page.wait_for_function("window.seen?.includes(1)")
            page.goto("about:blank")
            comes_to(lambda: heard(service), [(None, 1)])
            page.goto(shop)
            page.locator(".item").nth(2).click()
            page.wait_for_function("reports.some(report => report.click === 2)")
            assert heard(service) == [(None, 1), (2, 3)]
        site.shutdown()


def test_slates_through_the_shops_own_server(service, server, visitor):
    page, sent = visitor.page, []

    def recommend(route):
        sent.append(route.request.headers.get("authorization"))
        slate = service.recommend("shop")
        route.fulfill(
            json={"items": [{"name": f"item {item}"} for item in slate.items], "token": slate.token}
        )

    page.route("**/own/slate", recommend)
    open_shop(page, server, options="recommend: '/own/slate', key: 'fc_secret_of_firstclick',")
    expect(page.locator(".item").first).to_contain_text("item ")
    assert sent == [None]  # the key goes to firstclick alone
    assert not any(url.endswith("/recommend") for url in visitor.requests)


# When firstclick is away


GUIDE = Path(__file__).parents[3] / "docs" / "service" / "page_client.md"


@pytest.mark.long
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("copied", [True, False])
def test_the_documented_page_has_a_list_to_show_when_firstclick_is_away(server, visitor, up, copied):
    page = visitor.page
    (html,) = re.findall(r"```html\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    html = html.replace("https://firstclick.shop.example", server.address).replace("fc_...", "")
    if not copied:
        assert '"/firstclick.js"' in html
        html = html.replace('"/firstclick.js"', f'"{server.address}/ui/firstclick.js"')
    page.route("**/shop.html", lambda route: route.fulfill(body=html, content_type="text/html"))
    copy = static_files()["/ui/firstclick.js"].content
    page.route("**/firstclick.js", lambda route: route.fulfill(body=copy, content_type="text/javascript"))
    if not up:
        page.route(re.compile("/(ui|v1)/"), lambda route: route.abort())
    page.goto(f"{server.address}/shop.html")
    expect(page.locator("#slate li")).to_have_count(3 if up else 2)
    if not up:
        expect(page.locator("#slate li")).to_have_text(["Espresso", "Tea"])
        visitor.forgive("net::ERR_FAILED")
        visitor.forgive("warning: ")  # the page says why


LEAVE = """([tokens, url, age]) => tokens.forEach(token => {
    const body = {token, click: 0, examined: 1};
    const report = {url, body, since: Date.now() - age, after: 0, sending: true};
    localStorage.setItem('firstclick-report:' + token, JSON.stringify(report));
})"""


def leave_reports(page, server, *tokens, days=0):
    """As if an earlier page of the shop could not send these."""
    page.route("**/earlier.html", lambda route: route.fulfill(body="", content_type="text/html"))
    page.goto(f"{server.address}/earlier.html")
    page.evaluate(LEAVE, [tokens, f"{server.address}/v1/models/shop/feedback", days * 24 * 3600_000])


def test_a_backlog_does_not_keep_the_next_slate_away(service, visitor):
    page = visitor.page
    key, digest = new_key()
    service.store.add_api_key("web", "page", digest, 0.0)
    service.maintenance.reload_api_keys()
    tokens = [service.recommend("shop").token for _ in range(8)]
    with Server(service, Settings(port=0, page_requests_per_second=5)) as server:
        leave_reports(page, server, *tokens)
        open_shop(page, server, options=f"key: '{key}',")
        calls = [url for url in visitor.requests if "/v1/" in url]
        assert calls[0].endswith("/recommend")
        assert len(calls) < 4
        # Slower than the limit, so that none is refused, and a slate or a click has room between them.
        has_reported(page, *["accepted"] * 8)
    assert unsent(page) == 0


@pytest.mark.long
def test_a_backlog_is_sent_by_a_page_without_a_slate(service, server, visitor):
    page = visitor.page
    leave_reports(page, server, service.recommend("shop").token)
    page.evaluate("""async () => {
        const { FirstClick } = await import('/ui/firstclick.js');
        window.page = new FirstClick({server: location.origin, model: 'shop'});
    }""")
    comes_to(lambda: heard(service), [(0, 1)])
    comes_to(lambda: unsent(page), 0)


@pytest.mark.long
def test_a_report_in_a_backlog_that_was_taken_back_is_not_sent(service, server, visitor):
    page = visitor.page
    leave_reports(page, server, service.recommend("shop").token, service.recommend("shop").token)
    open_shop(page, server)
    # As a tab that came back from the background does with its own; before the second one is read.
    page.wait_for_function("reports.length === 1 && (localStorage.clear(), true)")
    page.wait_for_timeout(600)
    assert len(heard(service)) == 1


@pytest.mark.long
@pytest.mark.parametrize("code", [201, 403, 503])
def test_a_clock_that_was_set_right_does_not_lose_a_report(service, server, visitor, code):
    page = visitor.page
    if code != 201:
        page.route("**/feedback", lambda route: route.fulfill(status=code, json={}))
    leave_reports(page, server, service.recommend("shop").token, days=3)
    open_shop(page, server)
    # It is sent once, whatever its age: the server knows how old a token is. Then it is dropped.
    page.wait_for_function("reports.length === 1")
    comes_to(lambda: unsent(page), 0)
    assert heard(service) == ([(0, 1)] if code == 201 else [])
    assert sum(url.endswith("/feedback") for url in visitor.requests) == 1
    if code != 201:
        visitor.forgive(str(code))
    if code == 403:
        visitor.forgive("the key is refused")


# Pages that change without being left


@pytest.mark.long
def test_a_container_taken_from_the_page_is_reported_and_forgotten(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate("""async () => {
        document.querySelector('#slate').remove();
        const next = document.createElement('div');
        next.id = 'slate';
        document.body.prepend(next);
        await page.show(next, tile);
    }""")
    comes_to(lambda: heard(service), [(None, 1)])
    assert page.evaluate("page.slates.size") == 1
    page.locator(".item").nth(0).click()
    comes_to(lambda: heard(service), [(None, 1), (0, 1)])
    # The last one, when the visitor goes to another tab.
    page.evaluate("document.querySelector('#slate').remove()")
    page.evaluate(TURN, True)
    assert page.evaluate("page.slates.size") == 0
    assert unsent(page) == 0


@pytest.mark.long
def test_a_container_that_is_not_in_the_page_yet_is_not_forgotten(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.evaluate("""async () => {
        window.next = document.createElement('div');
        next.id = 'next';
        await page.show(next, tile);
        await page.show(document.querySelector('#slate'), tile);
        document.body.prepend(next);
    }""")
    page.locator("#next .item").nth(0).click()
    # The slate before, if it was in sight long enough, is reported too.
    comes_to(lambda: heard(service)[-1:], [(0, 1)])


# What is seen

WALL = "<div id=cover style='position: fixed; inset: 0; background: white'>We value your privacy</div>"


@pytest.mark.parametrize(
    "cover",
    [
        WALL,
        "<style id=cover>#slate { opacity: 0 }</style>",
        "<style id=cover>.item { visibility: hidden }</style>",
    ],
    ids=["wall", "transparent", "hidden"],
)
def test_what_is_covered_is_not_seen_until_the_cover_is_gone(service, server, visitor, cover):
    page = visitor.page
    open_shop(page, server, extra=cover)
    page.wait_for_timeout(800)
    assert page.evaluate("seen") == []
    page.evaluate("document.querySelector('#cover').remove()")
    page.wait_for_function("seen.includes(1)")
    page.goto(f"{server.address}/ui/api")
    comes_to(lambda: heard(service), [(None, 1)])


@pytest.mark.long
@pytest.mark.parametrize(
    "style",
    [
        "#slate { opacity: 0.9; filter: saturate(1.2) } .item { transform: rotate(1deg) }",
        ".item { pointer-events: none }",
        "body::after { content: 'Chat'; position: fixed; right: 9px; bottom: 9px; padding: 90px }",
    ],
    ids=["effects", "no pointer", "chat"],
)
def test_what_is_decorated_or_touched_by_a_corner_is_seen(server, visitor, style):
    open_shop(
        visitor.page, server, extra=f"<style>{style}</style><div style='position: fixed; top: 0'>Menu</div>"
    )
    visitor.page.wait_for_function("seen.includes(1)")


@pytest.mark.long
def test_an_item_without_a_box_of_its_own_is_seen_by_what_is_in_it(server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    page.evaluate("""() => {
        seen.length = 0;
        return page.show(document.querySelector('#slate'), (item) => {
            const row = document.createElement('div');
            row.style.display = 'contents';
            row.append(tile(item));
            return row;
        });
    }""")
    page.wait_for_function("seen.includes(1)")
    page.locator(".item").nth(0).click()
    page.wait_for_function("reports.some(report => report.click === 0)")


# The shop's own code


@pytest.mark.long
@pytest.mark.parametrize(
    ("render", "told"),
    [
        ("() => { throw new Error('boom') }", "Error: boom"),
        ("(item) => '<li>' + item", "TypeError: render must return an element, got [object String]"),
        ("async (item) => tile(item)", "TypeError: render must return an element, got [object Promise]"),
        ("() => {}", "TypeError: render must return an element, got [object Undefined]"),
    ],
    ids=["throws", "string", "promise", "nothing"],
)
def test_a_render_that_fails_leaves_the_old_slate_as_it_was(service, server, visitor, render, told):
    page = visitor.page
    open_shop(page, server)
    page.wait_for_function("seen.includes(1)")
    code = f"page.show(document.querySelector('#slate'), {render}).then(() => 'shown', String)"
    assert page.evaluate(code) == told
    page.locator(".item").nth(1).click()
    has_reported(page, "accepted")
    assert heard(service) == [(1, 2)]


def test_callbacks_that_fail_break_nothing_else(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.evaluate("""() => {
        page.onreport = ({status}) => {
            if (status !== 'waiting') throw new Error('onreport is broken');
        };
        page.onexamined = () => { throw new Error('onexamined is broken') };
        return page.show(document.querySelector('#slate'), tile);
    }""")
    page.wait_for_timeout(600)
    page.locator(".item").nth(0).click()
    page.wait_for_timeout(1000)  # the first wait is 750 ms at most
    # The slate before, if it was in sight long enough, is reported too. None is sent again.
    assert heard(service)[-1] == (0, 1)
    assert sum(url.endswith("/feedback") for url in visitor.requests) == len(heard(service))
    assert unsent(page) == 0
    visitor.forgive("onexamined is broken")
    visitor.forgive("onreport is broken")


def test_the_middle_button_counts_on_a_link_alone(service, server, visitor):
    page = visitor.page
    open_shop(page, server)
    page.locator(".item").nth(0).click(button="middle")
    page.evaluate("document.querySelectorAll('.item')[1].innerHTML = '<a href=/ui/api><b>Tea</b></a>'")
    with page.context.expect_page():
        page.locator(".item b").click(button="middle")
    has_reported(page, "accepted")
    assert heard(service) == [(1, 2)]


# The viewer of the HTTP interface


def test_the_viewer_lists_every_documented_route(server, visitor):
    page = visitor.page
    page.goto(f"{server.address}/ui/api")
    wanted = {f"{method}{path}" for path, ways in document()["paths"].items() for method in ways}
    expect(page.locator(".route")).to_have_count(len(wanted))
    assert set(page.locator(".route").evaluate_all("nodes => nodes.map(node => node.id)")) == wanted
    feedback = page.locator("[id='post/v1/models/{model}/feedback']")
    feedback.locator("summary").click()
    fields = feedback.locator("section", has_text="Body, application/json").locator(".field")
    expect(fields).to_have_count(4)
    expect(fields.nth(0)).to_contain_text("token required")
    expect(fields.nth(3)).to_contain_text("examined")
    expect(fields.nth(3)).to_contain_text("integer from 0 or null")
    expect(feedback.locator("pre")).to_contain_text(
        f"curl -s -X POST '{server.address}/v1/models/default/feed"
    )
    page.fill("#search", "POST warm-start")
    expect(page.locator(".route:visible")).to_have_count(1)
    page.fill("#search", "")
    page.evaluate("document.querySelectorAll('.route').forEach(node => { node.open = true })")
    expect(page.locator("pre")).to_have_count(len(wanted))
    for width in (320, 700, 1280):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate(SIDEWAYS) <= 0, width


def test_the_viewer_asks_for_a_key(service, server, visitor):
    (right, digest), (of_page, page_digest), (wrong, _) = new_key(), new_key(), new_key()
    service.store.add_api_key("me", "read", digest, 0.0)
    service.store.add_api_key("web", "page", page_digest, 0.0)
    service.maintenance.reload_api_keys()
    page = visitor.page
    page.goto(f"{server.address}/ui/api")
    expect(page.locator("#ask-key")).to_be_visible()
    expect(page.locator("#openapi")).to_be_hidden()  # a plain link sends no key
    for key in (wrong, of_page, right):
        expect(page.locator("#document")).to_be_hidden()
        page.get_by_label("Key", exact=True).fill(key)
        with page.expect_response("**/openapi.json"):
            page.keyboard.press("Enter")
        expect(page.locator("#key-refused")).to_be_visible(visible=key != right)
        page.reload()  # a key that is no good does not take the form away
        expect(page.locator("#key-refused")).to_be_visible(visible=key != right)
    expect(page.locator(".route").first).to_be_visible()
    page.locator(".route summary").first.click()
    expect(page.locator("pre").first).to_contain_text("$FIRSTCLICK_KEY")
    assert right not in page.content()
    with page.expect_download() as download:
        page.locator("#openapi").click()
    assert download.value.suggested_filename == "openapi.json"
    assert Path(download.value.path()).read_bytes() == msgspec.json.encode(document())
    visitor.forgive("401")
    visitor.forgive("403")
