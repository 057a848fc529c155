"""`firstclick catalog describe`: what each column of a file becomes."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "catalogs.md"
COLUMNS = ["sku", "title", "price", "brand", "year", "a column whose name is long", "currency"]


@pytest.fixture
def products(folder):
    prices = [f'"{i + 1},50"' for i in range(30)]
    prices[4] = "on request"
    rows = [
        [f"A{i}", f"Article {i}", price, "Bolt" if i % 3 else "Acme", 2020 + i % 2, i * i % 11, "EUR"]
        for i, price in enumerate(prices)
    ]
    text = "".join(",".join(map(str, row)) + "\n" for row in [COLUMNS, *rows])
    (folder / "products.csv").write_text(text)


@pytest.mark.usefixtures("products")
def test_table_has_all_columns_and_the_next_command(run):
    options = ("--ignore", "a column whose name is long", "--category", "YEAR")
    seen = run("catalog", "describe", "products.csv", *options)
    assert seen.code == 0
    lines = [line.rstrip() for line in seen.out.splitlines()]
    assert max(map(len, lines)) <= 100
    starts = [line.split("  ")[0] for line in lines[2:] if not line.startswith((" ", "note:"))]
    assert starts == [*COLUMNS[:5], "a column whose name is", "long", "currency"]
    assert lines[-2] == "note: ids are taken from column 'sku', because none is called id"
    assert seen.err == (
        "serve it: firstclick serve --catalog products.csv --ignore 'a column whose name is long' "
        "--category YEAR --k 6\n"
    )


@pytest.mark.usefixtures("products")
def test_json_has_every_column_in_one_line(run):
    seen = run("catalog", "describe", "products.csv", "--json")
    assert (seen.code, seen.err, seen.out.count("\n")) == (0, "", 1)
    columns = json.loads(seen.out)["columns"]
    kinds = ["id", "name", "number", "category", "number", "number", "left out"]
    assert [(row["column"], row["taken_as"]) for row in columns] == list(zip(COLUMNS, kinds, strict=True))
    (problem,) = columns[2]["problems"]
    assert "'on request' in line 6" in problem


def test_latin_1_is_read_if_named(run, folder):
    (folder / "l.csv").write_bytes("id,name\na,Café\n".encode("iso-8859-1"))
    assert "Café" in run("catalog", "describe", "l.csv", "--encoding", "latin-1").out


def test_page_of_the_docs_shows_what_is_printed(run, folder):
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "products.csv").write_text(blocks[0], encoding="utf-8")
    seen = run("catalog", "describe", "products.csv")
    printed = "".join(f"{line.rstrip()}\n" for line in (seen.out + seen.err).splitlines())
    assert blocks[1] == f"$ firstclick catalog describe products.csv\n{printed}"
