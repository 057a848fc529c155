import numpy as np
import pytest

from firstclick.data import feedback_matrix, keep_items
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.movielens import MovieLens
from firstclick.errors import InvalidInput, UnknownName

# User, movie, stars: 3 users, 4 of 5 movies rated, ids with gaps; nobody likes 31, nobody rates 8.
RATINGS = [(12, 7, 5), (2, 31, 3), (12, 100, 4), (2, 7, 1), (5, 31, 2), (5, 9, 4), (5, 100, 5)]
MOVIES = [
    (7, "Amélie: A Life (2001)", ["Comedy", "Romance"]),
    (8, "Nobody's Film (1999)", ["Adventure"]),
    (9, "Run:: Lola, Run (1998)", ["Adventurers"]),
    (31, "Plain (1990)", []),
    (100, "Quoted, The (1995)", ["Adventure", "Comedy"]),
]
LIKED = {("12", "7"), ("12", "100"), ("5", "9"), ("5", "100")}
FLAGS = ["unknown", "Adventure", "Adventurers", "Comedy", "Romance"]


def dat(folder, encoding="iso-8859-1"):
    folder.mkdir(exist_ok=True)
    (folder / "ratings.dat").write_text("".join(f"{u}::{m}::{r}::97830\n" for u, m, r in RATINGS))
    movies = "".join(f"{m}::{title}::{'|'.join(genres)}\n" for m, title, genres in MOVIES)
    (folder / "movies.dat").write_bytes(movies.encode(encoding))
    return folder


def csv(folder):
    folder.mkdir(exist_ok=True)
    ratings = "".join(f"{u},{m},{r}.0,97830\r\n" for u, m, r in RATINGS)
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\r\n" + ratings, newline="")
    movies = "".join(
        f'{m},"{title}",{"|".join(genres) or "(no genres listed)"}\n' for m, title, genres in MOVIES
    )
    (folder / "movies.csv").write_text("movieId,title,genres\n" + movies, encoding="utf-8")
    return folder


def tab(folder):
    folder.mkdir(exist_ok=True)
    (folder / "u.data").write_text("".join(f"{u}\t{m}\t{r}\t97830\n" for u, m, r in RATINGS))
    (folder / "u.genre").write_text("".join(f"{genre}|{i}\n" for i, genre in enumerate(FLAGS)) + "\n")
    lines = ""
    for m, title, genres in MOVIES:
        flags = "|".join("1" if genre in (genres or ["unknown"]) else "0" for genre in FLAGS)
        lines += f"{m}|{title}|01-Jan-1995||http://example.org/{m}|{flags}\n"
    (folder / "u.item").write_bytes(lines.encode("iso-8859-1"))
    return folder


def liked(read):
    chosen = zip(read.users[read.attracted], read.items[read.attracted], strict=True)
    return {(read.user_ids[user], read.item_ids[item]) for user, item in chosen}


def refusal(path):
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        MovieLens().load(path)
    return str(caught.value)


@pytest.mark.parametrize("write", [dat, csv, tab])
def test_every_form_gives_the_same_interactions(tmp_path, write):
    read = MovieLens().load(write(tmp_path))
    assert read.user_ids == ("2", "5", "12")
    assert read.item_ids == ("7", "9", "31", "100")
    assert liked(read) == LIKED
    assert read.item_names == tuple(title for movie, title, _ in MOVIES if movie != 8)
    assert read.item_groups == (("Comedy", "Romance"), ("Adventurers",), (), ("Adventure", "Comedy"))
    assert read.facts == {"ratings": 7, "movies": 4, "users": 3}


def test_a_genre_is_a_whole_word_not_a_part_of_one(tmp_path):
    read = MovieLens().load(dat(tmp_path))
    assert read.groups()["Adventure"].tolist() == [3]
    assert [read.names[item] for item in read.groups()["Comedy"]] == [
        "Amélie: A Life (2001)",
        "Quoted, The (1995)",
    ]


