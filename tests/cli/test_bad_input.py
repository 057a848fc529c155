"""Whatever is wrong is said in one line on stderr, with exit code 2, and nothing is written."""

import re
import sys
from typing import Annotated

import numpy as np
import pytest
from typer import Argument, Option

from firstclick.cli.command_line import CommandLine
from firstclick.cli.main import run_command_line
from firstclick.cli.options import count
from firstclick.errors import InvalidInput, UnknownName, WorkFailed

PLAY = ("--steps", 10, "--runs", 1, "--jobs", 1, "--k", 2, "--out", "new")
WORLD = ("simulate", "--world", "blb", *PLAY)
FILE = ("simulate", "--rank", 2, *PLAY, "--interactions")
CSV = (*FILE, "ratings.csv", "--header")


@pytest.fixture
def files(ratings):
    """Every file that is mentioned below."""
    features = np.random.default_rng(3).random((16, 2))
    np.save("short.npy", features[:5])
    np.save("flat.npy", features[:, 0])
    np.save("complex.npy", features * 1j)
    np.save("objects.npy", features.astype(object), allow_pickle=True)
    features[4, 1] = np.nan
    np.save("nan.npy", features)
    np.savetxt("nan.csv", features, delimiter=",")
    for name, content in {
        "empty.csv": b"",
        "blank.csv": b"1,2\n\n3,4\n",
        "header.csv": b"user,item\n",
        "ragged.csv": b"user,item\n1,2\n3,4\n5,6,7\n",
        "words.csv": b"user,item,rating\n1,2,3\n2,2,good\n",
        "noid.csv": b"1,2\n,2\n",
        "twice.csv": b"user,item,item\n1,2,3\n",
        "quote.csv": b'1,"2\n3,4\n',
        "solo.csv": b"1,2\n1,3\n",
        "spaces.txt": b"1 2\n3 4\n",
        "latin.csv": "1,caf\u00e9\n2,th\u00e9\n".encode("iso-8859-1"),
        "garbage.bin": bytes(range(256)),
        "garbage.npy": bytes(range(256)),
        "broken.npy": b"\x93NUMPY\x01\x00",
        "named.csv": b"width,height\n1,2\n",
    }.items():
        (ratings / name).write_bytes(content)
    (ratings / "sub").mkdir()
    (ratings / "sub.npy").mkdir()
    (ratings / "theirs").mkdir()
    (ratings / "theirs" / "thesis.tex").touch()
    (ratings / "mixed").mkdir()
    (ratings / "mixed" / "results.json").touch()
    (ratings / "mixed" / "thesis.tex").touch()
    return ratings


POLICIES = [
    ("cascade-lints", "--policy 'cascade-lints' is unknown; did you mean 'cascade-lin-ts'?"),
    (
        "cascade-ucb1:radus=1",
        "cascade-ucb1 has no parameter 'radus'; did you mean 'radius'? (parameters: start, radius)",
    ),
    ("random:heat=1", "random has no parameter 'heat' (parameters: none)"),
    ("cascade-ucb1:radius=-1", "cascade-ucb1: radius must be above 0, got -1"),
    ("cascade-ucb1:radius=1e400", "cascade-ucb1: radius must be above 0, got inf, which is not finite"),
    ("cascade-ucb1:radius=wide", "cascade-ucb1: radius must be above 0, got 'wide'"),
    ("cascade-ucb1:start=no", "cascade-ucb1: start must be one of sample, first, pessimistic, got 'no'"),
    (
        "cascade-ucb1:radius",
        "'cascade-ucb1:radius': expected NAME:param=value,..., got 'radius' without a value",
    ),
    ("cascade-ts:a=1,a=2", "'cascade-ts:a=1,a=2': a is given twice"),
    (
        "cascade-lin-ucb:c=theory",
        "cascade-lin-ucb: horizon must be given with c=theory: the number of steps, such as horizon=100000",
    ),
    (
        "cascade-lin-ts",
        "cascade-lin-ts needs features, and this world has none; give --features, or take a world "
        "that has them, such as linear",
    ),
]

