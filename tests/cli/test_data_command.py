"""`firstclick data`: sources, download, describe."""

import hashlib
import io
import json
import re
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.download import ARCHIVES, find_archive

SMALL = "synthetic-movielens:n_users=300,n_items=400"


@pytest.fixture
def served(monkeypatch):
    """MovieLens 1M as a small zip file on loopback; the requests it gets."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name in find_archive("movielens-1m").members:
            packed.writestr(f"ml-1m/{name}", f"this is {name}")
    content = file.getvalue()
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        mine = replace(
            ARCHIVES["movielens-1m"],
            address=f"http://127.0.0.1:{http.server_port}/ml-1m.zip",
            md5=hashlib.md5(content).hexdigest(),
        )
        monkeypatch.setitem(ARCHIVES, "movielens-1m", mine)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield asked
        http.shutdown()
        thread.join()


def test_the_terms_are_shown_and_agreed_to_before_anything_is_asked_for(run, served, folder):
    seen = run("data", "download", "movielens-1m")
    assert (seen.code, seen.out) == (2, "")
    assert "Harper" in seen.err
    assert seen.err.endswith("error: nobody is here to agree to the terms above; if you do, say --yes\n")
    assert served == []
    assert list(folder.iterdir()) == []


def test_with_yes_the_folder_is_there_and_its_path_on_stdout(run, served, folder):
    seen = run("data", "download", "movielens-1m", "--data", "mine", "--yes")
    assert (seen.code, seen.out) == (0, "mine/ml-1m\n")
    assert (folder / "mine/ml-1m/ratings.dat").read_text() == "this is ratings.dat"
    assert "firstclick data describe movielens --data mine/ml-1m" in seen.err
    assert "University of Minnesota" in seen.err


def test_what_is_there_needs_no_agreement_and_no_server(run, served, folder):
    run("data", "download", "movielens-1m", "--yes")
    seen = run("data", "download", "movielens-1m")
    assert (seen.code, seen.out) == (0, "data/ml-1m\n")
    assert "MovieLens 1M is there already" in seen.err
    assert served == ["/ml-1m.zip"]


class Typed(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 2), ("no\n", 2), ("", 2)])
def test_on_a_terminal_it_asks(run, served, monkeypatch, answer, code):
    monkeypatch.setattr(sys, "stdin", Typed(answer))
    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "_on_a_terminal", lambda: True)
    seen = run("data", "download", "movielens-1m")
    assert seen.code == code
    assert "Do you agree? [y/N]" in seen.err
    assert len(served) == (code == 0)
    assert ("nothing was downloaded, because the terms were not agreed to" in seen.err) == (code == 2)


def test_ctrl_c_says_that_what_has_come_is_kept(run, served, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "fetch", interrupted)
    seen = run("data", "download", "movielens-1m", "--yes")
    assert seen.code == 130
    assert "error: interrupted; what has come is kept, run it again to go on from there\n" in seen.err
    assert "nothing was written" not in seen.err


@pytest.mark.parametrize("name", ["yelp", "million-song"])
def test_what_cannot_be_downloaded_is_explained_in_one_line(run, name):
    seen = run("data", "download", name)
    assert (seen.code, seen.out) == (2, "")
    assert seen.err.startswith(f"error: {name} cannot be downloaded: ")
    assert seen.err.count("\n") == 1
    assert name in source_classes()


def test_failed_downloads_end_with_1(run, served, monkeypatch):
    monkeypatch.setitem(ARCHIVES, "movielens-1m", replace(ARCHIVES["movielens-1m"], md5="0" * 32))
    seen = run("data", "download", "movielens-1m", "--yes")
    assert (seen.code, seen.out) == (1, "")
    assert "thrown away" in seen.err


def test_a_description_has_all_numbers_and_fits_the_screen(run):
    seen = run("data", "describe", SMALL)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("Synthetic stand-in for MovieLens\n")
    for words in (
        r"\nusers +300\n", r"\nitems +400\n", r"\ndensity +2\.\d\d%\n", r"\nusers whom nothing attracts +",
        r"\nmost attractive items +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){10}",
        r"\nbest slate of 4, greedy +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){4}",
        r"clicked by \d\d\.\d% of users; the 4 most attractive: \d\d\.\d%\n",
        r"\n *least +10% +25% +median +75% +90% +99% +most *\n", r"\nAdventure +\d+ +\d\.\d\d%",
    ):  # fmt: skip
        assert re.search(words, seen.out), words
    assert max(len(line.rstrip()) for line in seen.out.splitlines()) < 80


def test_json_has_the_same_numbers(run):
    seen = json.loads(run("data", "describe", SMALL, "--json").out)
    assert seen["source"] == SMALL
    assert (seen["title"], seen["synthetic"]) == ("Synthetic stand-in for MovieLens", True)
    assert (seen["users"], seen["items"], seen["group"]) == (300, 400, None)
    made = make_source(SMALL).load(None)
    assert seen["attracted_pairs"] == len(made.items)
    assert seen["best_click_probability"] >= seen["popular_click_probability"] > 0.5
    assert {group["name"]: group["items"] for group in seen["groups"]} == {
        name: len(items) for name, items in made.groups().items()
    }


def test_a_group_alone_is_named_in_the_title(run):
    seen = run("data", "describe", SMALL, "--group", "Adventure")
    assert seen.out.startswith("Synthetic stand-in for MovieLens, Adventure\n")
    assert re.search(r"\nitems +3\d\n", seen.out)
    assert json.loads(run("data", "describe", SMALL, "--group", "Crime", "--json").out)["group"] == "Crime"


def test_your_own_table_is_described(run, folder):
    (folder / "sales.csv").write_text("customer,film\n7,Alien [1979]\n7,Brazil\n19,Brazil\n")
    seen = run("data", "describe", "table:user=customer,item=film", "--data", "sales.csv")
    assert (seen.code, seen.err) == (0, "")
    assert re.search(r"\nBrazil +100%", seen.out)
    assert "Alien [1979]" in seen.out
    assert "best slate of 2" in seen.out
    assert "group" not in seen.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("describe", "synthetic-yelps"),
            "source 'synthetic-yelps' is unknown; did you mean 'synthetic-yelp'?",
        ),
        (
            ("describe", "synthetic-yelp", "--data", "x"),
            "synthetic-yelp is made up from a seed; leave --data out",
        ),
        (("describe", "table"), "table needs --data, the place of a CSV, TSV or Parquet file"),
        (
            ("describe", SMALL, "--group", "adventur"),
            "unknown group 'adventur'; nearest: 'Adventure' (31 items)",
        ),
        (
            ("describe", "synthetic-yelp:n_users=0"),
            "synthetic-yelp: n_users must be a whole number at least 1, got 0",
        ),
        (("download", "movielens"), "unknown download 'movielens'; did you mean 'movielens-1m'?"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    seen = run("data", *arguments)
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == f"error: {message}\n"


def test_sources_lists_every_source_and_parameter(run):
    described = {entry["name"]: entry for entry in json.loads(run("data", "sources", "--json").out)}
    shown = run("data", "sources").out
    assert list(described) == list(source_classes())
    for name, cls in source_classes().items():
        entry = described[name]
        assert {key: value["default"] for key, value in entry["parameters"].items()} == cls.defaults()
        assert f"\n{name}  " in "\n" + shown
        assert entry["files"] in shown
        assert bool(entry["files"]) != cls.synthetic


def test_without_a_command_there_is_help_and_each_command_has_an_example(run):
    seen = run("data")
    assert (seen.code, seen.err) == (0, "")
    for command in ("sources", "download", "describe"):
        assert command in seen.out
        assert f"  firstclick data {command}" in run("data", command, "--help").out


def test_while_it_reads_there_is_a_bar_and_nothing_stays_of_it(terminal):
    one = terminal("data", "describe", "synthetic-yelp")
    one.read_to_the_end()
    assert one.process.returncode == 0
    assert "making data up" in one.text
    assert one.screen() == []
    assert one.process.stdout.read().decode().startswith("Synthetic stand-in for Yelp\n")
