import numpy as np
import pytest

from firstclick.data import feedback_matrix
from firstclick.data.sources import lines as lines_module
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.million_song import MillionSong
from firstclick.errors import InvalidInput

# 5 users and 4 songs. By plays: SOB 12, SOA 9, SOD 9, SOC 1; by rows SOA leads.
TRIPLETS = [
    ("u50", "SOA", 1),
    ("u50", "SOB", 11),
    ("u3", "SOA", 2),
    ("u3", "SOC", 1),
    ("u3", "SOB", 1),
    ("u7", "SOD", 9),
    ("u1", "SOA", 3),
    ("u9", "SOA", 3),
]
TRACKS = [
    ("TR1", "SOB", "Björk", "Jóga"),
    ("TR9", "SOZ", "Nobody", "Unplayed"),
    ("TR2", "SOA", "First", "Take<SEP>Two"),
    ("TR3", "SOA", "Second", "Take"),
    ("TR4", "SOC", "AC/DC", "Rock"),
]
GENRES = "# tagtraum\n#TR4\tx\nTR1\tElectronic\tRock\nTR2\tRock\nTR3\tPop_Rock\tRock\nTR9\tJazz\nTRX\tFolk\n"


def triplet_lines(triplets=TRIPLETS):
    return "".join(f"{user}\t{song}\t{plays}\n" for user, song, plays in triplets)


def track_lines(tracks=TRACKS):
    return "".join("<SEP>".join(track) + "\n" for track in tracks)


