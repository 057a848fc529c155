"""Stores and servers, for all tests of the service."""

from crash import zygote  # noqa: F401
from stores import postgresql, postgresql_url, store, store_url  # noqa: F401
