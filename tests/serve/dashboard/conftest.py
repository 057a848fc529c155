"""A browser, a server and a visitor for the tests that look at a page."""

from tests.support.browsing import browser, server, service, visitor  # noqa: F401