def test_titles_are_utf_8_or_else_latin_1(tmp_path):
    for encoding in ("utf-8", "iso-8859-1", "utf-8-sig"):
        assert MovieLens().load(dat(tmp_path, encoding)).names[0] == "Amélie: A Life (2001)"


def test_half_stars_and_other_thresholds_count(tmp_path):
    folder = dat(tmp_path)
    (folder / "ratings.dat").write_text("1::7::3.5::0\n2::9::3::0\n2::100::4.5::0\n")
    assert liked(MovieLens().load(folder)) == {("1", "7"), ("2", "100")}
    assert liked(make_source("movielens:above=4").load(folder)) == {("2", "100")}


def test_the_files_are_found_in_the_folder_given_or_in_a_usual_one_below(tmp_path):
    assert liked(MovieLens().load(dat(tmp_path / "ml-1m"))) == LIKED
    assert MovieLens().find(tmp_path) == {
        "ratings": tmp_path / "ml-1m" / "ratings.dat",
        "movies": tmp_path / "ml-1m" / "movies.dat",
    }
    assert liked(MovieLens().load(tmp_path)) == LIKED
    assert source_classes()["movielens"] is MovieLens


def test_progress_is_told_in_bytes(tmp_path):
    folder = dat(tmp_path)
    seen = []
    MovieLens().load(folder, lambda done, total: seen.append((done, total)))
    size = (folder / "ratings.dat").stat().st_size
    assert seen[-1] == (size, size)


def test_missing_files_are_named(tmp_path):
    wanted = "ratings.dat and movies.dat, or ratings.csv and movies.csv, or u.data and u.item and u.genre"
    assert refusal(tmp_path) == f"{tmp_path} has no MovieLens data: expected {wanted}"
    (dat(tmp_path) / "movies.dat").unlink()
    assert refusal(tmp_path) == f"{tmp_path} has no MovieLens data: expected {wanted}"
    assert refusal(tmp_path / "none") == f"{tmp_path / 'none'}: no such file or folder"
    assert refusal(None) == f"movielens needs the path of its files: {wanted}"


@pytest.mark.parametrize("write", [dat, csv, tab])
def test_a_rated_movie_that_is_not_listed_is_refused_with_its_line(tmp_path, write):
    files = MovieLens().find(write(tmp_path))
    movies = files["movies"].read_bytes().splitlines(keepends=True)
    files["movies"].write_bytes(b"".join(line for line in movies if not line.startswith(b"9")))
    line = RATINGS.index((5, 9, 4)) + 1 + (write is csv)
    assert refusal(tmp_path) == (
        f"{files['ratings'].name} line {line}: movie '9' is not in {files['movies'].name}; "
        "take both files from one archive"
    )


NEVER_ENDS = (
    "a field that is badly quoted, or longer than 2,097,152 bytes; end the quote, and "
    "double quotes within quotes"
)
CUT_SHORT = "; the file ends within this line: is it cut short?"
NO_END = "the last line has no end; is the file cut short? fetch it again, or end the line if it is whole"
NOT_UTF_8 = "bytes that are not UTF-8; take the file as it is in its archive"
NOT_TEXT = "bytes that are neither UTF-8 nor ISO-8859-1; take the file as it is in its archive"
FLAGS_EXPECTED = "expected 5 fields and a flag of 0 or 1 for each of 5 genres"