@pytest.fixture
def write(tmp_path):
    def write(triplets=None, tracks=None, folder="", **more):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        files = {
            "train_triplets.txt": triplet_lines() if triplets is None else triplets,
            "unique_tracks.txt": track_lines() if tracks is None else tracks,
            **{name.replace("__", "."): text for name, text in more.items()},
        }
        for name, text in files.items():
            (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path

    return write


def pairs(read):
    return [(read.user_ids[u], read.item_ids[e]) for u, e in zip(read.users, read.items, strict=True)]


def refusal(path, **settings):
    with pytest.raises(InvalidInput) as caught:
        MillionSong(**settings).load(path)
    return str(caught.value)


def test_million_song_is_known_by_its_name():
    assert source_classes()["million-song"] is MillionSong
    assert make_source("million-song:minority=yes") == MillionSong(minority="yes")
    assert (MillionSong().n_items, MillionSong().n_users) == (10_000, 400_000)


def test_every_triplet_attracts_and_a_small_set_is_taken_whole(write):
    read = MillionSong().load(write())
    assert read.user_ids == ("u1", "u3", "u50", "u7", "u9")
    assert read.item_ids == ("SOA", "SOB", "SOC", "SOD")
    assert sorted(pairs(read)) == sorted((user, song) for user, song, _ in TRIPLETS)
    assert read.attracted.all()
    assert feedback_matrix(read).shape == (5, 4)


def test_facts_count_the_whole_files(write):
    facts = MillionSong(n_items=1, n_users=1).load(write()).facts
    assert facts == {"songs": 4, "users": 5, "triplets": 8, "plays": 31, "tracks": 5}


def test_songs_and_users_are_ranked_by_plays_each_over_all_rows(write):
    assert MillionSong(n_items=1).load(write()).item_ids == ("SOB",)
    # SOA and SOD have 9 plays each: among equals the lower id is kept.
    for triplets in (TRIPLETS, [TRIPLETS[5], *TRIPLETS[:5], *TRIPLETS[6:]]):
        assert MillionSong(n_items=2).load(write(triplet_lines(triplets))).item_ids == ("SOA", "SOB")
    assert MillionSong(n_users=2).load(write()).user_ids == ("u50", "u7")
    # u3 has 4 plays of three songs; u1 and u9 have 3 of one.
    assert MillionSong(n_users=4).load(write()).user_ids == ("u1", "u3", "u50", "u7")
    # u7 is kept without a row: users are counted over all songs.
    read = MillionSong(n_items=1, n_users=2).load(write())
    assert read.user_ids == ("u50", "u7")
    assert pairs(read) == [("u50", "SOB")]


def test_a_user_whose_rows_are_scattered_is_still_one(write):
    scattered = [TRIPLETS[at] for at in (2, 0, 5, 3, 6, 1, 7, 4)]
    read, ordered = (
        MillionSong(n_users=3).load(write(triplet_lines(scattered))),
        MillionSong(n_users=3).load(write()),
    )
    assert read.user_ids == ordered.user_ids
    assert sorted(pairs(read)) == sorted(pairs(ordered))


def test_songs_are_called_by_artist_and_title_of_their_first_track(write):
    names = MillionSong().load(write()).item_names
    assert names == ("First – Take<SEP>Two", "Björk – Jóga", "AC/DC – Rock", "SOD")


def test_without_a_genre_file_the_groups_are_unknown(write):
    assert MillionSong().load(write()).item_groups == ()


def test_a_song_is_in_the_groups_of_all_its_tracks(write):
    path = write(msd_tagtraum_cd2__cls=GENRES)
    assert MillionSong().load(path).item_groups == (("Pop_Rock", "Rock"), ("Electronic",), (), ())
    groups = MillionSong(minority="yes").load(path).item_groups
    assert groups == (("Pop_Rock", "Rock"), ("Electronic", "Rock"), (), ())


def test_the_taste_profile_adds_tracks(write):
    path = write(
        a__cls="TR7\tMetal\nTR8\tJazz\nTR2\tRock\n",
        taste_profile_song_to_tracks__txt="SOD\tTR7\tTR8\nSOC\nSOZ\tTR5\nSOC\tTR2\n",
    )
    # TR2 is a track of SOA already, and stays it.
    assert MillionSong().load(path).item_groups == (("Rock",), (), (), ("Jazz", "Metal"))


def test_of_several_genre_files_the_first_in_a_fixed_order_is_taken(write):
    files = {
        "a__cls": "TR2\tA\n",
        "b__cls": "TR2\tB\n",
        "msd_tagtraum_cd1__cls": "TR2\tCD1\n",
        "msd_tagtraum_cd2__cls": "TR2\tCD2\n",
        "msd_tagtraum_cd2c__cls": "TR2\tCD2C\n",
    }
    path = write(**files)
    for genre, name in zip(
        ["CD2C", "CD2", "CD1", "A", "B"], [*list(files)[:1:-1], "a__cls", "b__cls"], strict=True
    ):
        assert MillionSong().load(path).item_groups[0] == (genre,)
        (path / name.replace("__", ".")).unlink()


@pytest.mark.parametrize("folder", ["", "million-song", "msd"])
def test_the_files_are_found_in_their_usual_folders(write, folder):
    assert len(MillionSong().load(write(folder=folder)).users) == 8


def test_without_its_files_it_says_what_was_expected(write, tmp_path):
    assert "has no Million Song data: expected train_triplets.txt and unique_tracks.txt" in refusal(tmp_path)
    (write() / "unique_tracks.txt").unlink()
    assert "has no Million Song data" in refusal(tmp_path)


def test_progress_reaches_the_bytes_of_all_files(write):
    path = write(a__cls=GENRES)
    seen = []
    MillionSong().load(path, lambda done, total: seen.append((done, total)))
    size = sum(file.stat().st_size for file in path.iterdir())
    assert seen[-1] == (size, size)


@pytest.mark.parametrize("block", [9, 1 << 18])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("u3\tSOA", "expected 3 fields (user, song, play count) separated by tabs, got 2"),
        ("u3\tSOA\t1\t2", "expected 3 fields (user, song, play count) separated by tabs, got 4"),
        ("", "expected 3 fields (user, song, play count) separated by tabs, got 1"),
        ("u3,SOA,1", "expected 3 fields (user, song, play count) separated by tabs, got 1"),
        ("u3\tSOA\t0", "a play count must be a whole number from 1 to 2147483647, got '0'"),
        ("u3\tSOA\t-4", "a play count must be a whole number from 1 to 2147483647, got '-4'"),
        ("u3\tSOA\t1.5", "a play count must be a whole number from 1 to 2147483647, got '1.5'"),
        ("u3\tSOA\t1_0", "a play count must be a whole number from 1 to 2147483647, got '1_0'"),
        ("u3\tSOA\t", "a play count must be a whole number from 1 to 2147483647, got ''"),
        ("u3\tSOA\t2147483648", "a play count must be a whole number from 1 to 2147483647, got '2147483648'"),
        ("u3\tTRA\t1", "a song id must be ASCII text that begins with SO, got 'TRA'"),
        ("u3\tSOé\t1", r"a song id must be ASCII text that begins with SO, got 'SO\\xc3\\xa9'"),
        ("\tSOA\t1", "a user id must be ASCII text that is not empty, got ''"),
        ("ü\tSOA\t1", r"a user id must be ASCII text that is not empty, got '\\xc3\\xbc'"),
        (
            "SOA\tu3\t1",
            "expected user, song, play count, got the song 'SOA' first; are the columns swapped?",
        ),
    ],
)
@pytest.mark.parametrize("number", [1, 3])
def test_a_wrong_triplet_is_named_with_its_line(write, monkeypatch, line, problem, number, block):
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    lines = triplet_lines().split("\n")
    lines[number - 1] = line
    assert refusal(write("\n".join(lines))) == f"train_triplets.txt line {number}: {problem}"


def test_a_file_that_was_cut_off_says_so(write):
    message = refusal(write(triplet_lines()[:-4]))
    assert message == (
        "train_triplets.txt line 8: expected 3 fields (user, song, play count) separated by tabs, got 2; "
        "the file ends within this line: is it complete?"
    )
    message = refusal(write(tracks=track_lines()[:-15]))
    assert message.startswith("unique_tracks.txt line 5: expected 4 fields (track, song, artist, title)")
    assert message.endswith("is it complete?")


