"""`firstclick data`: sources, download, describe."""

import io
import json
import re
import sys

import pytest

from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.download import download as fetch

SMALL = "synthetic-movielens:n_users=300,n_items=400"
DOWNLOAD = ("data", "download", "movielens-1m")


@pytest.fixture
def downloads(monkeypatch):
    """What is downloaded, without a network; tests/data downloads from a server."""
    titles = []

    def fetch_here(archive, folder, progress):
        if archive.lacks(folder):
            titles.append(archive.title)
            (folder / archive.folder).mkdir(parents=True)
            for name in archive.members:
                (folder / archive.folder / name).write_text("")
        return fetch(archive, folder, progress)

    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "fetch", fetch_here)
    return titles


def test_terms_are_agreed_to_before_anything_is_downloaded(run, downloads, folder):
    refused = run(*DOWNLOAD)
    assert (refused.code, refused.out) == (2, "")
    assert "Harper" in refused.err
    assert refused.err.endswith("error: nobody is here to agree to the terms above; if you do, say --yes\n")
    assert downloads == []
    seen = run(*DOWNLOAD, "--data", "mine", "--yes")
    assert (seen.code, seen.out) == (0, "mine/ml-1m\n")
    assert "firstclick data describe movielens --data mine/ml-1m" in seen.err
    assert "Harper" in seen.err
    again = run(*DOWNLOAD, "--data", "mine")
    assert (again.code, again.out) == (0, "mine/ml-1m\n")
    assert "MovieLens 1M is there already" in again.err
    assert len(downloads) == 1


class Typed(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 2), ("no\n", 2), ("", 2)])
def test_on_a_terminal_it_asks(run, downloads, monkeypatch, answer, code):
    monkeypatch.setattr(sys, "stdin", Typed(answer))
    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "_on_a_terminal", lambda: True)
    seen = run(*DOWNLOAD)
    assert (seen.code, len(downloads)) == (code, code == 0)
    assert "Do you agree? [y/N]" in seen.err
    assert ("nothing was downloaded, because the terms were not agreed to" in seen.err) == (code == 2)


def test_interrupted_download_is_kept(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "fetch", interrupted)
    seen = run(*DOWNLOAD, "--yes")
    assert seen.code == 130
    assert "error: interrupted; what has come is kept, run it again to go on from there\n" in seen.err
    assert "nothing was written" not in seen.err


def test_description_has_all_numbers_and_fits_the_screen(run):
    seen = run("data", "describe", SMALL)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("Synthetic stand-in for MovieLens\n")
    for words in (
        r"\nusers +300\n", r"\nmost attractive items +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){10}",
        r"\nbest slate of 4, greedy +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){4}",
        r"\n *least +10% +25% +median +75% +90% +99% +most *\n", r"\nAdventure +\d+ +\d\.\d\d%",
    ):  # fmt: skip
        assert re.search(words, seen.out), words
    assert max(len(line.rstrip()) for line in seen.out.splitlines()) < 80
    group = run("data", "describe", SMALL, "--group", "Adventure").out
    assert group.startswith("Synthetic stand-in for MovieLens, Adventure\n")
    assert re.search(r"\nitems +3\d\n", group)


def test_description_as_json_has_the_same_numbers(run):
    page = json.loads(run("data", "describe", SMALL, "--json").out)
    assert page["source"] == SMALL
    assert (page["users"], page["items"], page["group"], page["synthetic"]) == (300, 400, None, True)
    groups = make_source(SMALL).load(None).groups()
    assert {group["name"]: group["items"] for group in page["groups"]} == {
        name: len(items) for name, items in groups.items()
    }
    assert json.loads(run("data", "describe", SMALL, "--group", "Crime", "--json").out)["group"] == "Crime"


def test_your_own_table_is_described_in_any_encoding(run, folder):
    (folder / "sales.csv").write_text("customer,film\n7,Alien [1979]\n7,Brazil\n19,Brazil\n")
    seen = run("data", "describe", "table:user=customer,item=film", "--data", "sales.csv")
    assert (seen.code, seen.err) == (0, "")
    assert "Alien [1979]" in seen.out
    assert "group" not in seen.out
    (folder / "latin.csv").write_bytes("1,café\n2,thé\n".encode("iso-8859-1"))
    assert "café" in run("data", "describe", "table:encoding=iso-8859-1", "--data", "latin.csv").out


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


def test_progress_bar_leaves_no_trace(terminal):
    program = terminal("data", "describe", "synthetic-yelp")
    program.read_to_the_end()
    assert program.process.returncode == 0
    assert "making data up" in program.text
    assert program.screen() == []
    assert program.process.stdout.read().decode().startswith("Synthetic stand-in for Yelp\n")
