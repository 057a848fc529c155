"""Catalogs as people have them: a file or a frame with ids, perhaps names and groups, and other columns."""

import csv
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firstclick.catalog.cells import Plain, as_flag, as_number, is_missing, level_of, plain
from firstclick.catalog.decisions import (
    NEARLY_ALL,
    Decision,
    Look,
    Overrules,
    identifier_name,
    is_nearly_unique,
)
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.files.parquet import write_parquet
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import PARQUET, as_path
from firstclick.files.table import BLANK, read_table
from firstclick.files.writing import write_whole
from firstclick.parameters import did_you_mean
from firstclick.validation.quoting import quoted

RESERVED = ("id", "name", "group", "available")
# Where no column is called id: what others call it. The first that is there, complete and unique is taken.
IDS = (
    "item_id", "itemid", "item", "product_id", "productid", "article_id", "article", "article_number", "sku",
    "asin", "isbn", "ean", "gtin", "upc", "key", "uuid", "code",
)  # fmt: skip
NAMES = ("title", "item_name", "product_name", "product_title", "label", "product", "item", "article")
# What others call the stock. It is not taken for `available`: a number of them may mean something else.
STOCK = frozenset(
    (
        "stock",
        "in_stock",
        "instock",
        "inventory",
        "availability",
        "quantity",
        "qty",
        "lagerbestand",
        "bestand",
    )
)
# Of fewer items nobody can tell a title from a brand, unless the column is called so.
FEWEST_NAMES = 10
COLUMNS_SHOWN = 12
LINES_SHOWN = 5
_CODE = re.compile(r"[0-9]+|(?=.*[^0-9.])[^\s,;:/]{1,64}")
_ADDRESS = re.compile(r"\w+://|www\.|/|data:", re.IGNORECASE)


