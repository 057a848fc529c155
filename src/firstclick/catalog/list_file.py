"""A file that names items in an order, such as the list that a shop shows today."""

import os
from collections.abc import Sequence
from typing import Any

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.ids import ItemId, item_id
from firstclick.errors import InvalidInput
from firstclick.files.reading import PARQUET, as_path
from firstclick.files.table import JSON_LINES, read_table

# Names of a column of ids, as people call it.
ID_COLUMNS = ("id", "item", "item_id", "itemid", "product", "product_id", "sku")


def read_list(path: str | os.PathLike[str], catalog: Catalog) -> list[ItemId]:
    """The items of the file, in its order: an id a line, or a table with a column of ids.

    The header says which column (`id`, `item_id`, `sku`, ...). Without such a header it is the first column,
    and the first line is an item too.
    """
    file = as_path(path)
    named = file.suffix in (*PARQUET, *JSON_LINES)
    table = read_table(file, header=named)
    columns = [list(column) for column in table.columns]
    head: Sequence[Any] = table.names if named else [column[0] if column else None for column in columns]
    words = [str(cell).strip().lower() for cell in head]
    place = next((words.index(word) for word in ID_COLUMNS if word in words), None)
    cells = columns[place or 0]
    if not named and place is not None:
        cells = cells[1:]
    found = [_as_in(catalog, cell) for cell in cells if cell is not None]
    if not found:
        raise InvalidInput(f"{path}: it names no item; write an id a line, the first place first")
    return found


def _as_in(catalog: Catalog, cell: Any) -> ItemId:
    """The id as the catalog has it: a text, or the whole number of these digits."""
    item = item_id(cell.item() if hasattr(cell, "item") else cell)
    if isinstance(item, str) and catalog.row_of(item) is None and item.lstrip("-").isdigit():
        number = int(item) if len(item) < 18 else None
        if number is not None and catalog.row_of(number) is not None:
            return number
    return item
