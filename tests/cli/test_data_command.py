"""`firstclick data` and `firstclick features`: from a source or a log to a catalog that the service reads."""

import hashlib
import io
import json
import re
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from firstclick.catalog.file import read_catalog
from firstclick.data import feedback_matrix, read_interactions, truncated_svd
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.download import ARCHIVES, find_archive

SMALL = "synthetic-movielens:n_users=300,n_items=400"
STARS = ("--interactions", "ratings.csv", "--user-column", "user", "--item-column", "item", "--value-column",
         "rating", "--above", 3)  # fmt: skip
DOWNLOAD = ("data", "download", "movielens-1m")


@pytest.fixture
def requests(monkeypatch):
    """MovieLens 1M as a small zip file on loopback; the requests it gets."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name in find_archive("movielens-1m").members:
            packed.writestr(f"ml-1m/{name}", f"this is {name}")
    content, paths = file.getvalue(), []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        address = f"http://127.0.0.1:{http.server_port}/ml-1m.zip"
        served = replace(
            ARCHIVES["movielens-1m"], address=address, md5=hashlib.md5(content).hexdigest()
        )  # fmt: skip
        monkeypatch.setitem(ARCHIVES, "movielens-1m", served)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield paths
        http.shutdown()
        thread.join()


def test_terms_are_agreed_to_before_anything_is_downloaded(run, requests, folder):
    refused = run(*DOWNLOAD)
    assert (refused.code, refused.out) == (2, "")
    assert "Harper" in refused.err
    assert refused.err.endswith("error: nobody is here to agree to the terms above; if you do, say --yes\n")
    assert (requests, list(folder.iterdir())) == ([], [])
    seen = run(*DOWNLOAD, "--data", "mine", "--yes")
    assert (seen.code, seen.out) == (0, "mine/ml-1m\n")
    assert (folder / "mine/ml-1m/ratings.dat").read_text() == "this is ratings.dat"
    assert "firstclick data describe movielens --data mine/ml-1m" in seen.err
    assert "University of Minnesota" in seen.err
    again = run(*DOWNLOAD, "--data", "mine")
    assert (again.code, again.out) == (0, "mine/ml-1m\n")
    assert "MovieLens 1M is there already" in again.err
    assert requests == ["/ml-1m.zip"]


class Typed(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 2), ("no\n", 2), ("", 2)])
def test_on_a_terminal_it_asks(run, requests, monkeypatch, answer, code):
    monkeypatch.setattr(sys, "stdin", Typed(answer))
    monkeypatch.setattr(sys.modules["firstclick.cli.data"], "_on_a_terminal", lambda: True)
    seen = run(*DOWNLOAD)
    assert (seen.code, len(requests)) == (code, code == 0)
    assert "Do you agree? [y/N]" in seen.err
    assert ("nothing was downloaded, because the terms were not agreed to" in seen.err) == (code == 2)


def test_interrupted_download_is_kept_and_a_damaged_one_is_not(run, requests, monkeypatch):
    monkeypatch.setitem(ARCHIVES, "movielens-1m", replace(ARCHIVES["movielens-1m"], md5="0" * 32))
    seen = run(*DOWNLOAD, "--yes")
    assert (seen.code, seen.out) == (1, "")
    assert "thrown away" in seen.err

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
        r"\nusers +300\n", r"\nitems +400\n", r"\ndensity +2\.\d\d%\n", r"\nusers whom nothing attracts +",
        r"\nmost attractive items +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){10}",
        r"\nbest slate of 4, greedy +attraction\n(synthetic movie \d{4} +\d+\.\d+% *\n){4}",
        r"clicked by \d\d\.\d% of users; the 4 most attractive: \d\d\.\d%\n",
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
    assert (page["title"], page["synthetic"]) == ("Synthetic stand-in for MovieLens", True)
    assert (page["users"], page["items"], page["group"]) == (300, 400, None)
    data = make_source(SMALL).load(None)
    assert page["attracted_pairs"] == len(data.items)
    assert page["best_click_probability"] >= page["popular_click_probability"] > 0.5
    sizes = {name: len(items) for name, items in data.groups().items()}
    assert {group["name"]: group["items"] for group in page["groups"]} == sizes
    assert json.loads(run("data", "describe", SMALL, "--group", "Crime", "--json").out)["group"] == "Crime"


def test_your_own_table_is_described_in_any_encoding(run, folder):
    (folder / "sales.csv").write_text("customer,film\n7,Alien [1979]\n7,Brazil\n19,Brazil\n")
    seen = run("data", "describe", "table:user=customer,item=film", "--data", "sales.csv")
    assert (seen.code, seen.err) == (0, "")
    assert re.search(r"\nBrazil +100%", seen.out)
    assert "Alien [1979]" in seen.out
    assert "best slate of 2" in seen.out
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


def test_features_are_those_of_the_svd_most_attractive_item_first(run, ratings):
    seen = run("features", *STARS, "--rank", 3, "--out", "items.csv")
    assert (seen.code, seen.err) == (0, "serve it: firstclick serve --catalog items.csv\n")
    columns = {"user_column": "user", "item_column": "item", "value_column": "rating"}
    log = read_interactions("ratings.csv", **columns, above=3)
    matrix = feedback_matrix(log)
    rows = truncated_svd(matrix, 3)
    explained = (rows**2).sum() / (matrix.toarray() ** 2.0).sum()
    assert seen.out == (
        f"items.csv: 9 of 9 items with 3 features, which explain {explained:.0%} of what 14 users liked\n"
    )
    catalog = read_catalog("items.csv")
    assert catalog.feature_names == ("f1", "f2", "f3")
    likes = dict(zip(log.item_ids, np.asarray(matrix.sum(axis=0)).ravel().tolist(), strict=True))
    counts = [likes[item.id] for item in catalog.items]
    assert counts == sorted(counts, reverse=True)
    features = {item.id: item.features.tolist() for item in catalog.items}
    assert features == dict(zip(log.item_ids, rows.tolist(), strict=True))


@pytest.mark.parametrize("name", ["items.csv", "items.parquet"])
def test_any_source_gives_names_and_groups(run, name):
    page = json.loads(run("features", SMALL, "--items", 50, "--out", name, "--json").out)
    data = make_source(SMALL).load(None)
    assert 0 < page.pop("explained") < 1
    assert page == {
        "catalog": name, "data": SMALL, "users": 300, "items_in_data": 400, "items": 50, "features": 20,
    }  # fmt: skip
    items = read_catalog(name).items
    assert len(items) == 50
    for item in items:
        code = data.item_ids.index(item.id)
        assert (item.name, item.group) == (data.item_names[code], "|".join(data.item_groups[code]))
    # Items are cut after the features are learned.
    features = truncated_svd(feedback_matrix(data), 20)
    assert items[0].features.tolist() == features[data.item_ids.index(items[0].id)].tolist()


def test_columns_may_name_items_and_groups_and_the_rank_follows_the_data(run, folder):
    (folder / "log.csv").write_text("who,what,title,genre\n1,a,Alien,Horror|SF\n2,a,,\n2,b,Brazil,\n")
    columns = "--user-column who --item-column what --name-column title --group-column genre"
    seen = run("features", "--interactions", "log.csv", *columns.split(), "--out", "my items.csv")
    assert seen.err == "serve it: firstclick serve --catalog 'my items.csv'\n"
    catalog = read_catalog("my items.csv")
    assert [item[:3] for item in catalog.items] == [("a", "Alien", "Horror|SF"), ("b", "Brazil", "")]
    assert len(catalog.feature_names) == 2


def test_file_is_replaced_only_on_demand_and_a_header_read_as_a_row_is_noted(run, folder):
    (folder / "log.csv").write_text("user,item\n1,2\n2,3\n4,2\n")
    call = ("features", "--interactions", "log.csv", "--out", "items.csv")
    assert run(*call).err.startswith("note: log.csv has one user that is no number, 'user'; if line 1 is a")
    refused = run(*call, "--header")
    assert (refused.code, "is there already; name a new file, or say --overwrite" in refused.err) == (2, True)
    assert len(read_catalog("items.csv").items) == 3
    assert run(*call, "--header", "--overwrite").err.startswith("serve it: ")
    assert [item.id for item in read_catalog("items.csv").items] == ["2", "3"]
    assert sorted(path.name for path in folder.iterdir()) == ["items.csv", "log.csv"]


CLICKS = "user,item,position,clicked\n" + "".join(
    f"u{i % 9},i{i % 7},{i % 4},{int(i % 5 == 0)}\n" for i in range(90)
)
IMPRESSIONS = (
    "looks like a log of impressions ({}): an item that a user was never shown counts as not attractive "
    "here; `firstclick evaluate` is for such logs\n"
)


def test_skipped_rows_and_impressions_are_noted(run, folder):
    (folder / "clicks.csv").write_text(CLICKS + "\nu1,,2,1\nu2,i1,3,0\n")
    (folder / "plain.csv").write_text(CLICKS.replace("position", "x"))
    (folder / "liked.csv").write_text("user,item,rank_by_us\n" + "u1,a,1\nu2,b,1\nu2,a,1\n")

    def notes(file, *more):
        columns = ("--user-column", "user", "--item-column", "item")
        seen = run("features", "--interactions", file, *columns, *more, "--out", "out.csv", "--overwrite")
        return seen.err

    clicked = ("--value-column", "clicked")
    assert notes("clicks.csv", *clicked).splitlines(keepends=True)[:2] == [
        "note: clicks.csv: 2 of 93 rows skipped: 1 blank (line 92), 1 without an item (line 93)\n",
        "note: clicks.csv " + IMPRESSIONS.format("column 'position'"),
    ]
    zeros = IMPRESSIONS.format("80% of its values are 0, and it has 7 items")
    assert notes("plain.csv", *clicked).startswith("note: plain.csv " + zeros)
    # Stars above a bound say nothing about what was shown.
    assert "note" not in notes("plain.csv", *clicked, "--above", 0.5)
    assert "column 'rank_by_us'" in notes("liked.csv")
    strict = notes("clicks.csv", *clicked, "--strict")
    assert strict == "error: clicks.csv line 92 is blank, but rows follow it\n"


def test_items_of_the_catalog_that_the_log_lacks_are_counted(run, ratings):
    first = run("features", *STARS, "--out", "all.csv").out
    rows = "".join(f"{item.id},x\n" for item in read_catalog("all.csv").items[1:])
    (ratings / "items.csv").write_text("ID,name\n" + rows + "new,\nn2,\n")
    seen = run("features", *STARS, "--catalog", "items.csv", "--out", "out.csv")
    lacking = "items.csv: 2 of 10 items are not in the log and get no features\n"
    assert seen.out == first.replace("all.csv", "out.csv") + lacking
    page = json.loads(run("features", *STARS, "--catalog", "items.csv", "--out", "o.csv", "--json").out)
    assert (page["not_in_log"], page["of"]) == (2, 10)


@pytest.mark.parametrize(
    ("words", "doing", "screen", "printed"),
    [
        (("data", "describe", "synthetic-yelp"), "making data up", [], "Synthetic stand-in for Yelp\n"),
        pytest.param(
            ("features", SMALL, "--out", "items.csv"), "learning features",
            ["serve it: firstclick serve --catalog items.csv"], "items.csv: 400", marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_progress_bar_leaves_no_trace(terminal, words, doing, screen, printed):
    program = terminal(*words)
    program.read_to_the_end()
    assert program.process.returncode == 0
    assert doing in program.text
    assert program.screen() == screen
    assert program.process.stdout.read().decode().startswith(printed)
