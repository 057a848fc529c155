"""A real browser, and a visitor of the pages of a server."""

import os

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.support.programs import program
from tests.support.serving import AT_LAST, a_service, serve

# The sandbox needs rights that root in a container has not; the rest keeps the browser from calling home.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def check_fits(page):
    """Wait until nothing is wider than the page: charts follow its new width a moment later."""
    page.wait_for_function(FITS)


# Not of the session: its event loop would be in the way of tests that run one.
@pytest.fixture(scope="package")
def browser():
    """One browser for a folder of tests; `launch` gives it a fresh profile folder."""
    path = os.environ.get("FIRSTCLICK_CHROMIUM") or program(
        *("chromium", "chromium-browser", "google-chrome"),
        advice="install it, or name its file by FIRSTCLICK_CHROMIUM",
    )
    with sync_playwright() as playwright:
        expect.set_options(timeout=1000 * AT_LAST)
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
        expect.set_options(timeout=None)


class Visitor:
    """A page in a browser, with its requests and its errors."""

    def __init__(self, context):
        self.page = context.new_page()
        self.complaints = []
        self.requests = []
        # The console shows scripts that fail, loads that fail, and loads that the policy forbids.
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def forgive(self, *texts):
        """Ignore errors with these texts; each of them must have occurred."""
        for text in texts:
            assert any(text in complaint for complaint in self.complaints), self.complaints
            self.complaints = [complaint for complaint in self.complaints if text not in complaint]

    def enter_key(self, key):
        self.page.get_by_label("Key", exact=True).fill(key)
        self.page.keyboard.press("Enter")


@pytest.fixture
def visitor(browser):
    with browser.new_context(viewport=DESK) as context:
        context.set_default_timeout(1000 * AT_LAST)
        visitor = Visitor(context)
        yield visitor
        assert visitor.complaints == []


@pytest.fixture
def service(tmp_path):
    with a_service(tmp_path) as service:
        yield service


@pytest.fixture
def server(service):
    with serve(service) as server:
        yield server
