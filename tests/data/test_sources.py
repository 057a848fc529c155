"""Data sources of files: what all of them do, and what is each one's own."""

# ruff: noqa: RUF012 - tables of the classes, which no test changes

import json

import numpy as np
import pytest

from firstclick.data import feedback_matrix, keep_items
from firstclick.data.sources import lines as lines_module
from firstclick.data.sources import make_source
from firstclick.data.sources.lines import Lines
from firstclick.errors import FirstclickError, InvalidInput

INCOMPLETE = "; the file ends within this line: is it complete?"
CUT_SHORT = "; the file ends within this line: is it cut short?"
NO_END = "the last line has no end; is the file cut short? fetch it again, or end the line if it is whole"
CONVERT = "bytes that are not UTF-8; convert the file to UTF-8"
FROM_ARCHIVE = "bytes that are not UTF-8; take the file as it is in its archive"
ONE_ARCHIVE = "; take both files from one archive"
NOT_TEXT = "bytes that are neither UTF-8 nor ISO-8859-1; take the file as it is in its archive"


def pairs(read):
    """User and item of each row that attracted."""
    rows = zip(read.users[read.attracted], read.items[read.attracted], strict=True)
    return [(read.user_ids[user], read.item_ids[item]) for user, item in rows]


def with_line(text, number, line):
    """The text with another line of this number, from 1."""
    lines = text.split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


class SourceTests:
    """Tests that every source of files passes; \\udcXX in a text is the byte XX."""

    name, title = "", ""
    defaults = {}
    files = {}  # by name: text; the first is that of the rows
    needed = ()  # the files without which it is refused; all if none
    wanted = ""  # how it names them
    measured = None  # how many of the files progress counts; all if None
    folders = ()
    expected = {}  # what these files contain
    pairs = set()  # who is attracted by what
    cut_off = []  # file, how many characters of its end are missing, line, problem
    wrong = []  # file, line, what it is, problem

    @pytest.fixture
    def load(self, tmp_path):
        """`load({file: another content}, **settings)`; None leaves a file out."""

        def load(changed=(), *, folder="", progress=lambda done, total: None, **settings):
            for path in tmp_path.rglob("*.*"):
                path.unlink()
            (tmp_path / folder).mkdir(exist_ok=True)
            for name, content in (self.files | dict(changed)).items():
                if content is not None:
                    encoded = (
                        content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
                    )
                    (tmp_path / folder / name).write_bytes(encoded)
            spec = ",".join(f"{setting}={value}" for setting, value in settings.items())
            return make_source(f"{self.name}:{spec}" if spec else self.name).load(tmp_path, progress)

        return load

    @pytest.fixture
    def refusal(self, load):
        def refusal(changed):
            with pytest.raises(FirstclickError) as caught:
                load(changed)
            return str(caught.value)

        return refusal

    def test_small_set_is_taken_whole(self, load):
        read = load()
        assert {name: getattr(read, name) for name in self.expected} == self.expected
        assert sorted(pairs(read)) == sorted(self.pairs)
        assert feedback_matrix(read).shape == (len(read.user_ids), len(read.item_ids))
        assert make_source(self.name).settings == self.defaults

    def test_files_are_found_in_their_usual_folders(self, load):
        for folder in self.folders:
            assert len(load(folder=folder).users) >= len(self.pairs)

    def test_missing_files_are_named(self, refusal, tmp_path):
        for name in self.needed or self.files:
            assert refusal({name: None}) == f"{tmp_path} has no {self.title} data: expected {self.wanted}"
        with pytest.raises(InvalidInput, match=f"^{self.name} needs the path of its files: {self.wanted}$"):
            make_source(self.name).load(None)
        with pytest.raises(InvalidInput, match=r"none: no such file or folder$"):
            make_source(self.name).load(tmp_path / "none")

    def test_progress_rises_to_the_bytes_of_all_files(self, load, tmp_path):
        seen = []
        load(progress=lambda *progress: seen.append(progress))
        size = sum((tmp_path / name).stat().st_size for name in list(self.files)[: self.measured])
        assert seen[-1] == (size, size)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    def test_cut_off_files_are_refused(self, refusal):
        for name, missing, line, problem in self.cut_off:
            assert refusal({name: self.files[name][:-missing]}) == f"{name} line {line}: {problem}"

    def test_empty_files_and_web_pages_are_refused(self, refusal):
        for name in self.needed or self.files:
            for text in ("", "\n", "\r\n\n"):
                assert refusal({name: text}) == f"{name} is empty"
            for text in ("<!DOCTYPE html>\n<p>Sign in</p>\n", "\ufeff <html>"):
                assert refusal({name: text}) == f"{name} line 1: a web page, not data; fetch the file itself"

    def test_wrong_lines_are_named(self, refusal):
        for name, number, line, problem in self.wrong:
            text = with_line(self.files[name], number, line)
            assert refusal({name: text}) == f"{name} line {number}: {problem}"

    def test_line_ends_and_blank_lines_at_the_end_do_not_matter(self, load):
        name, text = next(iter(self.files.items()))
        for other in (text.replace("\n", "\r\n"), text + "\n\r\n"):
            assert sorted(pairs(load({name: other}))) == sorted(self.pairs)