WORLDS = [
    ("blbb", "--world 'blbb' is unknown; did you mean 'blb'?"),
    (
        "mars",
        "--world 'mars' is unknown; known are bernoulli, blb, drift, fitted, linear, logistic, long-tail, "
        "partly, shop, switch, topics, types, vectors",
    ),
    (
        "few-items",
        "'few-items' is a stock world of firstclick compare; say --world blb:n_items=16,k=4,p=0.2,gap=0.15 "
        "--k 4",
    ),
    (
        "movielens",
        "'movielens' is a stock world of firstclick compare; say --interactions ml-1m/ratings.dat "
        "--value-column 2 --above 3 --rank 20 --k 4",
    ),
    (
        "blb:items=3",
        "blb has no parameter 'items'; did you mean 'n_items'? (parameters: clicks, n_items, k, p, gap)",
    ),
    ("blb:p=2", "blb: p must be at least 0 and at most 1, got 2"),
    ("blb:p=nan", "blb: p must be at least 0 and at most 1, got nan, which is not finite"),
    ("blb:gap=0.5", "blb: gap must be at most p, got gap=0.5, p=0.2"),
    ("blb:k=17", "blb: k must be at most n_items, got k=17, n_items=16"),
    (
        "blb:n_items=99999999999999",
        "blb: n_items must be a whole number at least 1 and at most 1e+09, got 99999999999999",
    ),
    ("linear:best=0", "linear: best must be above 0 and at most 1, got 0"),
    ("bernoulli:attractions=0.5/2", "bernoulli: attractions must be at least 0 and at most 1, got (0.5, 2)"),
]

NUMBERS = [
    (["--k", 17], "--k must be at most the number of items, 16, got 17"),
    (["--k", 0], "--k must be at least 1, got 0"),
    (["--k", 2.5], "--k must be a whole number, got '2.5'"),
    (["--k", ""], "--k must be a whole number, got ''"),
    (["--steps", -1], "--steps must be at least 1, got -1"),
    (["--steps", "many"], "--steps must be a whole number, got 'many'"),
    (["--steps", "1e400"], "--steps must be a whole number, got '1e400'"),
    (["--steps", "nan"], "--steps must be a whole number, got 'nan'"),
    (["--steps", 10**22], f"--steps must be at most {10**15}, got {10**22}"),
    (["--steps", 5000 * "9"], f"--steps must be a whole number, got '{79 * '9'}..."),
    (["--runs", 0], "--runs must be at least 1, got 0"),
    (["--jobs", -1], "--jobs must be at least 0, got -1"),
    (["--seed", -1], "--seed must be at least 0, got -1"),
    (["--policy", "random", "--policy", "random"], "policy 'random' is given twice"),
    (["--policy", "cascade-ts", "--policy", "cascade-ts:a=1.0"], "policy 'cascade-ts' is given twice"),
]

FEATURES = [
    ("nan.npy", "nan.npy: features must be finite, got nan in row 4, column 1"),
    ("nan.csv", r"nan.csv line 5: features must be finite, got \['.*', 'nan'\]"),
    ("short.npy", "--features must have one row for each of the 16 items, got 5"),
    ("flat.npy", r"flat.npy: features must have two dimensions \(items x features\), got 1"),
    ("complex.npy", "complex.npy: features must be numbers, one row per item, got an array of complex128"),
    ("objects.npy", "objects.npy: not a .npy file of numbers"),
    ("garbage.npy", "garbage.npy: not a .npy file of numbers"),
    ("broken.npy", "broken.npy: not a .npy file of numbers"),
    (
        "garbage.bin",
        r"garbage.bin line \d+: bytes that are not UTF-8; if it is a text file, pass its "
        "encoding, for example --encoding latin-1",
    ),
    ("named.csv", r"named.csv line 1: features must be numbers, got \['width', 'height'\]"),
    ("empty.csv", "empty.csv is empty"),
    ("none.npy", "none.npy: no such file"),
    ("none.csv", "none.csv: no such file"),
    ("sub", "sub is a folder; name a file in it"),
    ("sub.npy", "sub.npy is a folder; name a file in it"),
]

