"""Doors on one service for the session, with a model for each test."""

from contextlib import ExitStack, contextmanager

import pytest

from firstclick.serve import open_service
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from tests.support.doors import DOORS, Place
from tests.support.refusals import Messages
from tests.support.shop import open_shop  # noqa: F401


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    store = tmp_path_factory.mktemp("doors") / "shops.db"
    with open_service(str(store)) as service, Server(service, Settings(port=0)) as server:
        place = Place(service, server)
        yield place
        place.close()


@pytest.fixture
def open_at(place):
    """`open_at("client", policy=...)`: a door to a new model."""
    with ExitStack() as opened:

        @contextmanager
        def closing(door):
            yield door
            door.close()

        yield lambda name, **created: opened.enter_context(closing(DOORS[name](place, **created)))


@pytest.fixture(params=DOORS)
def open_door(request, open_at):
    return lambda **created: open_at(request.param, **created)


@pytest.fixture
def door(open_door):
    return open_door()


@pytest.fixture
def messages(request):
    return Messages(request.config.getoption("--update-messages"))
