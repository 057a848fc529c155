"""A catalog in words: what each column was taken as, what it became, and what its owner should know."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from firstclick.catalog.decisions import LEFT_OUT, Decision
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.file import CatalogFile

# Kinds in the order in which they are counted, one and many.
KINDS = {
    "number": ("number", "numbers"),
    "category": ("category", "categories"),
    "yes/no": ("yes/no", "yes/no"),
    "date": ("date", "dates"),
    "embedding": ("embedding", "embeddings"),
}
LEFT_OUT_SHOWN = 8


class Described(NamedTuple):
    """A column, or the columns of one embedding together."""

    column: str
    taken_as: str
    n_features: int
    n_missing: int
    examples: tuple[str, ...]
    reason: str
    problems: tuple[str, ...]
    n_columns: int = 1

    def as_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return {
            "column": self.column, "columns": self.n_columns, "taken_as": self.taken_as,
            "features": self.n_features, "missing": self.n_missing, "examples": list(self.examples),
            "reason": self.reason, "problems": list(self.problems),
        }  # fmt: skip


def described(encoder: Encoder, file: CatalogFile | None = None) -> list[Described]:
    """A row for each column of the catalog, those of ids and names first; an embedding is one row."""
    decisions = [*(file.chosen if file else ()), *encoder.decisions]
    rows: list[Described] = []
    blocks: dict[str, int] = {}
    for one in decisions:
        if one.block and one.block in blocks:
            rows[blocks[one.block]] = _joined(rows[blocks[one.block]], one)
            continue
        if one.block:
            blocks[one.block] = len(rows)
        problems = (
            one.problems if not one.block else tuple(f"{one.name}: {problem}" for problem in one.problems)
        )
        rows.append(
            Described(
                one.block or one.name,
                one.kind,
                one.n_columns,
                one.n_missing,
                one.examples,
                one.reason,
                problems,
            )
        )
    return rows


def _joined(row: Described, one: Decision) -> Described:
    return row._replace(
        n_features=row.n_features + one.n_columns,
        n_missing=row.n_missing + one.n_missing,
        problems=(*row.problems, *(f"{one.name}: {problem}" for problem in one.problems)),
        n_columns=row.n_columns + 1,
    )


def catalog_as_json(file: CatalogFile, encoder: Encoder) -> dict[str, Any]:
    """All that `firstclick catalog describe --json` prints."""
    return {
        "catalog": file.name,
        "items": len(file.ids),
        "features": encoder.n_features,
        "columns": [row.as_json() for row in described(encoder, file)],
        "notes": list(file.notes),
        "feature_names": list(encoder.names),
    }


def short_description(encoder: Encoder, file: CatalogFile | None = None, path: str = "") -> list[str]:
    """What to say of a catalog at the start of a service: one line, and one for each problem.

    >>> prices = {"price": [1.5, 9.0, 30.0], "brand": ["A", "A", "B"], "currency": ["EUR"] * 3}
    >>> short_description(Encoder.fitted(prices))
    ['catalog: 3 items, 3 columns -> 3 features (1 number, 1 category); left out: currency (constant)']
    """
    rows = described(encoder, file)
    counted = Counter(row.taken_as for row in rows)
    kinds = [f"{counted[kind]} {words[counted[kind] != 1]}" for kind, words in KINDS.items() if counted[kind]]
    n_columns = sum(row.n_columns for row in rows)
    # An encoder of no columns has not seen the items.
    n_items = encoder.n_items if file is None else len(file.ids)
    text = f"catalog: {_number(n_items, 'item')}, {_number(n_columns, 'column')} -> "
    text += _number(encoder.n_features, "feature") + (f" ({', '.join(kinds)})" if kinds else "")
    out = [f"{row.column} ({row.reason.partition(';')[0]})" for row in rows if row.taken_as == LEFT_OUT]
    if out:
        more = f" and {len(out) - LEFT_OUT_SHOWN} more" if len(out) > LEFT_OUT_SHOWN else ""
        text += f"; left out: {', '.join(out[:LEFT_OUT_SHOWN])}{more}"
    if path:
        text += f"; `firstclick catalog describe {path}` tells more"
    return [text, *problems(rows)]


def problems(rows: Sequence[Described]) -> list[str]:
    """What is wrong with cells, a sentence for each kind of problem of a column."""
    return [
        problem if row.n_columns > 1 else f"{row.column}: {problem}"
        for row in rows
        for problem in row.problems
    ]


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