@pytest.mark.parametrize(
    ("file", "given", "line"),
    [
        ("train_triplets.txt", {"triplets": triplet_lines([*TRIPLETS, ("u9", "SOB", 12)])[:-2]}, 9),
        ("unique_tracks.txt", {"tracks": track_lines()[:-3]}, 5),
        ("taste_profile_song_to_tracks.txt", {"taste_profile_song_to_tracks__txt": "SOC\tTR7\nSOD\tTR"}, 2),
    ],
)
def test_a_last_line_that_may_be_cut_within_its_last_field_is_refused(write, file, given, line):
    assert refusal(write(**given)) == (
        f"{file} line {line}: the last line has no end; is the file cut short? fetch it again, "
        "or end the line if it is whole"
    )


def test_other_line_ends_do_no_harm_nor_does_a_missing_one_after_genres(write):
    whole = pairs(MillionSong().load(write()))
    for text in (triplet_lines().replace("\n", "\r\n"), triplet_lines() + "\n\n"):
        assert pairs(MillionSong().load(write(text))) == whole
    # Genre files are of many makes, of which not all end their last line.
    assert MillionSong().load(write(a__cls="TR1\tElectronic")).item_groups[1] == ("Electronic",)


def test_songs_have_their_ranks_by_plays_over_all_users(write):
    # SOB 12, then SOA and SOD 9 each, then SOC; whatever users are kept.
    for n_users in (1, 400):
        read = MillionSong(n_users=n_users).load(write())
        assert read.item_ids == ("SOA", "SOB", "SOC", "SOD")
        assert read.item_ranks.tolist() == [1, 0, 3, 2]
    assert MillionSong(n_items=2).load(write()).item_ranks.tolist() == [1, 0]


def test_tracks_in_another_encoding_are_named_with_their_line(write):
    path = write(tracks=track_lines([TRACKS[4], TRACKS[0]]).encode("latin-1"))
    assert refusal(path) == "unique_tracks.txt line 2: bytes that are not UTF-8; convert the file to UTF-8"


def test_tracks_of_other_songs_are_refused(write):
    path = write(tracks=track_lines([TRACKS[1]]))
    assert (
        refusal(path)
        == "unique_tracks.txt has none of the 4 most played songs; do the files belong together?"
    )


@pytest.mark.parametrize("line", ["TR1", "TR1\t", "TR1\tRock\tPop\tJazz", "TR1,Rock"])
def test_a_wrong_genre_line_is_named(write, line):
    message = refusal(write(a__cls=f"# comment\nTR2\tRock\n{line}\n"))
    assert message == f"a.cls line 3: expected a track, its genre and perhaps a minority genre, got {line!r}"


def test_genres_of_other_tracks_would_leave_all_groups_empty(write):
    message = refusal(write(a__cls="TR9\tJazz\n"))
    assert message.startswith(
        "a.cls has no track of the 4 most played songs, so that all groups would be empty"
    )


def test_a_wrong_line_of_the_taste_profile_is_named(write):
    path = write(taste_profile_song_to_tracks__txt="SOA\tTR2\nTR3\tSOA\n")
    assert refusal(path) == (
        "taste_profile_song_to_tracks.txt line 2: expected a song id that begins with SO first, got 'TR3'"
    )


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_file_is_refused(write, text):
    assert refusal(write(text)) == "train_triplets.txt is empty"
    assert refusal(write(tracks=text)) == "unique_tracks.txt is empty"


def test_a_web_page_is_no_data(write):
    assert "train_triplets.txt line 1: a web page, not data" in refusal(write("<html><body>Not found"))


def test_plays_and_pairs_on_a_larger_set_read_the_slow_way(write, monkeypatch):
    monkeypatch.setattr(lines_module, "_BLOCK", 777)
    rng = np.random.default_rng(8)
    columns = (50 * rng.random(700) ** 2, 35 * rng.random(700) ** 2, rng.geometric(0.3, 700))
    triplets = [(f"u{int(u)}", f"SO{int(s):03}", int(n)) for u, s, n in zip(*columns, strict=True)]
    path = write(triplet_lines(triplets), track_lines([("TR1", "SO000", "a", "b")]))
    user_plays, song_plays = {}, {}
    for user, song, plays in triplets:
        user_plays[user] = user_plays.get(user, 0) + plays
        song_plays[song] = song_plays.get(song, 0) + plays
    top_users = sorted(user_plays, key=lambda user: (-user_plays[user], user))[:23]
    top_songs = sorted(song_plays, key=lambda song: (-song_plays[song], song))[:9]
    read = MillionSong(n_users=23, n_items=9).load(path)
    assert read.user_ids == tuple(sorted(top_users))
    assert read.item_ids == tuple(sorted(top_songs))
    assert read.item_ranks.tolist() == [top_songs.index(song) for song in read.item_ids]
    assert pairs(read) == [(u, s) for u, s, _ in triplets if u in top_users and s in top_songs]
    assert read.facts["plays"] == sum(plays for *_, plays in triplets)
