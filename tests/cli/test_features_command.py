"""`firstclick features`: from a log to a catalog that the service reads."""

import json

import numpy as np
import pytest

from firstclick.catalog.file import read_catalog
from firstclick.data import feedback_matrix, read_interactions, truncated_svd
from firstclick.data.sources import make_source

SMALL = "synthetic-movielens:n_users=300,n_items=400"
STARS = ("--interactions", "ratings.csv", "--user-column", "user", "--item-column", "item", "--value-column",
         "rating", "--above", 3)  # fmt: skip


def test_the_catalog_has_the_features_of_the_svd_most_attractive_item_first(run, ratings):
    seen = run("features", *STARS, "--rank", 3, "--out", "items.csv")
    assert seen.code == 0
    assert seen.err == "serve it: firstclick serve --catalog items.csv\n"
    log = read_interactions(
        "ratings.csv", user_column="user", item_column="item", value_column="rating", above=3
    )
    matrix = feedback_matrix(log)
    rows = truncated_svd(matrix, 3)
    explained = (rows**2).sum() / (matrix.toarray() ** 2.0).sum()
    assert seen.out == (
        f"items.csv: 9 of 9 items with 3 features, which explain {explained:.0%} of what 14 users liked\n"
    )
    read = read_catalog("items.csv")
    assert read.feature_names == ("f1", "f2", "f3")
    likes = dict(zip(log.item_ids, np.asarray(matrix.sum(axis=0)).ravel().tolist(), strict=True))
    counts = [likes[item.id] for item in read.items]
    assert counts == sorted(counts, reverse=True)
    assert {item.id: item.features.tolist() for item in read.items} == dict(
        zip(log.item_ids, rows.tolist(), strict=True)
    )


@pytest.mark.parametrize("name", ["items.csv", "items.parquet"])
def test_any_source_gives_names_and_groups(run, name):
    seen = run("features", SMALL, "--items", 50, "--out", name, "--json")
    made = make_source(SMALL).load(None)
    told = json.loads(seen.out)
    assert 0 < told.pop("explained") < 1
    assert told == {
        "catalog": name, "data": SMALL, "users": 300, "items_in_data": 400, "items": 50, "features": 20,
    }  # fmt: skip
    read = read_catalog(name)
    assert len(read.items) == 50
    for item in read.items:
        code = made.item_ids.index(item.id)
        assert item.name == made.item_names[code]
        assert item.group == "|".join(made.item_groups[code])
    # Items are cut after the features are learned.
    features = truncated_svd(feedback_matrix(made), 20)
    assert read.items[0].features.tolist() == features[made.item_ids.index(read.items[0].id)].tolist()


def test_columns_may_name_items_and_groups_and_the_rank_follows_the_data(run, folder):
    (folder / "log.csv").write_text("who,what,title,genre\n1,a,Alien,Horror|SF\n2,a,,\n2,b,Brazil,\n")
    options = (
        "--user-column",
        "who",
        "--item-column",
        "what",
        "--name-column",
        "title",
        "--group-column",
        "genre",
    )
    assert run("features", "--interactions", "log.csv", *options, "--out", "my items.csv").err == (
        "serve it: firstclick serve --catalog 'my items.csv'\n"
    )
    read = read_catalog("my items.csv")
    assert [item[:3] for item in read.items] == [("a", "Alien", "Horror|SF"), ("b", "Brazil", "")]
    assert len(read.feature_names) == 2


def test_a_header_taken_for_a_row_is_noted(run, folder):
    (folder / "log.csv").write_text("user,item\n1,2\n2,3\n4,2\n")
    seen = run("features", "--interactions", "log.csv", "--out", "items.csv")
    assert seen.err.startswith(
        "note: log.csv has one user that is no number, 'user'; if line 1 is a header, say"
    )
    seen = run("features", "--interactions", "log.csv", "--header", "--out", "items.csv", "--overwrite")
    assert seen.err.startswith("serve it: ")
    assert [item.id for item in read_catalog("items.csv").items] == ["2", "3"]


def test_a_file_that_is_there_is_kept_unless_told_otherwise(run, folder):
    (folder / "items.csv").write_text("mine")
    seen = run("features", SMALL, "--out", "items.csv")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == "error: --out items.csv is there already; name a new file, or say --overwrite\n"
    assert (folder / "items.csv").read_text() == "mine"
    assert run("features", SMALL, "--out", "items.csv", "--overwrite").code == 0
    assert len(read_catalog("items.csv").items) == 400
    assert [path.name for path in folder.iterdir()] == ["items.csv"]


