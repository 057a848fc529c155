"""The shop, for the log of a model."""

from tests.support.shop import open_shop  # noqa: F401
