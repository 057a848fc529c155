"""A ranked log that DuckDB reads: any query that gives slates, streamed as arrays."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.arrow_stream import ArrowColumn, arrow_batches
from firstclick.files.duck import run
from firstclick.files.progress import Progress, silent
from firstclick.files.table import Skipped
from firstclick.kernels.slate_reading import (
    BAD_EXAMINED,
    NO_CHANCE,
    fill_table,
    lay_out_chances,
    lay_out_slates,
    look_up,
    mark_clicks,
)
from firstclick.logs.odd_rows import DOUBTFUL, UNUSABLE, OddRows
from firstclick.logs.ranked_log import NO_ITEM, NOT_TOLD, RankedLog, SlateBatch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Slates in a batch: 10 positions make arrays of some megabytes.
BATCH = 65_536
# Hashes of 64 bits are told apart by another salt should two ids ever have the same one.
_SALTS = range(8)


@dataclass(frozen=True)
class SlateQuery:
    """A query whose rows are slates, in the order of the log.

    `columns` names those that it has: items (VARCHAR[] or BIGINT[]), clicks (BIGINT[], positions from 0;
    null: not reported), examined and number (BIGINT), segment (VARCHAR), seconds and chance (DOUBLE: the
    time, and the probability of the whole slate), prefixes and places (DOUBLE[]: the probabilities of the
    first 1, 2, ... items, and of each item at its position), candidates (as items).
    """

    name: str
    sql: str
    columns: frozenset[str]
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()  # rows that the query does not have


class DuckLog(RankedLog):
    """The slates of a query. Whoever opens it hands over the connection and what else must stay open."""

    def __init__(
        self,
        query: SlateQuery,
        connection: "DuckDBPyConnection",
        resources: ExitStack,
        progress: Progress = silent,
    ) -> None:
        self._query, self._connection = query, connection
        self._closed = weakref.finalize(self, resources.close)
        self.name, self.notes = query.name, query.notes
        facts = f"SELECT count(*), max(len(items)) FROM ({query.sql})"
        rows, longest = run(connection, lambda: connection.execute(facts).fetchall(), progress, 1)[0]
        if not rows:
            raise InvalidInput(f"{query.name} has no rows")
        if not longest:
            raise InvalidInput(f"{query.name}: no row has items")
        self.rows, self.k = int(rows), int(longest)
        lists = [name for name in ("items", "candidates") if name in query.columns]
        self.items, self._salt, self._items = self._coded(
            " UNION ALL ".join(f"SELECT unnest({name}) AS id FROM ({query.sql})" for name in lists), progress
        )
        if "segment" in query.columns:
            segments, _, self._segments = self._coded(
                f"SELECT segment AS id FROM ({query.sql})", progress, self._salt
            )
            self.segments = [str(one) for one in segments]

    def close(self) -> None:
        """Remove temporary files; a log that is forgotten is closed as well."""
        self._closed()

    def _coded(
        self, ids: str, progress: Progress, salt: int = 0
    ) -> tuple[Sequence[ItemId], int, tuple[NDArray[np.uint64], NDArray[np.int32]]]:
        """The ids in order, and a table of their hashes and codes."""
        for attempt in range(salt, salt + len(_SALTS)):
            query = (
                f"SELECT id, {_hash('id', attempt)} FROM (SELECT DISTINCT id FROM ({ids})) WHERE id NOTNULL"
            )
            found = run(self._connection, self._connection.execute(query).fetchall, progress, 1)
            found.sort()
            hashes = np.array([pair[1] for pair in found], np.uint64)
            if len(np.unique(hashes)) == len(hashes):
                size = 1 << max(4, (2 * len(hashes)).bit_length())
                keys, codes = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
                fill_table(hashes, keys, codes)
                return [pair[0] for pair in found], attempt, (keys, codes)
        raise WorkFailed(f"{self.name}: two ids always have the same hash")

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of the log; `skipped` and `doubtful` are complete afterwards."""
        odd = OddRows()
        columns = self._query.columns
        wanted = [f"list_transform(items, lambda id: {_hash('id', self._salt)}) AS items"]
        if "candidates" in columns:
            wanted.append(f"list_transform(candidates, lambda id: {_hash('id', self._salt)}) AS candidates")
        if "segment" in columns:
            wanted.append(f"{_hash('segment', self._salt)} AS segment")
        wanted += sorted(columns - {"items", "candidates", "segment"})
        stamps = np.full(len(self.items), -1, np.int64)
        done = 0
        with self._connection.cursor() as cursor:
            relation = cursor.sql(f"SELECT {', '.join(wanted)} FROM ({self._query.sql})")
            for piece in arrow_batches(relation):
                n = len(piece["items"].starts) - 1  # type: ignore[arg-type]
                for start in range(0, n, BATCH):
                    stop = min(start + BATCH, n)
                    part = {name: column.rows(start, stop) for name, column in piece.items()}
                    yield self._batch(part, done + start, stamps, odd)
                done += n
                progress(done, self.rows)
        self.skipped = (*self._query.skipped, *odd.told(UNUSABLE))
        self.doubtful = odd.told(DOUBTFUL)

    def _batch(
        self, part: dict[str, ArrowColumn], first: int, stamps: NDArray[np.int64], odd: OddRows
    ) -> SlateBatch:
        starts = _starts(part["items"])
        n = len(starts) - 1
        lengths = np.diff(starts)
        problems = np.zeros(n, np.uint8)
        items = np.full((n, self.k), NO_ITEM, np.int32)
        lay_out_slates(starts, self._codes(part["items"], self._items), stamps, first, items, problems)
        clicks = np.zeros((n, self.k), np.uint8)
        reported = np.zeros(n, np.bool_)
        if "clicks" in part:
            mark_clicks(_starts(part["clicks"]), part["clicks"].values, lengths, clicks, problems)
            reported = _is_valid(part["clicks"], n)
        numbers = np.arange(first, first + n)
        if "number" in part:
            numbers = part["number"].values.astype(np.int64)
        examined = np.full(n, NOT_TOLD, np.int32)
        if "examined" in part:
            told = _is_valid(part["examined"], n)
            values = part["examined"].values
            sound = told & (values >= 0) & (values <= lengths)
            examined[sound] = values[sound]
            problems[told & ~sound] |= BAD_EXAMINED
        candidates = candidate_starts = None
        if "candidates" in part:
            candidates = self._codes(part["candidates"], self._items)
            candidate_starts = _starts(part["candidates"])
        batch = SlateBatch(
            items, clicks, examined, reported, numbers,
            propensities=self._propensities(part, lengths, problems),
            segments=None if "segment" not in part else self._segment_codes(part["segment"], n),
            times=None if "seconds" not in part else _with_nan(part["seconds"], n),
            candidates=candidates, candidate_starts=candidate_starts,
            logged_places=self._chances(part.get("places"), lengths, problems, prefixes=False),
        )  # fmt: skip
        usable = odd.note(problems, numbers)
        return batch if usable is None else chosen(batch, usable)

    def _propensities(
        self, part: dict[str, ArrowColumn], lengths: NDArray[np.int64], problems: NDArray[np.uint8]
    ) -> NDArray[np.float64] | None:
        found = self._chances(part.get("prefixes"), lengths, problems, prefixes=True)
        if "chance" not in part:
            return found
        if found is None:
            found = np.full((len(lengths), self.k), np.nan)
        chances = _with_nan(part["chance"], len(lengths))
        with np.errstate(invalid="ignore"):
            wrong = ~np.isnan(chances) & ~((chances > 0) & (chances <= 1))
        problems[wrong] |= NO_CHANCE
        # Of a whole slate: it is known for the last prefix alone, and for what is beyond its end.
        ends = (np.arange(self.k) >= lengths[:, None] - 1) & np.isnan(found)
        return np.where(ends & ~wrong[:, None], chances[:, None], found)

    def _chances(
        self,
        column: ArrowColumn | None,
        lengths: NDArray[np.int64],
        problems: NDArray[np.uint8],
        *,
        prefixes: bool,
    ) -> NDArray[np.float64] | None:
        if column is None:
            return None
        values = column.values
        if column.valid_values is not None:
            values = np.where(column.valid_values, values, np.nan)
        chances = np.full((len(lengths), self.k), np.nan)
        lay_out_chances(_starts(column), values, lengths, prefixes, chances, problems)
        return chances

    def _codes(
        self, column: ArrowColumn, table: tuple[NDArray[np.uint64], NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        codes = np.empty(len(column.values), np.int32)
        look_up(column.values, *table, codes)
        return codes

    def _segment_codes(self, column: ArrowColumn, n: int) -> NDArray[np.int32]:
        return self._codes(column, self._segments)


def chosen(batch: SlateBatch, rows: NDArray[np.bool_]) -> SlateBatch:
    """Some slates of a batch."""
    found: dict[str, Any] = {
        name: None if column is None else column[rows]
        for name, column in batch._asdict().items()
        if name not in ("candidates", "candidate_starts")
    }
    if batch.candidates is not None and batch.candidate_starts is not None:
        lengths = np.diff(batch.candidate_starts)
        slate_of, named = batch.candidates_named()
        found["candidates"] = named[rows[slate_of]]
        found["candidate_starts"] = np.concatenate([[0], np.cumsum(lengths[rows])])
    return SlateBatch(**found)


def _hash(expression: str, salt: int) -> str:
    return f"hash({expression}, {salt})" if salt else f"hash({expression})"


def _starts(column: ArrowColumn) -> NDArray[np.int64]:
    assert column.starts is not None
    return column.starts


def _is_valid(column: ArrowColumn, n: int) -> NDArray[np.bool_]:
    return np.ones(n, np.bool_) if column.valid is None else column.valid


def _with_nan(column: ArrowColumn, n: int) -> NDArray[np.float64]:
    return np.where(_is_valid(column, n), column.values, np.nan)
