"""Stores and servers, for all tests of the service."""

from tests.faults.crash import zygote  # noqa: F401
from tests.support.shop import open_shop, shop  # noqa: F401
from tests.support.stores import postgresql, postgresql_url, store, store_url  # noqa: F401