@dataclass(frozen=True)
class CatalogFile:
    """What a file or a frame holds: ids, names, groups, what is available, and all other columns, raw.

    `available` has None where nothing is said. `chosen` says which columns became ids, names, groups and
    availability, `notes` what its owner should know, `where` in which line a row is.
    """

    name: str
    ids: list[ItemId]
    names: list[str]
    groups: list[str]
    available: list[bool | None]
    columns: dict[str, list[Plain]]
    where: Callable[[int], str]
    chosen: tuple[Decision, ...]
    notes: tuple[str, ...]
    overrules: Overrules

    def encoder(self, *, unscaled: bool = False) -> Encoder:
        """The encoder that is fitted to this catalog, as its reader was told to decide."""
        said = self.overrules
        return Encoder.fitted(
            self.columns, ignore=said.ignore, category=said.category, number=said.number,
            embedding=said.embedding, unscaled=unscaled, where=self.line,
        )  # fmt: skip

    def line(self, row: int) -> str:
        """Where a row is, without the name of the file."""
        return self.where(row).removeprefix(f"{self.name} ")

    @cached_property
    def _as_numbers(self) -> tuple[tuple[str, ...], list[Item]]:
        encoder = self.encoder(unscaled=True)
        rows: Any = [None] * len(self.ids)
        if encoder.columns:
            rows = encoder.encode(encoder.values_of(self.columns, len(self.ids)))[0]
        return encoder.names, list(map(Item, self.ids, self.names, self.groups, rows))

    @property
    def items(self) -> list[Item]:
        """The items with all columns of numbers as they are written: for a service without an encoder."""
        return self._as_numbers[1]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features of `items`."""
        return self._as_numbers[0]


def read_catalog(
    path: str | os.PathLike[str],
    *,
    id: str | None = None,
    ignore: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    embedding: Sequence[str] = (),
    encoding: str | None = None,
    progress: Progress = silent,
) -> CatalogFile:
    """The catalog in a CSV, TSV, Parquet or JSON lines file; what is wrong with it is InvalidInput.

    Columns `id`, `name`, `group` and `available` mean what they say, in any case. Where there is no `id`, a
    column such as sku is taken if it is complete and unique; `id` names another. Text files are UTF-8 unless
    `encoding` says otherwise; their ids are texts (007 stays 007), those of Parquet may be whole numbers.
    Blank lines are noted. A row of another width than the header is refused: it would be an item lost.
    """
    path = as_path(path)
    table = read_table(path, encoding=encoding, progress=progress)
    if wrong := [str(skipped) for skipped in table.skipped if skipped.reason != BLANK]:
        raise InvalidInput(
            f"{path.name}: a row must have a cell for each column, there are {', '.join(wrong)}; mend them, "
            "or quote cells that hold the separator"
        )
    columns = [column.tolist() for column in table.columns]
    lines = enumerate(zip(*columns, strict=True))
    # Spreadsheets write rows of separators alone where nothing is.
    there = [row for row, cells in lines if not table.separator or any(cell is not None for cell in cells)]
    if not there:
        raise InvalidInput(f"{path.name} has columns but no items; add a row for each item")
    n_blank = len(columns[0]) - len(there) + sum(skipped.rows for skipped in table.skipped)
    notes = [f"{n_blank:,} blank line{'s' if n_blank > 1 else ''} of {path.name} left out"] if n_blank else []
    columns = [[column[row] for row in there] for column in columns]
    overrules = Overrules(ignore, category, number, embedding)  # type: ignore[arg-type]

    def where(row: int) -> str:
        return table.where(there[row])

    return _catalog(path.name, table.names, columns, where, id, overrules, notes)


def catalog_from_frame(
    frame: Any,
    *,
    id: str | None = None,
    ignore: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    embedding: Sequence[str] = (),
) -> CatalogFile:
    """The catalog in a frame of pandas or polars, or in a dict of columns; as `read_catalog` reads files.

    An index of pandas that has a name is a column.

    >>> drinks = catalog_from_frame({"id": ["e1", "t1"], "strong": ["yes", "no"]})
    >>> drinks.ids, drinks.encoder().names
    (['e1', 't1'], ('strong',))
    """
    names, cells = _columns_of(frame)
    if not cells or not len(cells[0]):
        raise InvalidInput("the frame has no items; add a row for each item")
    overrules = Overrules(ignore, category, number, embedding)  # type: ignore[arg-type]
    return _catalog("the frame", names, cells, lambda row: f"the frame row {row} (from 0)", id, overrules, [])


def _columns_of(frame: Any) -> tuple[list[str], list[list[Any]]]:
    if isinstance(frame, Mapping):
        for name, column in frame.items():
            if isinstance(column, str) or not hasattr(column, "__iter__"):
                raise InvalidInput(f"column {quoted(name)} must be a list of cells, got {quoted(column)}")
        cells = [list(column) for column in frame.values()]
        if len({len(column) for column in cells}) > 1:
            raise InvalidInput("must have columns of one length", "frame")
        return [str(name).strip() for name in frame], cells
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        if any(name is not None and name not in frame.columns for name in frame.index.names):
            frame = frame.reset_index()
        columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
        return [str(name).strip() for name in frame.columns], [
            [
                None if gone else cell
                for cell, gone in zip(column.tolist(), column.isna().tolist(), strict=True)
            ]
            for column in columns
        ]
    if hasattr(frame, "get_columns"):
        return [name.strip() for name in frame.columns], [column.to_list() for column in frame.get_columns()]
    raise InvalidInput(
        f"must be a frame of pandas or polars, or a dict of columns, got {quoted(frame)}", "frame"
    )


def _catalog(
    file: str, names: list[str], cells: list[list[Any]], where: Callable[[int], str], id: str | None,
    overrules: Overrules, notes: list[str],
) -> CatalogFile:  # fmt: skip
    names = [name or f"column {place + 1}" for place, name in enumerate(names)]
    _check_names(file, names)
    said = overrules.resolved(names)
    columns = dict(zip(names, cells, strict=True))
    n_items = len(cells[0])
    chosen: list[Decision] = []
    overruled = {*said.ignore, *said.category, *said.number}

    def line(row: int) -> str:
        return where(row).removeprefix(f"{file} ")

    def take(word: str, name: str, reason: str) -> list[Any]:
        cells = columns.pop(name)
        chosen.append(Look(name, [plain(cell) for cell in cells], line).decided(word, reason))
        return cells

    id_column, why = _id_column(file, columns, id)
    if id_column in overruled:
        raise InvalidInput(f"{id_column!r} is the column of ids; name another by `id`, or leave it out here")
    ids = [cell.strip() if isinstance(cell, str) else cell for cell in columns[id_column]]
    ids = _checked_ids(file, ids, line)
    take("id", id_column, why)
    if id_column.casefold() != "id" and id is None:
        notes.append(f"ids are taken from column {id_column!r}, because none is called id")
    notes += _alike(ids, line)
    reserved = {
        name.casefold(): name for name in columns if name.casefold() in RESERVED and name not in overruled
    }
    texts: dict[str, list[str]] = {word: [""] * n_items for word in ("name", "group")}
    for word, column in texts.items():
        if word in reserved:
            column[:] = [_word(cell) for cell in take(word, reserved[word], "")]
    notes += _alike_groups(texts["group"])
    if "name" not in reserved and (name := _name_column(columns, overruled, line)):
        texts["name"][:] = [_word(cell) for cell in take("name", name, "differs in nearly every row")]
        notes.append(f"names are taken from column {name!r}, because none is called name")
    available: list[bool | None] = [None] * n_items
    if "available" in reserved:
        cells_of = take("available", reserved["available"], "")
        available = _checked_available(file, [plain(cell) for cell in cells_of], line)
    elif stock := [name for name in columns if name.casefold() in STOCK and name not in overruled]:
        notes.append(
            f"column {stock[0]!r} is a feature: items without stock are shown; call it available to hide them"
        )
    plain_columns = {name: [plain(cell) for cell in column] for name, column in columns.items()}
    return CatalogFile(
        file,
        ids,
        texts["name"],
        texts["group"],
        available,
        plain_columns,
        where,
        tuple(chosen),
        tuple(notes),
        said,
    )


def _word(cell: Any) -> str:
    """A name or a group as it is written; longer than a level may be, and with its blanks."""
    return cell.strip() if isinstance(cell, str) else "" if is_missing(plain(cell)) else level_of(plain(cell))


def _check_names(file: str, names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        # Words with a meaning of their own mean the same in any case.
        key = name.casefold() if name.casefold() in RESERVED else name
        if key in seen:
            raise InvalidInput(f"{file}: two columns are called {name!r}; rename or leave out one of them")
        seen[key] = name


def _id_column(file: str, columns: Mapping[str, Sequence[Any]], id: str | None) -> tuple[str, str]:
    """The column of ids, and why it is that one."""
    if id is not None:
        if not isinstance(id, str):
            raise InvalidInput(f"must be the name of a column, got {quoted(id)}", "id")
        same = [name for name in columns if name == id] or [
            name for name in columns if name.casefold() == id.strip().casefold()
        ]
        if len(same) != 1:
            hint = did_you_mean(id, columns) or f" (columns: {_listed(columns)})"
            raise InvalidInput(f"names {quoted(id)}, and no column of {file} is called so{hint}", "id")
        return same[0], "you said so"
    for name in columns:
        if name.casefold() == "id":
            return name, ""
    known = {re.sub(r"\W+", "_", name).casefold(): name for name in reversed(list(columns))}
    others = [name for name in columns if identifier_name(name)]
    first = next(iter(columns))
    # pandas writes row numbers under no name: another day they belong to other items.
    unfit = first.casefold() in RESERVED or re.fullmatch(r"column \d+|unnamed.*|index", first.casefold())
    named = [] if unfit else [first]
    for name in [*(known[word] for word in IDS if word in known), *others, *named]:
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in columns[name]]
        fit = all(type(cell) in (str, int) and cell != "" for cell in cells)
        # A first column of any name may be one of codes: no titles, no prices.
        fit = fit and (name != first or all(_CODE.fullmatch(str(cell)) for cell in cells))
        if fit and len(set(cells)) == len(cells):
            return name, "differs in every row"
    raise InvalidInput(
        f"{file} has no column 'id', and no other that is surely one of ids; say `id=COLUMN` "
        f"(columns: {_listed(columns)})"
    )


def _listed(names: Mapping[str, Any]) -> str:
    listed = list(names)
    return ", ".join(listed[:COLUMNS_SHOWN]) + (", ..." if len(listed) > COLUMNS_SHOWN else "")


def _checked_ids(file: str, ids: list[Any], line: Callable[[int], str]) -> list[ItemId]:
    """The ids; all that are empty, no ids at all, or there twice, are refused in one sentence."""
    if len(set(map(str, ids))) == len(ids) and all(type(item) is str and item for item in ids):
        return ids
    empty, wrong = [], []
    rows: dict[ItemId, list[int]] = {}
    for row, item in enumerate(ids):
        if item is None or item == "" or item != item:
            empty.append(row)
        elif type(item) not in (str, int):
            wrong.append(row)
        else:
            rows.setdefault(item, []).append(row)
    twice = {item: places for item, places in rows.items() if len(places) > 1}
    problems = []
    if empty:
        problems.append(f"{_count(empty, 'id is', 'ids are')} empty ({_lines(empty, line)})")
    if wrong:
        problems.append(
            f"{_count(wrong, 'id is', 'ids are')} neither text nor a whole number, "
            f"{quoted(ids[wrong[0]], 30)} for instance ({_lines(wrong, line)})"
        )
    if twice:
        listed = [
            f"{quoted(item, 40)} in {_lines(places, line)}"
            for item, places in list(twice.items())[:LINES_SHOWN]
        ]
        more = "; ..." if len(twice) > LINES_SHOWN else ""
        problems.append(
            f"{_count(twice, 'id is', 'ids are')} there more than once ({'; '.join(listed)}{more})"
        )
    if problems:
        raise InvalidInput(f"{file}: {', and '.join(problems)}; every item needs an id of its own")
    return ids


def _count(things: Any, one: str, many: str) -> str:
    return f"1 {one}" if len(things) == 1 else f"{len(things):,} {many}"


def _lines(rows: Sequence[int], line: Callable[[int], str]) -> str:
    """The places of the first rows; `line 2, 5, 7, ...` where they are lines."""
    places = [line(row) for row in rows[:LINES_SHOWN]]
    word = places[0].partition(" ")[0]
    if all(place.startswith(f"{word} ") for place in places):
        places[1:] = [place.removeprefix(f"{word} ") for place in places[1:]]
    return ", ".join(places) + (", ..." if len(rows) > LINES_SHOWN else "")


def _alike(ids: Sequence[ItemId], line: Callable[[int], str]) -> list[str]:
    """A note on ids that differ in case or blanks alone; or none."""
    keys: dict[str, int] = {}
    pairs = []
    for row, item in enumerate(ids):
        key = "".join(str(item).split()).casefold()
        if (first := keys.setdefault(key, row)) != row:
            pairs.append((first, row))
    if not pairs:
        return []
    first, row = pairs[0]
    count = "1 id differs" if len(pairs) == 1 else f"{len(pairs):,} ids differ"
    return [
        f"{count} from another in case or blanks alone, {ids[row]!r} ({line(row)}) and {ids[first]!r} "
        f"({line(first)}) for instance; they are different items"
    ]


def _alike_groups(groups: Sequence[str]) -> list[str]:
    """A note on groups that differ in case or blanks alone; or none."""
    spellings: dict[str, set[str]] = {}
    for group in groups:
        spellings.setdefault("".join(group.split()).casefold(), set()).add(group)
    several = sorted(sorted(alike) for alike in spellings.values() if len(alike) > 1)
    if not several:
        return []
    one, other = several[0][:2]
    return [
        f"groups {one!r} and {other!r} differ in case or blanks alone, and `at_most` counts them apart; "
        "spell a group in one way"
    ]


def _name_column(
    columns: Mapping[str, Sequence[Any]], overruled: set[str], line: Callable[[int], str]
) -> str | None:
    """The column to call items by where none is called name: a title, not an address or a number."""
    known = {re.sub(r"\W+", "_", name).casefold(): name for name in reversed(list(columns))}
    likely = [known[word] for word in NAMES if word in known]
    for name in dict.fromkeys([*likely, *columns]):
        if name in overruled or name.casefold() in RESERVED or identifier_name(name):
            continue
        if not any(type(cell) is str for cell in columns[name][:100]):
            continue
        look = Look(name, [plain(cell) for cell in columns[name]], line)
        enough = max(NEARLY_ALL * len(look.cells), 1 if name in likely else FEWEST_NAMES)
        if look.n_present >= enough and is_nearly_unique(look) and look.share(_is_no_title) < 0.5:
            return name
    return None


def _is_no_title(cell: Plain) -> bool:
    return type(cell) is not str or _ADDRESS.match(cell) is not None or as_number(cell) is not None


def _checked_available(file: str, cells: Sequence[Plain], line: Callable[[int], str]) -> list[bool | None]:
    """Yes, no, or how many are left."""
    found: list[bool | None] = []
    wrong = []
    for row, cell in enumerate(cells):
        flag = None if is_missing(cell) else as_flag(cell)
        if flag is None and not is_missing(cell):
            count = as_number(cell)
            if count is None:
                wrong.append(row)
            else:
                flag = count > 0
        found.append(flag)
    if wrong:
        raise InvalidInput(
            f"{file}: column 'available' must say yes or no, or how many are left, got "
            f"{quoted(cells[wrong[0]], 30)} ({_lines(wrong, line)}); mend it, or rename the column"
        )
    return found


def write_catalog(path: str | os.PathLike[str], items: Sequence[Item], feature_names: Sequence[str]) -> None:
    """A file that `read_catalog` reads, CSV or Parquet by its name; features are written as they are."""
    path = as_path(path)
    header = ["id", "name", "group", *feature_names]
    features = np.array([item.features for item in items], np.float64).reshape(len(items), -1)
    if path.suffix in PARQUET:
        whole = all(type(item.id) is int for item in items)
        kinds = {"id": "BIGINT" if whole else "VARCHAR", "name": "VARCHAR", "group": "VARCHAR"}
        rows = (dict(zip(header, (*item[:3], *row), strict=True)) for item, row in
                zip(items, features.tolist(), strict=True))  # fmt: skip
        write_parquet(path, kinds | dict.fromkeys(feature_names, "DOUBLE"), rows)
        return
    text = io.StringIO()
    # All texts in quotes: by itself the writer leaves them out around a carriage return.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([*item[:3], *row] for item, row in zip(items, features.tolist(), strict=True))
    write_whole(path, text.getvalue().encode())