def business(business_id, name, categories):
    return {"business_id": business_id, "name": name, "categories": categories, "stars": 4.0}


def review(user, business_id, number=0):
    return {"review_id": f"r{number}", "user_id": user, "business_id": business_id, "text": "é\u2028\n!"}


def as_lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


# 4 restaurants of 6 businesses; "Restaurants and Bars" is not one, though the word is in it.
BUSINESSES = [
    ("b2", "Joe's", ["American (Traditional)", "Restaurants", "Burgers"]),
    ("b7", "Chez Émile", ["Restaurants", "French"]),
    ("b9", "A shop", ["Shopping"]),
    ("b5", "Nova", ["Bars", "American (New)", "Restaurants"]),
    ("b1", "Empty", ["Restaurants"]),
    ("b3", "Almost", ["Restaurants and Bars", "American (New)"]),
]
# Five users review restaurants, "shopper" none. "fan" writes about b7 three times; b1 has no review.
REVIEWS = [
    ("shopper", "b9"), ("late", "b2"), ("fan", "b7"), ("fan", "b7"), ("fan", "b7"), ("walker", "b5"),
    ("walker", "b2"), ("walker", "b9"), ("eater", "b5"), ("eater", "b2"), ("eater", "b7"), ("third", "b5"),
    ("third", "b3"), ("once", "b2"),
]  # fmt: skip
REVIEW, BUSINESS = "yelp_academic_dataset_review.json", "yelp_academic_dataset_business.json"
TEXT = "must be a text that is not empty, got"
CATEGORIES = "categories must be a list of texts, one text or null, got"


