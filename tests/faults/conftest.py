"""Stores and servers, for all tests of faults."""

from tests.faults.crash import server, zygote  # noqa: F401
from tests.support.stores import postgresql, postgresql_url, store, store_url  # noqa: F401
