"""MovieLens: who gave which movie how many stars."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from firstclick.data.interactions import Interactions
from firstclick.data.logs import read_interactions
from firstclick.data.sources.lines import refuse_cut_short
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.errors import InvalidInput
from firstclick.files.reading import reading
from firstclick.files.table import read_table
from firstclick.files.text_file import WrongEncoding, open_lines
from firstclick.parameters import param

# How the files of ratings are read, by their endings.
RATINGS: dict[str, dict[str, Any]] = {
    ".dat": {"separator": "::", "user_column": 0, "item_column": 1, "value_column": 2},
    ".csv": {"separator": ",", "user_column": "userId", "item_column": "movieId", "value_column": "rating"},
    ".data": {"separator": "\t", "user_column": 0, "item_column": 1, "value_column": 2},
}
HEADER_OF_MOVIES = ["movieId", "title", "genres"]
# Fields of u.item before the flags of genres: id, title, two dates, an address.
BEFORE_FLAGS = 5
# What the files write for movies whose genres are not known.
NO_GENRE = {"(no genres listed)", "unknown", ""}

AS_PUBLISHED = "take the file as it is in its archive"

# Where it is, id, title, genres.
Movie = tuple[str, str, str, list[str]]


class MovieLens(Source):
    """MovieLens 1M or one of its siblings: more than 3 stars attract (Zong et al., section 4.6).

    Items are the movies that were rated, liked or not: 3,706 of the 3,883 in the list of 1M. Groups are
    genres. A rated movie that is not in the list is an error: with an incomplete list, genres would silently
    lose movies.
    """

    name = "movielens"
    title = "MovieLens"
    folders: ClassVar[tuple[str, ...]] = (
        "ml-1m", "movielens", "ml-10M100K", "ml-20m", "ml-25m", "ml-32m", "ml-latest", "ml-latest-small",
        "ml-100k",
    )  # fmt: skip
    # Of 1M and 10M; of 20M, 25M, 32M and latest; of 100K.
    forms: ClassVar[tuple[dict[str, str], ...]] = (
        {"ratings": "ratings.dat", "movies": "movies.dat"},
        {"ratings": "ratings.csv", "movies": "movies.csv"},
        {"ratings": "u.data", "movies": "u.item", "genres": "u.genre"},
    )
    above: float = param(3.0, "a rating attracts if it has more stars than this", at_least=0, below=5)

    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        files = self.find(path)
        ratings = files["ratings"]
        # First, because it is short: what is wrong with it is said at once.
        movies = _movies(files)
        form = RATINGS[ratings.suffix]
        try:
            read = read_interactions(ratings, above=self.above, strict=True, progress=progress, **form)
        except WrongEncoding as error:
            raise InvalidInput(f"{error.owner}: bytes that are not UTF-8; {AS_PUBLISHED}") from None
        refuse_cut_short(ratings)
        for code, movie in enumerate(read.item_ids):
            if movie not in movies:
                header = isinstance(form["user_column"], str)
                line = int(np.argmax(read.items == code)) + 1 + header
                raise InvalidInput(
                    f"{ratings.name} line {line}: movie {movie!r} is not in {files['movies'].name}; "
                    "take both files from one archive"
                )
        return replace(
            read,
            item_names=tuple(movies[movie][0] for movie in read.item_ids),
            item_groups=tuple(movies[movie][1] for movie in read.item_ids),
            facts={"ratings": len(read.users), "movies": len(read.item_ids), "users": len(read.user_ids)},
        )


def _movies(files: dict[str, Path]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Title and genres of every listed movie, by its id."""
    path = files["movies"]
    if path.suffix == ".dat":
        listed = _listed_with_colons(path)
    elif path.suffix == ".csv":
        listed = _listed_with_header(path)
    else:
        listed = _listed_with_flags(path, _genres(files["genres"]))
    movies: dict[str, tuple[str, tuple[str, ...]]] = {}
    for where, movie, title, genres in listed:
        if movie in movies:
            raise InvalidInput(f"{where}: movie {movie!r} is listed for the second time")
        movies[movie] = title, tuple(genre for genre in dict.fromkeys(genres) if genre not in NO_GENRE)
    if not movies:
        raise InvalidInput(f"{path.name} is empty")
    for kind, file in files.items():
        if kind != "ratings":
            refuse_cut_short(file)
    return movies


def _listed_with_colons(path: Path) -> Iterator[Movie]:
    for where, line in _lines(path):
        # From both ends: a title may hold colons, also two in a row.
        movie, first, rest = line.partition("::")
        title, last, genres = rest.rpartition("::")
        if not (first and last):
            raise InvalidInput(f"{where}: expected MovieID::Title::Genres, got {line!r}")
        yield where, movie.strip(), title.strip(), genres.strip().split("|")


def _listed_with_header(path: Path) -> Iterator[Movie]:
    table = read_table(path, separator=",", encoding=_encoding(path), strict=True)
    if table.names != HEADER_OF_MOVIES:
        raise InvalidInput(
            f"{path.name} line 1: expected {','.join(HEADER_OF_MOVIES)}, got {','.join(table.names)!r}"
        )
    for row, (movie, title, genres) in enumerate(zip(*table.columns, strict=True)):
        yield table.where(row), movie or "", title or "", (genres or "").split("|")


def _listed_with_flags(path: Path, genres: list[str]) -> Iterator[Movie]:
    for where, line in _lines(path):
        fields = line.split("|")
        flags = fields[BEFORE_FLAGS:]
        if len(flags) != len(genres) or not set(flags) <= {"0", "1"}:
            raise InvalidInput(
                f"{where}: expected {BEFORE_FLAGS} fields and a flag of 0 or 1 for each of {len(genres)} "
                f"genres, got {line!r}"
            )
        chosen = [genre for genre, flag in zip(genres, flags, strict=True) if flag == "1"]
        yield where, fields[0].strip(), fields[1].strip(), chosen


def _genres(path: Path) -> list[str]:
    genres: list[str] = []
    for where, line in _lines(path):
        genre, _, place = line.partition("|")
        if place.strip() != str(len(genres)):
            raise InvalidInput(f"{where}: expected genre|{len(genres)}, got {line!r}")
        genres.append(genre.strip())
    if not genres:
        raise InvalidInput(f"{path.name} is empty")
    return genres


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    with open_lines(path, _encoding(path)) as lines:
        for number, line in lines:
            if text := line.rstrip():
                yield f"{path.name} line {number}", text


def _encoding(path: Path) -> str:
    # 100K and 1M are ISO-8859-1, the later ones UTF-8, which titles with an accent are not by accident.
    with reading(path):
        content = path.read_bytes()
    if (zero := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise InvalidInput(
            f"{path.name} line {line}: bytes that are neither UTF-8 nor ISO-8859-1; {AS_PUBLISHED}"
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8-sig"