class TestYelp(SourceTests):
    name, title = "yelp", "Yelp"
    defaults = {"n_items": 3000, "n_users": 20000, "users_by": "reviews"}
    files = {
        REVIEW: as_lines(review(*entry, number) for number, entry in enumerate(REVIEWS)),
        BUSINESS: as_lines(business(*entry) for entry in BUSINESSES),
    }
    wanted = f"{BUSINESS} and {REVIEW}, or business.json and review.json"
    folders = ("yelp", "yelp_dataset", "yelp_dataset_challenge_academic_dataset")
    expected = {
        "user_ids": ("eater", "fan", "late", "once", "third", "walker"),
        "item_ids": ("b2", "b5", "b7"),
        "item_names": ("Joe's", "Nova", "Chez Émile"),
        "item_groups": (
            ("American (Traditional)", "Burgers", "American"),
            ("Bars", "American (New)", "American"),
            ("French",),
        ),
        "facts": {"businesses": 6, "restaurants": 4, "reviews": 14, "users": 7},
    }  # fmt: skip
    pairs = {(user, b) for user, b in REVIEWS if b in {"b7", "b2", "b5"}}
    cut_off = [(REVIEW, 60, 14, """expected one JSON object, got '{"review_id": "r13'""" + INCOMPLETE)]
    wrong = [
        (REVIEW, 3, "not json", "expected one JSON object, got 'not json'"),
        (REVIEW, 3, "[1, 2]", "expected one JSON object, got '[1, 2]'"),
        (REVIEW, 3, "[" * 100_000, "expected one JSON object, got '" + "[" * 40 + "'"),
        (REVIEW, 3, '{"user_id": "u"}', "no 'business_id' among the keys user_id"),
        (REVIEW, 3, '{"business_id": 5, "user_id": "u"}', f"business_id {TEXT} 5"),
        (REVIEW, 3, '{"business_id": "b2", "user_id": ""}', f"user_id {TEXT} ''"),
        (REVIEW, 1, '{"business_id": "b2", "categories": null}',
         "expected a review, got a business; are the business and review files swapped?"),
        (BUSINESS, 1, '{"business_id": "b2", "user_id": "u"}',
         "expected a business, got a review; are the business and review files swapped?"),
        (BUSINESS, 2, '{"name": "J\udcf6e"}', CONVERT),
        (BUSINESS, 4, '{"business_id": "b0", "name": "x"}',
         "no 'categories' among the keys business_id, name"),
        (BUSINESS, 4, '{"business_id": "b0", "name": "x", "categories": ["Restaurants", 3]}',
         CATEGORIES + " ['Restaurants', 3]"),
        (BUSINESS, 4, '{"business_id": "b0", "name": 7, "categories": ["Restaurants"]}',
         f"name {TEXT} 7"),
        (BUSINESS, 4, '{"business_id": "b7", "name": "x", "categories": "Restaurants"}',
         "business_id 'b7' is already on an earlier line"),
    ]  # fmt: skip

    def test_other_editions_have_other_names_and_categories_as_text(self, load):
        new = [business(*entry[:2], ", ".join(entry[2])) for entry in BUSINESSES]
        new.append(business("b8", "Nothing known", None))
        read = load(
            {**dict.fromkeys(self.files), "review.json": self.files[REVIEW], "business.json": as_lines(new)}
        )
        assert (read.item_ids, read.item_groups) == (self.expected["item_ids"], self.expected["item_groups"])
        for other in (self.files[REVIEW][:-1], "\ufeff" + self.files[REVIEW]):
            assert sorted(pairs(load({REVIEW: other}))) == sorted(self.pairs)

    def test_restaurants_without_a_name_are_called_by_their_id(self, load):
        for name in ("", None):
            businesses = [
                business(b, name if b == "b5" else called, groups) for b, called, groups in BUSINESSES
            ]
            assert load({BUSINESS: as_lines(businesses)}).item_names == ("Joe's", "b5", "Chez Émile")

    def test_files_without_restaurants_are_refused(self, refusal):
        message = refusal({BUSINESS: as_lines([business("b9", "A shop", ["Shopping"])])})
        assert "1 businesses, but none in the category 'Restaurants'" in message
        message = refusal({REVIEW: as_lines([review("u", "b9"), review("u", "unknown")])})
        assert "2 reviews, but none of a restaurant" in message

    def test_larger_set_equals_a_slow_count(self, load):
        rng = np.random.default_rng(5)
        businesses = [
            business(f"b{n:03}", f"place {n}", ["Restaurants"] if n % 3 else "Shopping") for n in range(40)
        ]
        drawn = zip(60 * rng.random(900) ** 2, 40 * rng.random(900) ** 2, strict=True)
        entries = [(f"u{int(u)}", f"b{int(b):03}") for u, b in drawn]
        files = {BUSINESS: as_lines(businesses), REVIEW: as_lines(review(*entry) for entry in entries)}
        wanted = {(u, b) for u, b in entries if int(b[1:]) % 3}
        by_user, by_item = (
            {x: sum(p[k] == x for p in wanted) for x in {p[k] for p in wanted}} for k in (0, 1)
        )
        ranked = sorted(by_item, key=lambda b: (-by_item[b], b))
        active = sorted(by_user, key=lambda u: (-by_user[u], u))
        # First met: by the reviews of the most reviewed restaurant in file order, then of the next.
        met = list(dict.fromkeys(u for b in ranked for u, at in entries if at == b))
        for n_items, n_users in ((11, 17), (1, 30), (100, 1)):
            for users_by, users in (("reviews", active), ("first-met", met)):
                read = load(files, n_items=n_items, n_users=n_users, users_by=users_by)
                kept_users, kept_items = users[:n_users], ranked[:n_items]
                assert (read.user_ids, read.item_ids) == (
                    tuple(sorted(kept_users)),
                    tuple(sorted(kept_items)),
                )
                kept = [(u, b) for u, b in wanted if u in kept_users and b in kept_items]
                assert sorted(pairs(read)) == sorted(kept)
                assert read.item_ranks.tolist() == [ranked.index(item) for item in read.item_ids]


