"""Doors on one service for the session, with a model for each test."""

from contextlib import ExitStack, closing

import pytest

from firstclick import policy_classes, world_classes
from tests.support.doors import DOORS, open_site
from tests.support.refusals import Messages


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with open_site(tmp_path_factory.mktemp("doors") / "shops.db") as site:
        yield site


@pytest.fixture
def open_at(site):
    """`open_at("client", policy=...)`: a door to a new model."""
    with ExitStack() as opened:
        yield lambda name, **created: opened.enter_context(closing(DOORS[name](site, **created)))


@pytest.fixture(params=DOORS)
def open_door(request, open_at):
    return lambda **created: open_at(request.param, **created)


@pytest.fixture
def door(open_door):
    return open_door()


@pytest.fixture
def messages(request, monkeypatch):
    # Sentences list the policies and environments of firstclick, without those that other tests have defined.
    for known in [*policy_classes().values(), *world_classes().values()]:
        if not known.__module__.startswith("firstclick."):
            monkeypatch.setattr(known, "name", "")
    return Messages(request.config.getoption("--update-messages"))
