"""Fixtures of all tests that look at a page."""

import pytest

pytest.register_assert_rewrite("browsing")

from tests.support.browsing import browser, server, service, visitor  # noqa: E402

__all__ = ["browser", "server", "service", "visitor"]