# 5 users and 4 songs. By plays: SOB 12, SOA 9, SOD 9, SOC 1; by rows SOA leads.
TRIPLETS = [
    ("u50", "SOA", 1), ("u50", "SOB", 11), ("u3", "SOA", 2), ("u3", "SOC", 1), ("u3", "SOB", 1),
    ("u7", "SOD", 9), ("u1", "SOA", 3), ("u9", "SOA", 3),
]  # fmt: skip
TRACKS = [
    ("TR9", "SOZ", "Nobody", "Unplayed"),
    ("TR1", "SOB", "Björk", "Jóga"),
    ("TR2", "SOA", "First", "Take<SEP>Two"),
    ("TR3", "SOA", "Second", "Take"),
    ("TR4", "SOC", "AC/DC", "Rock"),
]
PLAYED, LISTED, TASTE = "train_triplets.txt", "unique_tracks.txt", "taste_profile_song_to_tracks.txt"
FIELDS = "expected 3 fields (user, song, play count) separated by tabs, got "
PARTS = "expected 4 fields (track, song, artist, title) separated by <SEP>, got "
PLAYS = "a play count must be a whole number from 1 to 2147483647, got "


def triplet_lines(triplets):
    return "".join(f"{user}\t{song}\t{plays}\n" for user, song, plays in triplets)


