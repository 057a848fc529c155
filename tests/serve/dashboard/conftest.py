"""A browser, a server and a visitor for the tests that look at a page."""

import pytest

pytest.register_assert_rewrite("tests.support.browsing")

from tests.support.browsing import browser, server, service, visitor  # noqa: E402, F401
