"""Songs of the Million Song data set and who played them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.sources.lines import Lines, lines_of, refuse_cut_short
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.errors import InvalidInput
from firstclick.files.duck import connected, rejects, run, text_relation
from firstclick.files.table import text_errors
from firstclick.files.text_file import WrongEncoding, open_text
from firstclick.parameters import param

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The first that is there is taken: CD2C and CD2 know the paper's Rock, CD1 only Pop_Rock.
GENRE_FILES = ("msd_tagtraum_cd2c.cls", "msd_tagtraum_cd2.cls", "msd_tagtraum_cd1.cls")

# More than anyone can play, and 2^32 rows of it still fit into 64 bits.
MOST_PLAYS = 2**31 - 1

# What every song id begins with.
SONG = "SO"

Codes = NDArray[np.int32]


class MillionSong(Source):
    """A song attracts a user who has played it, however often: every triplet of the Taste Profile attracts.

    "We extract L = 10k most popular songs from this dataset, as measured by the number of song-listening
    events; and m = 400k most active users, as measured by the number of song-listening events" (Zong et
    al. 2016, section 4.5). We count one play as one event: songs and users are ranked by the sum of their
    play counts, over all rows and independently of each other. Ties go to the lower id. If there are fewer
    than asked for, all are kept.

    A song's name is the artist and title of its first track. Its groups are the labels of all its tracks in
    the genre file: the majority labels, and with `minority=yes` the minority labels too. Without a genre
    file the groups are unknown. Facts count the whole files, before anything is left out: `songs` that were
    played, and `tracks`, the lines of unique_tracks.txt.
    """

    name = "million-song"
    title = "Million Song"
    folders: ClassVar[tuple[str, ...]] = ("million-song", "million_song", "MillionSong", "msd")
    forms: ClassVar[tuple[dict[str, str], ...]] = (
        {"triplets": "train_triplets.txt", "tracks": "unique_tracks.txt"},
    )
    n_items: int = param(10000, "songs kept, the most played", at_least=1)
    n_users: int = param(400000, "users kept, those who played most", at_least=1)
    minority: str = param("no", "count minority labels as genres of a track, too", words=("no", "yes"))

    def files_in(self, folder: Path) -> dict[str, Path]:
        if not (files := super().files_in(folder)):
            return {}
        more_tracks = folder / "taste_profile_song_to_tracks.txt"
        if more_tracks.is_file():
            files["more tracks"] = more_tracks
        for genres in (*(folder / name for name in GENRE_FILES), *sorted(folder.glob("*.cls"))):
            if genres.is_file():
                files["genres"] = genres
                break
        return files

    def wanted(self) -> str:
        return f"{super().wanted()}, and for groups a genre file such as {GENRE_FILES[0]}"

    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        """The most played songs, the most active users, and every triplet of theirs."""
        files = self.find(path)
        lines = lines_of(files, progress)
        kept_users, kept_songs, user_ids, song_ids, ranks, facts = _read_triplets(
            files["triplets"], lines["triplets"], self.n_users, self.n_items
        )
        refuse_cut_short(files["triplets"])
        codes = {song: code for code, song in enumerate(song_ids)}
        names, tracks, facts["tracks"] = _read_tracks(lines["tracks"], codes)
        refuse_cut_short(files["tracks"])
        if "more tracks" in lines:
            _read_more_tracks(lines["more tracks"], codes, tracks)
            refuse_cut_short(files["more tracks"])
        groups: tuple[tuple[str, ...], ...] = ()
        if "genres" in lines:
            groups = _read_genres(lines["genres"], tracks, len(song_ids), minority=self.minority == "yes")
        return Interactions(
            users=kept_users,
            items=kept_songs,
            attracted=np.ones(len(kept_users), np.bool_),
            user_ids=user_ids,
            item_ids=song_ids,
            item_names=names,
            item_groups=groups,
            item_ranks=ranks,
            facts=facts,
        )


# What a triplet is, for DuckDB: strlen counts bytes, length characters.
_VALID = (
    f"c0 <> '' AND strlen(c0) = length(c0) AND starts_with(c1, '{SONG}') AND strlen(c1) = length(c1) "
    f"AND regexp_full_match(c2, '[0-9]+') AND try_cast(c2 AS BIGINT) BETWEEN 1 AND {MOST_PLAYS}"
)


class _Triplets(NamedTuple):
    users: Codes
    songs: Codes
    user_ids: tuple[str, ...]
    song_ids: tuple[str, ...]
    song_ranks: NDArray[np.int64]
    facts: dict[str, int]


def _read_triplets(path: Path, lines: Lines, n_users: int, n_songs: int) -> _Triplets:
    """Who played what, of the users and the songs with most plays; facts count all."""
    try:
        opened = open_text(path, separator="\t", progress=lines.part(0, 0.1))
        with opened as file, connected() as db, text_errors(file):
            file = replace(file, first=["user", "song", "plays"])
            rows = f"SELECT * FROM {text_relation(file, header=False, count_rejects=True)}"
            size = path.stat().st_size
            # In one go: the plays of every user and of every song, and whether all rows are triplets.
            tally = (
                "CREATE TEMP TABLE tally AS SELECT c0, c1, sum(try_cast(c2 AS BIGINT))::BIGINT AS plays, "
                f"count(*) AS n, bool_and(coalesce({_VALID}, false)) AS valid FROM ({rows}) "
                "GROUP BY GROUPING SETS ((c0), (c1))"
            )
            run(db, lambda: db.execute(tally), lines.part(0.1, 0.5), size)
            left_out = rejects(db, file)
            (valid,) = db.execute("SELECT coalesce(bool_and(valid), false) FROM tally").fetchall()[0]
            if not valid or len(left_out.starts) or left_out.blank_lines:
                raise _first_problem(path)
            songs, users = _most(db, "songs", "c1", n_songs), _most(db, "users", "c0", n_users)
            facts = db.execute(
                "SELECT count(c1), count(c0), sum(n) FILTER (c0 IS NOT NULL)::BIGINT, "
                "sum(plays) FILTER (c0 IS NOT NULL)::BIGINT FROM tally"
            ).fetchall()[0]
            db.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
            again = text_relation(file, header=False)
            kept = (
                "SELECT users.code AS user_code, songs.code AS song_code, place FROM "
                f"(SELECT c0, c1, row_number() OVER ()::INTEGER AS place FROM {again}) AS log "
                "JOIN songs ON log.c1 = songs.id JOIN users ON log.c0 = users.id"
            )
            found = run(db, lambda: db.execute(kept).fetchnumpy(), lines.part(0.5, 1), size)
    except WrongEncoding:
        raise _first_problem(path) from None
    lines.part(0, 1)(size, size)
    order = np.argsort(found["place"], kind="stable")
    return _Triplets(
        found["user_code"][order], found["song_code"][order], users[0], songs[0], songs[1],
        dict(zip(("songs", "users", "triplets", "plays"), facts, strict=True)),
    )  # fmt: skip


def _most(
    db: "DuckDBPyConnection", table: str, column: str, n: int
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The ids of the n with most plays, sorted, and the rank of each; a table of them with their codes."""
    db.execute(
        f"CREATE TEMP TABLE {table} AS "
        "SELECT id, rank, (row_number() OVER (ORDER BY id) - 1)::INTEGER AS code FROM "
        f"(SELECT {column} AS id, row_number() OVER (ORDER BY plays DESC, {column}) - 1 AS rank "
        f"FROM tally WHERE {column} IS NOT NULL) WHERE rank < {n}"
    )
    found = db.execute(f"SELECT id, rank FROM {table} ORDER BY code").fetchnumpy()
    return tuple(found["id"].tolist()), found["rank"].astype(np.int64)


