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


def test_features_are_those_of_the_svd_most_attractive_item_first(run, ratings):
    seen = run("features", *STARS, "--rank", 3, "--out", "items.csv")
    assert (seen.code, seen.err) == (0, "serve it: firstclick serve --catalog items.csv\n")
    columns = {"user_column": "user", "item_column": "item", "value_column": "rating"}
    log = read_interactions("ratings.csv", **columns, above=3)
    matrix = feedback_matrix(log)
    rows = truncated_svd(matrix, 3)
    share = f"{(rows**2).sum() / (matrix.toarray() ** 2.0).sum():.0%}"
    assert seen.out.endswith(f" items with 3 features, which explain {share} of what 14 users liked\n")
    catalog = read_catalog("items.csv")
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
    # Items are cut after the features are learned.
    features = truncated_svd(feedback_matrix(data), 20)
    code = data.item_ids.index(items[0].id)
    assert items[0][:3] == (items[0].id, data.item_names[code], "|".join(data.item_groups[code]))
    assert items[0].features.tolist() == features[code].tolist()


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
    (folder / "liked.csv").write_text("user,item,rank_by_us\nu1,a,1\nu2,b,1\nu2,a,1\n")
    assert "column 'rank_by_us'" in notes("liked.csv")
    # Stars above a bound say nothing about what was shown.
    assert "note" not in notes("plain.csv", *clicked, "--above", 0.5)


def test_items_of_the_catalog_that_the_log_lacks_are_counted(run, ratings):
    first = run("features", *STARS, "--out", "all.csv").out
    rows = "".join(f"{item.id},x\n" for item in read_catalog("all.csv").items[1:])
    (ratings / "items.csv").write_text("ID,name\n" + rows + "new,\nn2,\n")
    seen = run("features", *STARS, "--catalog", "items.csv", "--out", "out.csv")
    lacking = "items.csv: 2 of 10 items are not in the log and get no features\n"
    assert seen.out == first.replace("all.csv", "out.csv") + lacking
    page = json.loads(run("features", *STARS, "--catalog", "items.csv", "--out", "o.csv", "--json").out)
    assert (page["not_in_log"], page["of"]) == (2, 10)