class TestMillionSong(SourceTests):
    name, title = "million-song", "Million Song"
    defaults = {"n_items": 10_000, "n_users": 400_000, "minority": "no"}
    files = {
        PLAYED: triplet_lines(TRIPLETS),
        LISTED: "".join("<SEP>".join(track) + "\n" for track in TRACKS),
        # TR2 is a track of SOA already, and stays it.
        TASTE: "SOD\tTR7\tTR8\nSOC\nSOZ\tTR5\nSOC\tTR2\n",
        "a.cls": "# tagtraum\n#TR4\tx\nTR1\tElectronic\tRock\nTR2\tRock\nTR3\tPop_Rock\tRock\nTR9\tJazz\n"
        "TR7\tMetal\nTR8\tJazz\nTRX\tFolk\n",
    }
    needed = (PLAYED, LISTED)
    wanted = f"{PLAYED} and {LISTED}, and for groups a genre file such as msd_tagtraum_cd2c.cls"
    folders = ("million-song", "million_song", "MillionSong", "msd")
    expected = {
        "user_ids": ("u1", "u3", "u50", "u7", "u9"),
        "item_ids": ("SOA", "SOB", "SOC", "SOD"),
        "item_names": ("First – Take<SEP>Two", "Björk – Jóga", "AC/DC – Rock", "SOD"),
        "item_groups": (("Pop_Rock", "Rock"), ("Electronic",), (), ("Jazz", "Metal")),
        "facts": {"songs": 4, "users": 5, "triplets": 8, "plays": 31, "tracks": 5},
    }
    pairs = {(user, song) for user, song, _ in TRIPLETS}
    cut_off = [
        (PLAYED, 4, 8, f"{FIELDS}2{INCOMPLETE}"),
        (PLAYED, 1, 8, NO_END),
        (LISTED, 15, 5, f"{PARTS}3{INCOMPLETE}"),
        (LISTED, 3, 5, NO_END),
        (TASTE, 1, 4, NO_END),
    ]
    wrong = [
        (PLAYED, 1, "u3\tSOA\t1\t2", FIELDS + "4"), (PLAYED, 3, "u3\tSOA", FIELDS + "2"),
        (PLAYED, 3, "", FIELDS + "1"), (PLAYED, 3, "u3,SOA,1", FIELDS + "1"),
        *[(PLAYED, 3, f"u3\tSOA\t{plays}", f"{PLAYS}'{plays}'")
          for plays in ("0", "1.5", "1_0", "", "2147483648")],
        (PLAYED, 3, "u3\tTRA\t1", "a song id must be ASCII text that begins with SO, got 'TRA'"),
        (PLAYED, 3, "u3\tSOé\t1", r"a song id must be ASCII text that begins with SO, got 'SO\\xc3\\xa9'"),
        (PLAYED, 3, "\tSOA\t1", "a user id must be ASCII text that is not empty, got ''"),
        (PLAYED, 3, "ü\tSOA\t1", r"a user id must be ASCII text that is not empty, got '\\xc3\\xbc'"),
        (PLAYED, 3, "SOA\tu3\t1",
         "expected user, song, play count, got the song 'SOA' first; are the columns swapped?"),
        (LISTED, 2, "TR1<SEP>SOB<SEP>Bj\udcf6rk<SEP>x", CONVERT),
        (TASTE, 2, "TR3\tSOA", "expected a song id that begins with SO first, got 'TR3'"),
        *[("a.cls", 3, line, f"expected a track, its genre and perhaps a minority genre, got {line!r}")
          for line in ("TR1", "TR1\t", "TR1\tRock\tPop\tJazz", "TR1,Rock")],
    ]  # fmt: skip

    def test_groups_are_the_genres_of_all_tracks_in_the_first_file_of_a_fixed_order(self, load):
        groups = load(minority="yes").item_groups
        assert groups == (("Pop_Rock", "Rock"), ("Electronic", "Rock"), (), ("Jazz", "Metal"))
        assert load({"a.cls": None}).item_groups == ()
        # Genre files are of many makes, of which not all end their last line.
        names = [f"{name}.cls" for name in ("msd_tagtraum_cd2c", "msd_tagtraum_cd2", "a", "b")]
        files = {name: f"TR2\t{name}" for name in names}
        for name in names:
            assert load(files).item_groups[0] == (name,)
            files[name] = None

    def test_files_of_other_songs_are_refused(self, refusal):
        assert "do the files belong together?" in refusal({LISTED: "TR9<SEP>SOZ<SEP>Nobody<SEP>Unplayed\n"})
        message = refusal({"a.cls": "TR9\tJazz\n"})
        assert message.startswith(
            "a.cls has no track of the 4 most played songs, so that all groups would be empty"
        )

    def test_larger_set_equals_a_slow_count(self, load):
        rng = np.random.default_rng(8)
        columns = (50 * rng.random(700) ** 2, 35 * rng.random(700) ** 2, rng.geometric(0.3, 700))
        triplets = [(f"u{int(u)}", f"SO{int(s):03}", int(n)) for u, s, n in zip(*columns, strict=True)]
        user_plays, song_plays = {}, {}
        for user, song, plays in triplets:
            user_plays[user] = user_plays.get(user, 0) + plays
            song_plays[song] = song_plays.get(song, 0) + plays
        active = sorted(user_plays, key=lambda user: (-user_plays[user], user))
        ranked = sorted(song_plays, key=lambda song: (-song_plays[song], song))
        files = {PLAYED: triplet_lines(triplets), LISTED: "TR1<SEP>SO000<SEP>a<SEP>b\n", "a.cls": None}
        for n_users, n_items in ((23, 9), (1, 30), (40, 1)):
            read = load(files, n_users=n_users, n_items=n_items)
            users, songs = active[:n_users], ranked[:n_items]
            assert (read.user_ids, read.item_ids) == (tuple(sorted(users)), tuple(sorted(songs)))
            assert read.item_ranks.tolist() == [songs.index(song) for song in read.item_ids]
            assert pairs(read) == [(u, s) for u, s, _ in triplets if u in users and s in songs]
            assert read.facts["plays"] == sum(plays for *_, plays in triplets)


