"""The encoder: how the columns of a catalog become the features that a policy learns from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.cells import LONGEST_LEVEL, Plain, plain
from firstclick.catalog.decisions import Decision, Look, Overrules, decide
from firstclick.catalog.encoded_column import Column, EmbeddingColumn, column_from_json
from firstclick.catalog.features import MOST_FEATURES
from firstclick.errors import InvalidInput
from firstclick.parameters import did_you_mean
from firstclick.validation.quoting import quoted

VERSION = 1


@dataclass(frozen=True)
class Oddities:
    """What was odd in encoded items: levels that the encoder does not know, and cells that it cannot read.

    One number for each input. Two of one encoder can be added.
    """

    inputs: tuple[str, ...]
    kinds: tuple[str, ...]
    n_rows: int
    unknown: tuple[int, ...]
    unreadable: tuple[int, ...]

    def __add__(self, other: "Oddities") -> "Oddities":
        if (self.inputs, self.kinds) != (other.inputs, other.kinds):
            raise InvalidInput("only the oddities of one encoder can be added")
        unknown = tuple(a + b for a, b in zip(self.unknown, other.unknown, strict=True))
        unreadable = tuple(a + b for a, b in zip(self.unreadable, other.unreadable, strict=True))
        return Oddities(self.inputs, self.kinds, self.n_rows + other.n_rows, unknown, unreadable)

    def __bool__(self) -> bool:
        return any(self.unknown) or any(self.unreadable)

    def sentences(self) -> list[str]:
        """What to tell people, a sentence for each column that has something odd."""
        told = []
        columns = zip(self.inputs, self.kinds, self.unknown, self.unreadable, strict=True)
        for name, kind, unknown, unreadable in columns:
            if unknown:
                told.append(
                    f"{name}: {_share(unknown, self.n_rows)} have a level the model does not "
                    "know; start a new model to learn them"
                )
            if unreadable:
                cells = "1 cell" if unreadable == 1 else f"{unreadable:,} cells"
                told.append(f"{name}: {cells} of later items could not be read as a {kind}; taken as missing")
        return told


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    if part == whole:
        return "all new items"
    rough = "less than 1 %" if percent < 1 else "more than 99 %"
    return f"{f'{percent:.0f} %' if 1 <= percent <= 99 else rough} of new items"


@dataclass(frozen=True)
class Encoder:
    """How raw columns become features. It is fitted to the first catalog, and never changes.

    >>> raw = {"price": ["9,50", "12,00", "13,00", None], "brand": ["Acme", "Acme", "Bolt", "Bolt"]}
    >>> encoder = Encoder.fitted(raw)
    >>> encoder.names
    ('price', 'price missing', 'brand=Acme', 'brand=Bolt', 'brand=other')
    >>> rows, odd = encoder.encode([(12.0, "Acme"), (None, "Crux")])
    >>> rows.round(2).tolist()
    [[0.0, 0.0, 1.0, 0.0, 0.0], [-0.77, 1.0, 0.0, 0.0, 1.0]]
    >>> odd.sentences()
    ['brand: 50 % of new items have a level the model does not know; start a new model to learn them']
    """

    columns: tuple[Column, ...]
    decisions: tuple[Decision, ...]
    n_items: int

    def __post_init__(self) -> None:
        if len(set(self.inputs)) < len(self.inputs):
            raise InvalidInput("an encoder has two columns of one name")
        if self.n_features > MOST_FEATURES:
            raise InvalidInput(f"an encoder may have {MOST_FEATURES:,} features, got {self.n_features:,}")

    @classmethod
    def fitted(
        cls,
        columns: Mapping[str, Sequence[Any]],
        *,
        ignore: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        embedding: Sequence[str] = (),
        unscaled: bool = False,
        where: Callable[[int], str] | None = None,
    ) -> "Encoder":
        """The encoder of this catalog: names of columns, and a cell an item for each.

        `ignore`, `category`, `number` and `embedding` overrule what it would decide itself. `unscaled` leaves
        numbers as they are, for policies with topics. `where` says where a row is, such as its line.
        """
        overrules = Overrules(ignore, category, number, embedding)  # type: ignore[arg-type]
        cells = {name: [plain(cell) for cell in _listed(column)] for name, column in columns.items()}
        lengths = {name: len(column) for name, column in cells.items()}
        if len(set(lengths.values())) > 1:
            name, longest = max(lengths, key=lengths.__getitem__), max(lengths.values())
            short = min(lengths, key=lengths.__getitem__)
            raise InvalidInput(
                f"columns must have a cell for each item, got {longest:,} in {quoted(name)} and "
                f"{lengths[short]:,} in {quoted(short)}"
            )
        n_items = next(iter(lengths.values()), 0)
        if columns and not n_items:
            raise InvalidInput("a catalog without items has nothing to fit an encoder to; add a row an item")
        looks = [Look(name, column, where or _row) for name, column in cells.items()]
        found = decide(looks, overrules, unscaled=unscaled)
        used = tuple(column for column, _ in found if column is not None)
        return cls(used, tuple(decision for _, decision in found), n_items)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The raw columns that it uses."""
        return tuple(column.name for column in self.columns)

    def check_names(self, values: Mapping[str, Any]) -> None:
        """Refuse values of which none is of a column of the first catalog: that is a mistake. Beside others,
        a column that it does not know is ignored, because tables get more of them."""
        known = {*self.inputs, *(decision.name for decision in self.decisions)}
        if values and known.isdisjoint(values):
            name = next(iter(values))
            hint = did_you_mean(str(name), known)
            raise InvalidInput(
                f"names no column of the catalog, {quoted(name)} for instance{hint}", "features"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of features; all differ."""
        names: dict[str, None] = {}
        for column in self.columns:
            for name in column.names:
                times, new = 1, name
                while new in names:
                    times += 1
                    new = f"{name} ({times})"
                names[new] = None
        return tuple(names)

    @property
    def n_features(self) -> int:
        """How many columns of features there are."""
        return sum(len(column.names) for column in self.columns)

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """For each input the columns of features that depend on it."""
        ends = np.cumsum([len(column.names) for column in self.columns]).tolist()
        return tuple(tuple(range(start, end)) for start, end in zip([0, *ends], ends, strict=False))

    def encode(self, values: Sequence[Sequence[Any]]) -> tuple[NDArray[np.float64], Oddities]:
        """The features of items, a row each, and what was odd. `values` are raw, in the order of `inputs`.

        A row gets the same bits alone and among others.
        """
        n_inputs = len(self.columns)
        wrong = next((row for row in values if len(row) != n_inputs), None)
        if wrong is not None:
            raise InvalidInput(
                f"an item has {n_inputs} values here, one for each of the inputs of the encoder, "
                f"got {len(wrong)}; it may be an encoder of another catalog"
            )
        rows = np.empty((len(values), self.n_features))
        unknown, unreadable, start = [], [], 0
        by_column: list[tuple[Any, ...]] = list(zip(*values, strict=True)) or [()] * n_inputs
        for column, cells in zip(self.columns, by_column, strict=True):
            read = column.encode([plain(cell) for cell in cells])
            rows[:, start : start + read.rows.shape[1]] = read.rows
            start += read.rows.shape[1]
            unknown.append(read.unknown)
            unreadable.append(read.unreadable)
        return rows, self.oddities(len(values), unknown, unreadable)

    def oddities(
        self, n_rows: int = 0, unknown: Sequence[int] = (), unreadable: Sequence[int] = ()
    ) -> Oddities:
        """What was odd in so many rows, a number for each input; nothing, if nothing is given."""
        kinds = tuple("number" if column.kind == "embedding part" else column.kind for column in self.columns)
        none = (0,) * len(self.columns)
        return Oddities(self.inputs, kinds, n_rows, tuple(unknown) or none, tuple(unreadable) or none)

    def values_of(self, columns: Mapping[str, Sequence[Any]], n: int) -> list[tuple[Plain, ...]]:
        """The raw values of `n` items in the order of `inputs`, as JSON and MessagePack can hold them.

        A column that is not there is None throughout; one that the encoder does not know is ignored.
        """
        if not self.columns:
            return [()] * n
        return list(
            zip(*(self._stored(column, columns.get(column.name), n) for column in self.columns), strict=True)
        )

    def _stored(self, column: Column, cells: Sequence[Any] | None, n: int) -> list[Plain]:
        if cells is None:
            return [None] * n
        listed = _listed(cells)
        if len(listed) != n:
            raise InvalidInput(
                f"column {quoted(column.name)} must have a cell for each of {n:,} items, got {len(listed):,}"
            )
        kept = [column.stored(plain(cell)) for cell in listed]
        if isinstance(column, EmbeddingColumn):
            return kept
        return [_short(cell) for cell in kept]

    def as_json(self) -> dict[str, Any]:
        """The encoder as plain values."""
        return {
            "version": VERSION,
            "items": self.n_items,
            "columns": [column.as_json() for column in self.columns],
            "decisions": [_decision_as_json(decision) for decision in self.decisions],
        }

    @classmethod
    def from_json(cls, page: Any) -> "Encoder":
        """What `as_json` wrote; InvalidInput for what does not fit together."""
        if not isinstance(page, Mapping):
            raise InvalidInput(f"an encoder is an object in JSON, got {quoted(page)}")
        if page.get("version") != VERSION:
            raise InvalidInput(
                f"an encoder of version {VERSION} was expected, got {quoted(page.get('version'))}; "
                "a newer firstclick may read it"
            )
        columns, decisions, n_items = page.get("columns"), page.get("decisions"), page.get("items")
        if (
            not isinstance(columns, list)
            or not isinstance(decisions, list)
            or type(n_items) is not int
            or n_items < 0
        ):
            raise InvalidInput("an encoder must have lists of columns and decisions, and a number of items")
        if len(columns) > MOST_FEATURES:
            raise InvalidInput(f"an encoder may have {MOST_FEATURES:,} columns, got {len(columns):,}")
        return cls(
            tuple(column_from_json(column) for column in columns),
            tuple(_decision_from_json(decision) for decision in decisions),
            n_items,
        )


def _row(row: int) -> str:
    return f"row {row} (from 0)"


def _listed(column: Any) -> Sequence[Any]:
    """The cells as Python has them; arrays and series give theirs at once."""
    if isinstance(column, str):
        raise InvalidInput(f"a column must be a list of cells, got the text {quoted(column)}")
    listed = column.tolist() if hasattr(column, "tolist") else list(column)
    if not isinstance(listed, list):
        raise InvalidInput(f"a column must be a list of cells, got {quoted(column)}")
    return listed


def _short(cell: Plain) -> Plain:
    """No list where none is wanted, and nothing longer than what can be a level."""
    if type(cell) is list:
        cell = str(cell)
    return cell[: LONGEST_LEVEL + 1] if type(cell) is str else cell


def _decision_as_json(decision: Decision) -> dict[str, Any]:
    return {name: list(value) if type(value) is tuple else value for name, value in asdict(decision).items()}


def _decision_from_json(page: Any) -> Decision:
    wanted = {field.name: field.type for field in fields(Decision)}
    if not isinstance(page, Mapping) or set(page) != set(wanted):
        raise InvalidInput(f"a decision of an encoder has the fields {', '.join(wanted)}, got {quoted(page)}")
    values = {}
    for name, kind in wanted.items():
        value = page[name]
        if kind is str or kind is int:
            right = type(value) is kind
        else:
            right = isinstance(value, list) and all(type(one) is str for one in value)
            value = tuple(value) if right else value
        if not right:
            raise InvalidInput(f"{name} of a decision of an encoder has the wrong type, got {quoted(value)}")
        values[name] = value
    return Decision(**values)