OUT = ("--out", "items.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (OUT, "give a SOURCE of data or --interactions FILE, one of them; --help has examples"),
        (
            (SMALL, "--interactions", "ratings.csv", *OUT),
            "give a SOURCE of data or --interactions FILE, one of them; --help has examples",
        ),
        ((SMALL, "--above", 3, *OUT), "--above goes with --interactions"),
        ((SMALL, "--header", *OUT), "--header goes with --interactions"),
        (
            ("--interactions", "ratings.csv", "--data", ".", *OUT),
            "--data goes with a SOURCE; --interactions names its file itself",
        ),
        (
            ("--interactions", "ratings.csv", "--above", 3, *OUT),
            "--above needs --value-column, the column to compare with it",
        ),
        ((SMALL, "--data", ".", *OUT), "synthetic-movielens is made up from a seed; leave --data out"),
        (("table", *OUT), "table needs --data, the place of a CSV, TSV or Parquet file"),
        (("movielen", "--data", ".", *OUT), "source 'movielen' is unknown; did you mean 'movielens'?"),
        (("--interactions", "none.csv", *OUT), "none.csv: no such file"),
        (
            (*STARS[:-1], 5, *OUT),
            "ratings.csv: nothing attracts anybody, so nothing can be learned; lower the bound on values",
        ),
        ((*STARS, "--rank", 0, *OUT), "--rank must be at least 1, got 0"),
        (
            (*STARS, "--rank", 10, *OUT),
            "--rank must be at most 9 (the training matrix is 14 users x 9 items), got 10",
        ),
        ((*STARS, "--items", 0, *OUT), "--items must be at least 1, got 0"),
        ((*STARS, "--items", 10, *OUT), "--items must be at most 9, the items in the data, got 10"),
        ((*STARS, "--out", "items.txt"), "--out must end in .csv or .parquet, got 'items.txt'"),
        (
            (*STARS, "--out", "no/items.csv"),
            "--out no/items.csv cannot be written: No such file or directory",
        ),
        ((*STARS, "--out", "folder.csv"), "--out folder.csv is a folder; name a file in it"),
        (STARS, "Missing option '--out'."),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(run, ratings, arguments, message):
    (ratings / "folder.csv").mkdir()
    before = sorted(ratings.iterdir())
    seen = run("features", *arguments)
    assert (seen.code, seen.out, seen.err) == (2, "", f"error: {message}\n")
    assert sorted(ratings.iterdir()) == before


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
    columns = ("--user-column", "user", "--item-column", "item")
    asked = ("--value-column", "clicked", "--out", "out.csv", "--overwrite")
    seen = run("features", "--interactions", "clicks.csv", *columns, *asked)
    assert seen.err.splitlines(keepends=True)[:2] == [
        "note: clicks.csv: 2 of 93 rows skipped: 1 blank (line 92), 1 without an item (line 93)\n",
        "note: clicks.csv " + IMPRESSIONS.format("column 'position'"),
    ]
    seen = run("features", "--interactions", "plain.csv", *columns, *asked)
    assert seen.err.startswith(
        "note: plain.csv " + IMPRESSIONS.format("80% of its values are 0, and it has 7 items")
    )
    # Stars above a bound say nothing about what was shown.
    assert "note" not in run("features", "--interactions", "plain.csv", *columns, *asked, "--above", 0.5).err
    seen = run("features", "--interactions", "liked.csv", *columns, "--out", "out.csv", "--overwrite")
    assert "column 'rank_by_us'" in seen.err
    seen = run("features", "--interactions", "clicks.csv", *columns, *asked, "--strict")
    assert seen.err == "error: clicks.csv line 92 is blank, but rows follow it\n"


def test_items_of_the_catalog_that_the_log_lacks_are_counted(run, ratings):
    first = run("features", *STARS, "--out", "all.csv").out
    items = read_catalog("all.csv").items
    (ratings / "items.csv").write_text(
        "ID,name\n" + "".join(f"{item.id},x\n" for item in items[1:]) + "new,\nn2,\n"
    )
    seen = run("features", *STARS, "--catalog", "items.csv", "--out", "out.csv")
    assert seen.out == first.replace("all.csv", "out.csv") + (
        "items.csv: 2 of 10 items are not in the log and get no features\n"
    )
    told = json.loads(run("features", *STARS, "--catalog", "items.csv", "--out", "o.csv", "--json").out)
    assert (told["not_in_log"], told["of"]) == (2, 10)
    (ratings / "bad.csv").write_text("sku\n1\n")
    seen = run("features", *STARS, "--catalog", "bad.csv", "--out", "o2.csv")
    assert seen.err == "error: --catalog bad.csv has no column 'id'; call the column of item ids so\n"


def test_the_help_has_examples(run):
    assert "  firstclick features --interactions ratings.csv" in run("features", "--help").out


def test_while_it_reads_there_is_a_bar_and_nothing_stays_of_it(terminal):
    one = terminal("features", SMALL, *OUT)
    one.read_to_the_end()
    assert one.process.returncode == 0
    assert "learning features" in one.text
    assert one.screen() == ["serve it: firstclick serve --catalog items.csv"]