# User, movie, stars: 3 users, 4 of 5 movies rated, ids with gaps; 31 is not liked, 8 not rated.
RATINGS = [(12, 7, 5), (2, 31, 3), (12, 100, 4), (2, 7, 1), (5, 31, 2), (5, 9, 4), (5, 100, 5)]
MOVIES = [
    (7, "Amélie: A Life (2001)", ["Comedy", "Romance"]),
    (8, "Nobody's Film (1999)", ["Adventure"]),
    (9, "Run:: Lola, Run (1998)", ["Adventurers"]),
    (31, "Plain (1990)", []),
    (100, "Quoted, The (1995)", ["Adventure", "Comedy"]),
]
FLAGS = ["unknown", "Adventure", "Adventurers", "Comedy", "Romance"]


def flags_of(genres):
    return "|".join("1" if genre in (genres or ["unknown"]) else "0" for genre in FLAGS)


class MovieLensTests(SourceTests):
    name, title = "movielens", "MovieLens"
    defaults = {"above": 3.0}
    measured = 1
    wanted = "ratings.dat and movies.dat, or ratings.csv and movies.csv, or u.data and u.item and u.genre"
    folders = ("ml-1m", "movielens", "ml-10M100K", "ml-latest-small")
    expected = {
        "user_ids": ("2", "5", "12"),
        "item_ids": ("7", "9", "31", "100"),
        "item_names": tuple(title for movie, title, _ in MOVIES if movie != 8),
        "item_groups": (("Comedy", "Romance"), ("Adventurers",), (), ("Adventure", "Comedy")),
        "facts": {"ratings": 7, "movies": 4, "users": 3},
    }
    pairs = {("12", "7"), ("12", "100"), ("5", "9"), ("5", "100")}


class TestMovieLens1M(MovieLensTests):
    files = {
        "ratings.dat": "".join(f"{user}::{movie}::{stars}::97830\n" for user, movie, stars in RATINGS),
        "movies.dat": "".join(f"{movie}::{title}::{'|'.join(genres)}\n" for movie, title, genres in MOVIES),
    }
    cut_off = [
        ("ratings.dat", 3, 7, NO_END),
        ("ratings.dat", 9, 7, "expected 4 fields, got 3" + CUT_SHORT),
        ("movies.dat", 3, 5, NO_END),
    ]
    wrong = [
        ("ratings.dat", 2, "1::9::x::0", "value 'x' in column 2 is not a number"),
        ("ratings.dat", 2, "1::\udce9::5::0", FROM_ARCHIVE),
        ("ratings.dat", 6, "5::99::4::0", "movie '99' is not in movies.dat" + ONE_ARCHIVE),
        ("movies.dat", 2, "9::Run", "expected MovieID::Title::Genres, got '9::Run'"),
        ("movies.dat", 2, "7::C::D", "movie '7' is listed for the second time"),
        ("movies.dat", 2, "9::C\0::D", NOT_TEXT),
    ]

    def test_titles_are_utf_8_or_else_latin_1(self, load, refusal):
        for encoding in ("iso-8859-1", "utf-8-sig"):
            movies = self.files["movies.dat"].encode(encoding)
            assert load({"movies.dat": movies}).names[0] == "Amélie: A Life (2001)"
        for name, problem in (("ratings.dat", FROM_ARCHIVE), ("movies.dat", NOT_TEXT)):
            assert refusal({name: self.files[name].encode("utf-16")}) == f"{name} line 1: {problem}"

    def test_half_stars_and_other_thresholds_count(self, load):
        files = {"ratings.dat": "1::7::3.5::0\n2::9::3::0\n2::100::4.5::0\n"}
        assert pairs(load(files)) == [("1", "7"), ("2", "100")]
        assert pairs(load(files, above=4)) == [("2", "100")]

    def test_movielens_1m_has_its_known_numbers(self, movielens_1m):
        read = make_source("movielens").load(movielens_1m)
        assert (len(read.user_ids), len(read.item_ids), len(read.users)) == (6040, 3706, 1_000_209)
        # No pair occurs twice in this file, so the matrix loses nothing.
        assert read.attracted.sum() == feedback_matrix(read).nnz == 575_281
        assert read.facts == {"ratings": 1_000_209, "movies": 3706, "users": 6040}
        assert read.names[-1] == "Contender, The (2000)"
        assert any("Misérables" in name for name in read.names)
        # 283 are listed, and two of them were never rated.
        adventure = keep_items(read, read.groups()["Adventure"])
        assert adventure.user_ids == read.user_ids
        assert len(adventure.item_ids) == 281
        assert np.bincount(adventure.items).min() > 0


