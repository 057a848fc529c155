"""A real browser before a real server, and somebody who looks at its pages."""

import os

import pytest
from playwright.sync_api import expect, sync_playwright

from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from tests.support.programs import program
from tests.support.serving import a_service

# Long enough for any machine; no test waits for it unless it fails.
AT_LAST = 30.0
# The sandbox needs rights that root in a container has not; the rest keeps the browser from calling home.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    """One browser for all; `launch` gives it a fresh profile folder."""
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
    """Somebody before a screen: a page, and all that went wrong in it."""

    def __init__(self, context):
        self.page = context.new_page()
        self.complaints = []
        self.requests = []
        # The console tells of scripts that fail, loads that fail, and loads that the policy forbids.
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def forgive(self, text):
        """Leave out what was to be expected, which must have come."""
        assert any(text in one for one in self.complaints), self.complaints
        self.complaints = [one for one in self.complaints if text not in one]


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
    with Server(service, Settings(port=0)) as server:
        yield server
