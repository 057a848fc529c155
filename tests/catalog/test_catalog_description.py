import json

from firstclick.catalog.describe import catalog_as_json, described, short_description
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.file import catalog_from_frame

N = 40
SHOP = {
    "sku": [f"A{i}" for i in range(N)],
    "title": [f"Article {i}" for i in range(N)],
    "price": ["on request", *(f"{1.5**i:.2f}" for i in range(N - 1))],
    "year": [2020 + i % 3 for i in range(N)],
    "brand": ["Acme", "Bolt", "Bolt", "Crux"] * (N // 4),
    "organic": ["yes", "no"] * (N // 2),
    "currency": ["EUR"] * N,
    **{f"vec_{j}": [(i * (j + 3)) % 7 + 0.5 for i in range(N)] for j in range(12)},
}
SHOP["vec_3"] = ["broken", *SHOP["vec_3"][1:]]


def test_an_embedding_is_one_row_and_ids_come_first():
    file = catalog_from_frame(SHOP)
    rows = {row.column: row for row in described(file.encoder(), file)}
    assert list(rows) == [
        "sku", "title", "price", "year", "brand", "organic", "currency", "vec_0 ... vec_11",
    ]  # fmt: skip
    embedding = rows["vec_0 ... vec_11"]
    assert (embedding.n_features, embedding.n_columns, embedding.n_missing) == (12, 12, 1)
    assert embedding.problems == ("vec_3: 1 cell is no number, 'broken' in row 0 (from 0); taken as missing",)
    assert (rows["sku"].taken_as, rows["title"].taken_as) == ("id", "name")


def test_in_short():
    file = catalog_from_frame(SHOP, category=["year"])
    assert short_description(file.encoder(), file, "products.csv") == [
        "catalog: 40 items, 19 columns -> 22 features (1 number, 2 categories, 1 yes/no, 1 embedding); "
        "left out: currency (constant); `firstclick catalog describe products.csv` tells more",
        "price: 1 cell is no number, 'on request' in row 0 (from 0); taken as missing",
        "vec_3: 1 cell is no number, 'broken' in row 0 (from 0); taken as missing",
    ]


def test_many_left_out_are_counted():
    encoder = Encoder.fitted({f"c{j}": ["EUR"] * 3 for j in range(11)} | {"ok": ["yes", "no", "no"]})
    [said] = short_description(encoder)
    assert said.startswith(
        "catalog: 3 items, 12 columns -> 1 feature (1 yes/no); left out: c0 (constant), c1"
    )
    assert said.endswith("c7 (constant) and 3 more")


def test_as_json():
    file = catalog_from_frame(SHOP)
    encoder = file.encoder()
    page = json.loads(json.dumps(catalog_as_json(file, encoder), allow_nan=False))
    assert page["items"] == N
    assert page["features"] == len(page["feature_names"]) == encoder.n_features
    assert sum(row["features"] for row in page["columns"]) == encoder.n_features
    assert page["columns"][2] == {
        "column": "price",
        "columns": 1,
        "taken_as": "number",
        "features": 1,
        "missing": 1,
        "examples": ["on request", "1.00", "1.50"],
        "reason": "log scale; 1 to 4,914,370",
        "problems": ["1 cell is no number, 'on request' in row 0 (from 0); taken as missing"],
    }
    assert page["notes"] == [
        "ids are taken from column 'sku', because none is called id",
        "names are taken from column 'title', because none is called name",
    ]
