"""Songs of the Million Song data set and who played them."""

from array import array
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.ranking import most_first, places
from firstclick.data.sources.lines import Lines, lines_of, refuse_cut_short
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.errors import InvalidInput
from firstclick.parameters import param

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
    al. 2016, section 4.5). We take an event to be one play: songs and users are ranked by the sum of their
    play counts, over all rows and independently of each other. Among equals the lower id is kept. Where
    there are fewer than asked for, all are taken.

    A song is called by the artist and title of its first track. Its groups are the labels of all its
    tracks in the genre file: the majority labels, with `minority=yes` the minority labels too. Without a
    genre file the groups are unknown. Facts count the whole files, before anything was left out: `songs`
    are those that were played, `tracks` the lines of unique_tracks.txt.
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
        users, songs = _Tally(), _Tally(begin=SONG)
        user_codes, song_codes = _read_triplets(lines["triplets"], users, songs)
        refuse_cut_short(files["triplets"])
        facts = {
            "songs": len(songs), "users": len(users), "triplets": len(user_codes), "plays": sum(songs.plays)
        }  # fmt: skip
        new_users, user_ids, _ = users.most(self.n_users)
        new_songs, song_ids, ranks = songs.most(self.n_items)
        del users, songs  # all ids together take about as much memory as the rows
        kept_users = new_users[user_codes]
        kept_songs = new_songs[song_codes]
        both = (kept_users >= 0) & (kept_songs >= 0)
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
            users=kept_users[both],
            items=kept_songs[both],
            attracted=np.ones(np.count_nonzero(both), np.bool_),
            user_ids=user_ids,
            item_ids=song_ids,
            item_names=names,
            item_groups=groups,
            item_ranks=ranks,
            facts=facts,
        )


class _Tally(dict[bytes, int]):
    """Id -> code in order of first appearance, and the plays of each; a new id gets its code on the way."""

    def __init__(self, begin: str = "") -> None:
        self.begin = begin.encode()
        self.plays = array("q")

    def __missing__(self, name: bytes) -> int:
        if not name or not name.startswith(self.begin) or not name.isascii():
            raise ValueError
        code = self[name] = len(self)
        self.plays.append(0)
        return code

    def most(self, n: int) -> tuple[Codes, tuple[str, ...], NDArray[np.int64]]:
        """New codes of all, -1 for those left out; the ids of the n with most plays, sorted; their ranks."""
        ids = list(self)
        ranking = most_first(np.frombuffer(self.plays, np.int64), ids)[:n]
        kept = sorted(ranking.tolist(), key=ids.__getitem__)
        ranks = places(ranking, len(ids))[kept].astype(np.int64)
        return places(kept, len(ids)), tuple(ids[code].decode() for code in kept), ranks


def _read_triplets(lines: Lines, users: _Tally, songs: _Tally) -> tuple[Codes, Codes]:
    """The user and the song of every line; both tallies have their plays."""
    user_codes, song_codes = array("i"), array("i")
    user_plays, song_plays = users.plays, songs.plays
    latest, user_code = None, -1
    for first, block in lines.blocks():
        for number, line in enumerate(block, first):
            try:
                user, song, count = line.split(b"\t")
                plays = int(count)
                # Python reads +1 and 1_000 as numbers, too.
                if not 0 < plays <= MOST_PLAYS or not count.isdigit():
                    raise ValueError
                # A user's rows follow one another: most need no look into a million users.
                if user != latest:
                    user_code = users[user]
                    latest = user
                song_code = songs[song]
            except ValueError:
                raise lines.error(number, _problem(line)) from None
            user_plays[user_code] += plays
            song_plays[song_code] += plays
            user_codes.append(user_code)
            song_codes.append(song_code)
    return np.frombuffer(user_codes, np.intc), np.frombuffer(song_codes, np.intc)


def _problem(line: bytes) -> str:
    """What is wrong with a line that is no triplet."""
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
