"""The items that there are: their ids, features and groups."""

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.ids import ItemId, item_ids

__all__ = ["Catalog", "ItemId", "item_ids"]