INTERACTIONS = [
    (["none.csv"], "none.csv: no such file"),
    (["sub"], "sub is a folder; name a file in it"),
    (["empty.csv"], "empty.csv is empty"),
    (["blank.csv", "--strict"], "blank.csv line 2 is blank, but rows follow it"),
    (["header.csv", "--header"], "header.csv has a header but no rows"),
    (["ragged.csv", "--header", "--strict"], "ragged.csv line 4: expected 2 fields, got 3"),
    (["noid.csv", "--strict"], "noid.csv line 2: empty user id in column 0"),
    (["quote.csv"], "quote.csv line 1: badly quoted field (unexpected end of data)"),
    (
        ["solo.csv"],
        "solo.csv has 1 user, and two are needed: half of the users teach features, the others click",
    ),
    (["spaces.txt"], "spaces.txt line 1: no '::', tab, comma or semicolon; pass --separator"),
    (
        ["latin.csv"],
        "latin.csv line 1: bytes that are not UTF-8; if it is a text file, pass its encoding, "
        "for example --encoding latin-1",
    ),
    (["latin.csv", "--encoding", "klingon"], "unknown encoding 'klingon'; try 'utf-8' or 'latin-1'"),
    (
        ["words.csv", "--header", "--value-column", 2, "--strict"],
        "words.csv line 3: value 'good' in column 2 is not a number",
    ),
    (
        ["ratings.csv", "--value-column", 2, "--strict"],
        "ratings.csv line 1: value 'rating' in column 2 is not a number; if "
        "line 1 is a header, name the columns or pass --header",
    ),
    (
        ["ratings.csv", "--user-column", "usr"],
        "ratings.csv has no column 'usr'; did you mean 'user'? its columns are user, item, rating",
    ),
    (["ratings.dat", "--item-column", 9], "ratings.dat has no column 9; its columns are 0 to 2"),
    (
        ["ratings.csv", "--user-column", "item", "--item-column", "item"],
        "ratings.csv: --user-column and --item-column are both column 'item'",
    ),
    (
        ["twice.csv", "--user-column", "user", "--item-column", "item"],
        "twice.csv has 2 columns 'item'; give the number of one",
    ),
    (["ratings.dat", "--separator", ""], "--separator must be text without quotes and line ends, got ''"),
    (["ratings.dat", "--above", 3], "--above needs --value-column, the column to compare with it"),
    (["ratings.dat", "--value-column", 2, "--above", "high"], "--above must be a number, got 'high'"),
    (["ratings.dat", "--value-column", 2, "--above", "1e400"], "--above must be a finite number, got inf"),
    (
        ["ratings.dat", "--value-column", 2, "--above", 5],
        "ratings.dat: no value is above 5, so nothing attracts anybody; lower --above",
    ),
    (["ratings.dat", "--items", 10], "--items must be at most 9, the items there are, got 10"),
    (["ratings.dat", "--items", 0], "--items must be at least 1, got 0"),
    (["ratings.dat", "--items", 3, "--k", 4], "--k must be at most the number of items, 3, got 4"),
    (
        ["ratings.dat", "--rank", 8],
        "--rank must be at most 7 (the training matrix is 7 users x 9 items), got 8",
    ),
    (["ratings.dat", "--rank", 0], "--rank must be at least 1, got 0"),
    (["ratings.dat", "--pick", "best"], "--pick must be one of popular, random, got 'best'"),
    (
        ["ratings.dat", "--features", "short.npy"],
        "--features goes with --world; with --interactions use --rank",
    ),
]