class TestMovieLens20M(MovieLensTests):
    folders = ("ml-20m",)
    files = {
        "ratings.csv": "userId,movieId,rating,timestamp\n"
        + "".join(f"{user},{movie},{stars}.0,97830\n" for user, movie, stars in RATINGS),
        "movies.csv": "movieId,title,genres\n"
        + "".join(
            f'{movie},"{title}",{"|".join(genres) or "(no genres listed)"}\n'
            for movie, title, genres in MOVIES
        ),
    }
    cut_off = [("ratings.csv", 3, 8, NO_END), ("movies.csv", 3, 6, NO_END)]
    wrong = [
        ("ratings.csv", 7, "5,99,4.0,0", "movie '99' is not in movies.csv" + ONE_ARCHIVE),
        ("movies.csv", 1, "id,name,x", "expected movieId,title,genres, got 'id,name,x'"),
        ("movies.csv", 2, "7,A", "expected 3 fields, got 2"),
    ]

    def test_column_of_ratings_must_be_there(self, refusal):
        ratings = self.files["ratings.csv"].replace("rating,", "stars,")
        assert "ratings.csv has no column 'rating'" in refusal({"ratings.csv": ratings})


class TestMovieLens100K(MovieLensTests):
    folders = ("ml-100k",)
    files = {
        "u.data": "".join(f"{user}\t{movie}\t{stars}\t97830\n" for user, movie, stars in RATINGS),
        "u.item": "".join(
            f"{movie}|{title}|01-Jan-1995||http://example.org/{movie}|{flags_of(genres)}\n"
            for movie, title, genres in MOVIES
        ),
        "u.genre": "".join(f"{genre}|{number}\n" for number, genre in enumerate(FLAGS)) + "\n",
    }
    cut_off = [("u.data", 3, 7, NO_END), ("u.genre", 2, 5, NO_END)]
    wrong = [
        ("u.data", 6, "5\t99\t4\t0", "movie '99' is not in u.item" + ONE_ARCHIVE),
        ("u.genre", 2, "Adventure|2", "expected genre|1, got 'Adventure|2'"),
        *[
            ("u.item", 1, line, f"expected 5 fields and a flag of 0 or 1 for each of 5 genres, got {line!r}")
            for line in ("9|B|||x|0|1|0|0", "7|A|||x|0|1|0|0|7")
        ],
    ]


def test_lines_are_counted_through_blocks(tmp_path, monkeypatch):
    path = tmp_path / "many.txt"
    texts = [f"line {number}é\u2028" * (number % 4) for number in range(1, 200)]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    for size in (1, 13, 64, 1 << 18):
        monkeypatch.setattr(lines_module, "_BLOCK", size)
        assert list(Lines(path)) == list(enumerate(texts, 1))


def test_file_without_line_ends_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "_BLOCK", 10)
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 100)
    path = tmp_path / "long.json"
    path.write_text("ok\n" + "x" * 1000)
    read = []
    blocks = Lines(path, read.append).blocks()
    assert next(blocks) == (1, [b"ok"])
    with pytest.raises(InvalidInput, match=r"long\.json line 2: longer than 100 bytes"):
        next(blocks)
    assert sum(read) < 200
