"""The items that there are: their ids, features and groups."""

from firstclick.catalog.catalog import Catalog, ItemId

__all__ = ["Catalog", "ItemId"]