OTHERS = [
    (["simulate"], "give --world SPEC or --interactions FILE to play on; --help has examples"),
    (
        [*WORLD, "--interactions", "ratings.dat"],
        "--world and --interactions exclude each other; give one of them",
    ),
    ([*WORLD, "--rank", 20], "--rank goes with --interactions"),
    ([*WORLD, "--items", 3], "--items goes with --interactions"),
    ([*WORLD, "--one-split"], "--one-split goes with --interactions"),
    ([*WORLD, "--user-column", "0"], "--user-column goes with --interactions"),
    ([*WORLD, "--separator", ","], "--separator goes with --interactions or --features"),
    (["simulate", "--world", "blb", "--overwrite"], "--overwrite goes with --out"),
    ([*WORLD, "--out", "ratings.csv"], "ratings.csv is a file; --out names a folder"),
    ([*WORLD, "--out", "ratings.csv/new"], "--out ratings.csv/new cannot be written: Not a directory"),
    ([*WORLD, "--out", 300 * "x"], f"--out {300 * 'x'} cannot be written: File name too long"),
    (
        [*WORLD, "--out", "theirs"],
        "--out theirs holds other files (thesis.tex) already; name a new folder, or an empty one",
    ),
    (
        [*WORLD, "--out", "mixed", "--overwrite"],
        "--out mixed holds other files (thesis.tex) already; name a new folder, or an empty one",
    ),
    (["simulat"], "No such command 'simulat'. Did you mean 'simulate'?"),
    (["simulate", "--polcy", "x"], "No such option: --polcy (Possible options: --pick, --policy)"),
    (["simulate", "--world"], "Option '--world' requires an argument."),
    (["policies", "all"], "Got unexpected extra argument(s) (all)"),
    (["bound", "--features", 0], "--features must be a whole number of at least 1, got 0"),
    (["bound", "--sigma", 0], "--sigma must be above 0, got 0.0"),
    (["bound", "--sigma", "x"], "--sigma must be a number, got 'x'"),
    (["bound", "--theta-norm", "nan"], "--theta-norm must be a finite number, got nan"),
]


def refused(run, files, arguments, pattern):
    before = sorted(files.rglob("*"))
    seen = run(*arguments)
    assert seen.code == 2
    assert seen.out == ""
    assert re.fullmatch(f"error: {pattern}\n", seen.err), seen.err
    assert sorted(files.rglob("*")) == before, "nothing is written"


@pytest.mark.parametrize(("policy", "message"), POLICIES, ids=[policy for policy, _ in POLICIES])
def test_a_policy_that_cannot_be(run, files, policy, message):
    refused(run, files, [*WORLD, "--policy", policy], re.escape(message))


def test_an_unknown_policy_that_resembles_none_gets_the_list(run, files):
    refused(run, files, [*WORLD, "--policy", "zzz"], "--policy 'zzz' is unknown; known are .*cascade-ts, .*")


@pytest.mark.parametrize(("world", "message"), WORLDS, ids=[world for world, _ in WORLDS])
def test_a_world_that_cannot_be(run, files, world, message):
    refused(run, files, ["simulate", "--world", world, *PLAY], re.escape(message))


@pytest.mark.parametrize(("option", "message"), NUMBERS, ids=[message[:40] for _, message in NUMBERS])
def test_a_number_out_of_range(run, files, option, message):
    refused(run, files, [*WORLD, *option], re.escape(message))


@pytest.mark.parametrize(("name", "pattern"), FEATURES, ids=[name for name, _ in FEATURES])
def test_features_that_are_none(run, files, name, pattern):
    given = [*WORLD, "--policy", "random", "--features", name]
    refused(run, files, given, pattern)


@pytest.mark.parametrize(
    ("given", "message"), INTERACTIONS, ids=[" ".join(map(str, given)) for given, _ in INTERACTIONS]
)
def test_interactions_that_nothing_can_be_learned_from(run, files, given, message):
    refused(run, files, [*FILE, *given], re.escape(message))


@pytest.mark.parametrize(("arguments", "message"), OTHERS, ids=[message[:40] for _, message in OTHERS])
def test_words_that_do_not_go_together(run, files, arguments, message):
    refused(run, files, arguments, re.escape(message))


