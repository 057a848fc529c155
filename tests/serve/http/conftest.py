"""The application on a shop of its own, for all tests of this folder."""

from contextlib import ExitStack

import pytest

from tests.support.serving import a_site


@pytest.fixture
def open_site(tmp_path):
    """`open_site(max_body=1000)`: see `a_site`; closed at the end."""
    with ExitStack() as opened:
        yield lambda **settings: opened.enter_context(a_site(tmp_path, **settings))


@pytest.fixture
def site(open_site):
    return open_site()