@pytest.mark.parametrize(
    ("write", "file", "content", "message"),
    [
        (dat, "ratings.dat", b"", " is empty"),
        (dat, "ratings.dat", b"1::7::5::0\n1::9::4", " line 2: expected 4 fields, got 3" + CUT_SHORT),
        (dat, "ratings.dat", b"1::7::5::0\n1::9::x::0\n", " line 2: value 'x' in column 2 is not a number"),
        (dat, "ratings.dat", b"1::7::5::0\n1::\xe9::5::0\n", " line 2: " + NOT_UTF_8),
        (dat, "ratings.dat", b"<!DOCTYPE html>\n", " line 1: a web page, not data; fetch the file itself"),
        (dat, "ratings.dat", "1::7::5::0\n".encode("utf-16"), " line 1: " + NOT_UTF_8),
        (dat, "ratings.dat", b"1::7::5::0\n1::9::4::978", f" line 2: {NO_END}"),
        (dat, "ratings.dat", b"1::7::5::0\n1::9999::4::0", f" line 2: {NO_END}"),
        (csv, "ratings.csv", b"userId,movieId,rating\n1,7,4.", f" line 2: {NO_END}"),
        (tab, "u.data", b"1\t7\t4\t978", f" line 1: {NO_END}"),
        (dat, "movies.dat", b"7::A::B\n9::C::Dra", f" line 2: {NO_END}"),
        (csv, "movies.csv", b"movieId,title,genres\n7,A,Dra", f" line 2: {NO_END}"),
        (dat, "movies.dat", "7::A::B\n".encode("utf-16"), f" line 1: {NOT_TEXT}"),
        (dat, "movies.dat", b"7::A::B\n9::C\0::D\n", f" line 2: {NOT_TEXT}"),
        (dat, "movies.dat", b"<html>", " line 1: a web page, not data; fetch the file itself"),
        (dat, "movies.dat", b"\n", " is empty"),
        (dat, "movies.dat", b"<html>\n", " line 1: a web page, not data; fetch the file itself"),
        (dat, "movies.dat", b"7::A::B\n9::Run\n", " line 2: expected MovieID::Title::Genres, got '9::Run'"),
        (dat, "movies.dat", b"7::A::B\n7::C::D\n", " line 2: movie '7' is listed for the second time"),
        (csv, "movies.csv", b"id,name\n7,A\n", " line 1: expected movieId,title,genres, got 'id,name'"),
        (csv, "movies.csv", b"movieId,title,genres\n7,A\n", " line 2: expected 3 fields, got 2"),
        (csv, "movies.csv", b'movieId,title,genres\n7,"A', f" line 2: {NEVER_ENDS}"),
        (
            csv,
            "ratings.csv",
            b"userId,movieId,stars\n1,7,5\n",
            " has no column 'rating'; its columns are userId, movieId, stars",
        ),
        (tab, "u.genre", b"", " is empty"),
        (tab, "u.genre", "\n".join(f"{g}|{i}" for i, g in enumerate(FLAGS)).encode(), f" line 5: {NO_END}"),
        (tab, "u.genre", b"unknown|0\nAdventure|2\n", " line 2: expected genre|1, got 'Adventure|2'"),
        (tab, "u.item", b"9|B|||x|0|1|0|0\n", f" line 1: {FLAGS_EXPECTED}, got '9|B|||x|0|1|0|0'"),
        (tab, "u.item", b"7|A|||x|0|1|0|0|7\n", f" line 1: {FLAGS_EXPECTED}, got '7|A|||x|0|1|0|0|7'"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line(tmp_path, write, file, content, message):
    (write(tmp_path) / file).write_bytes(content)
    assert refusal(tmp_path) == file + message


def test_movielens_1m_has_its_known_numbers(movielens_1m):
    read = MovieLens().load(movielens_1m)
    assert (len(read.user_ids), len(read.item_ids), len(read.users)) == (6040, 3706, 1_000_209)
    assert read.attracted.sum() == 575_281
    # No pair occurs twice in this file, so the matrix loses nothing.
    assert feedback_matrix(read).nnz == 575_281
    assert read.facts == {"ratings": 1_000_209, "movies": 3706, "users": 6040}
    assert read.names[-1] == "Contender, The (2000)"
    assert any("Misérables" in name for name in read.names)
    # 283 are listed, and two of them were never rated.
    adventure = keep_items(read, read.groups()["Adventure"])
    assert adventure.user_ids == read.user_ids
    assert len(adventure.item_ids) == 281
    assert np.bincount(adventure.items).min() > 0