@pytest.mark.skipif(sys.platform != "linux", reason="a file system that takes no folders")
def test_a_folder_that_cannot_be_written_is_refused_before_the_work(run, files):
    refused(run, files, [*WORLD, "--steps", 10**12, "--out", "/proc/here/no"], ".* cannot be written: .*")


def test_a_wrong_number_is_refused_before_a_large_file_is_read(run, files, monkeypatch):
    def read(*_, **__):
        pytest.fail("the file is read")

    monkeypatch.setattr(sys.modules["firstclick.cli.interaction_file"], "read_interactions", read)
    for option in ("--k", "--steps", "--runs", "--rank", "--items"):
        refused(run, files, [*CSV, option, 0], f"{option} must be at least 1, got 0")


def test_failed_work_has_another_exit_code(run, monkeypatch):
    def fail(*_, **__):
        raise WorkFailed("a worker process died")

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", fail)
    seen = run(*WORLD)
    assert (seen.code, seen.out, seen.err) == (1, "", "error: a worker process died\n")


def test_what_the_system_refuses_is_said_with_its_place(run, monkeypatch):
    def fail(*_, **__):
        raise OSError(13, "Permission denied", "/srv/cache")

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", fail)
    seen = run(*WORLD)
    assert (seen.code, seen.out, seen.err) == (1, "", "error: /srv/cache: Permission denied\n")


K = InvalidInput("must be at least 1, got 0", "k")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (K, "--k must be at least 1, got 0"),
        (InvalidInput("must be at least 1, got 0", "n_items"), "--items must be at least 1, got 0"),
        (InvalidInput("must be at least 1, got 0", "steps"), "steps must be at least 1, got 0"),
        (InvalidInput("must be a file", "file"), "file must be a file"),
        (InvalidInput("k must be at least 1, got 0"), "k must be at least 1, got 0"),
        (InvalidInput("must be at least 1", "k", "blb"), "blb: k must be at least 1"),
        (InvalidInput("must be at least 1", "k").within("films.toml"), "films.toml: k must be at least 1"),
        (InvalidInput("is there; pass `overwrite=True`", owner="x"), "x: is there; pass --overwrite"),
        (WorkFailed("try a lower `k`"), "try a lower --k"),
        (UnknownName("try `encoding='iso-8859-1'`"), "try --encoding iso-8859-1"),
        (InvalidInput("pass `separator`; `file`, `k k`"), "pass `separator`; `file`, `k k`"),
        (InvalidInput("two\n  lines"), "two lines"),
    ],
)
def test_an_error_names_the_options_of_the_command_that_is_run(monkeypatch, capsys, error, said):
    app = CommandLine()

    @app.command()
    def work(
        file: Annotated[str, Argument()] = "",
        k: Annotated[int, count("K.")] = 4,
        n_items: Annotated[int, count("Items.", "--items")] = 4,
        encoding: str = "",
        overwrite: Annotated[bool, Option("--overwrite")] = False,
    ) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["work"])
    with pytest.raises(SystemExit) as end:
        run_command_line(app)
    assert capsys.readouterr().err == f"error: {said}\n"
    assert end.value.code == (1 if isinstance(error, WorkFailed) else 2)


def test_data_in_another_encoding_is_said_in_the_words_of_its_source(run, files):
    (files / "movies.dat").write_text("7::A::Drama\n")
    (files / "ratings.dat").write_text("1::7::5::0\n", encoding="utf-16")
    refused(
        run,
        files,
        ["data", "describe", "movielens", "--data", "."],
        "ratings.dat line 1: bytes that are not UTF-8; take the file as it is in its archive",
    )
    refused(
        run,
        files,
        ["data", "describe", "table", "--data", "latin.csv"],
        "latin.csv line 1: bytes that are not UTF-8; if it is a text file, pass its encoding, "
        "for example `encoding='latin-1'`",
    )
    assert run("data", "describe", "table:encoding=iso-8859-1", "--data", "latin.csv").code == 0