def _first_problem(path: Path) -> InvalidInput:
    """What is wrong with the first line that is no triplet."""
    lines = Lines(path)
    for first, block in lines.blocks():
        for number, line in enumerate(block, first):
            if problem := _problem(line):
                return lines.error(number, problem)
    return InvalidInput(f"{path.name} is damaged; fetch it again")


def _problem(line: bytes) -> str:
    """What is wrong with a line, empty for a triplet."""
    fields = line.split(b"\t")
    if len(fields) != 3:
        return f"expected 3 fields (user, song, play count) separated by tabs, got {len(fields)}"
    user, song, count = (field[:60].decode("ascii", "backslashreplace") for field in fields)
    if user.startswith(SONG) and not song.startswith(SONG):
        return f"expected user, song, play count, got the song {user!r} first; are the columns swapped?"
    if not song.startswith(SONG) or not fields[1].isascii():
        return f"a song id must be ASCII text that begins with {SONG}, got {song!r}"
    if not user or not fields[0].isascii():
        return f"a user id must be ASCII text that is not empty, got {user!r}"
    # Python reads +1 and 1_000 as numbers, too.
    if fields[2].isdigit() and 0 < int(fields[2]) <= MOST_PLAYS:
        return ""
    return f"a play count must be a whole number from 1 to {MOST_PLAYS}, got {count!r}"


def _read_tracks(lines: Lines, codes: dict[str, int]) -> tuple[tuple[str, ...], dict[str, int], int]:
    """What each song is called, the song of every track that has one, and how many tracks are listed."""
    number = 0
    names: dict[int, str] = {}
    tracks: dict[str, int] = {}
    for number, line in lines:
        fields = line.split("<SEP>", 3)
        if len(fields) != 4:
            raise lines.error(
                number,
                f"expected 4 fields (track, song, artist, title) separated by <SEP>, got {len(fields)}",
            )
        track, song, artist, title = fields
        if song in codes:
            tracks[track] = codes[song]
            names.setdefault(codes[song], f"{artist} – {title}")
    if not names:
        raise InvalidInput(
            f"{lines.name} has none of the {len(codes)} most played songs; do the files belong together?"
        )
    return tuple(names.get(code, song) for song, code in codes.items()), tracks, number


def _read_more_tracks(lines: Lines, codes: dict[str, int], tracks: dict[str, int]) -> None:
    """Tracks that only the Taste Profile's own list has are added; a song may have none there."""
    for number, line in lines:
        song, *its_tracks = line.split("\t")
        if not song.startswith(SONG):
            raise lines.error(number, f"expected a song id that begins with {SONG} first, got {song[:60]!r}")
        if song in codes:
            for track in its_tracks:
                tracks.setdefault(track, codes[song])


def _read_genres(
    lines: Lines, tracks: dict[str, int], n_songs: int, *, minority: bool
) -> tuple[tuple[str, ...], ...]:
    """The labels that each song's tracks have, sorted."""
    groups: list[set[str]] = [set() for _ in range(n_songs)]
    for number, line in lines:
        if not line or line.startswith("#"):
            continue
        track, *labels = line.split("\t")
        if not 1 <= len(labels) <= 2 or not all(labels):
            raise lines.error(
                number, f"expected a track, its genre and perhaps a minority genre, got {line[:60]!r}"
            )
        if track in tracks:
            groups[tracks[track]].update(labels if minority else labels[:1])
    if not any(groups):
        raise InvalidInput(
            f"{lines.name} has no track of the {n_songs} most played songs, so that all groups would be "
            "empty; take another genre file, or move it away to do without groups"
        )
    return tuple(tuple(sorted(labels)) for labels in groups)
