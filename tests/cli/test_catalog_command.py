"""`firstclick catalog describe`: what each column of a file becomes, and what is wrong with it."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "catalogs.md"

N = 30


@pytest.fixture
def products(folder):
    rows = [
        [
            f"A{i}",
            f"Article {i}",
            f'"{i + 1},50"',
            "Acme" if i % 3 else "Bolt",
            2020 + i % 2,
            i * i % 11,
            "EUR",
        ]
        for i in range(N)
    ]
    rows[4][2] = "on request"
    names = ["sku", "title", "price", "brand", "year", "a column whose name is long", "currency"]
    text = "\n".join(",".join(map(str, row)) for row in [names, *rows])
    (folder / "products.csv").write_text(text + "\n", encoding="utf-8")


@pytest.mark.usefixtures("products")
def test_a_table_of_all_columns_and_the_next_command(run):
    seen = run(
        "catalog", "describe", "products.csv", "--ignore", "a column whose name is long", "--category", "YEAR"
    )
    assert seen.code == 0
    lines = [line.rstrip() for line in seen.out.splitlines()]
    assert lines[0] == "products.csv: 30 items, 7 columns -> 7 features"
    assert lines[1].split() == [
        "column",
        "taken",
        "as",
        "features",
        "missing",
        "examples",
        "what",
        "to",
        "know",
    ]
    assert max(map(len, lines)) <= 100
    starts = [line.split("  ")[0] for line in lines[2:] if not line.startswith((" ", "note:"))]
    assert starts == ["sku", "title", "price", "brand", "year", "a column whose name is", "long", "currency"]
    assert "! 1 cell is no" in seen.out
    assert lines[-2:] == [
        "note: ids are taken from column 'sku', because none is called id",
        "note: names are taken from column 'title', because none is called name",
    ]
    assert seen.err == (
        "serve it: firstclick serve --catalog products.csv --ignore 'a column whose name is long' "
        "--category YEAR --k 6\n"
    )


@pytest.mark.usefixtures("products")
def test_json_has_everything_in_one_line(run):
    seen = run("catalog", "describe", "products.csv", "--json")
    assert (seen.code, seen.err, seen.out.count("\n")) == (0, "", 1)
    page = json.loads(seen.out)
    assert [(row["column"], row["taken_as"]) for row in page["columns"]] == [
        ("sku", "id"), ("title", "name"), ("price", "number"), ("brand", "category"), ("year", "number"),
        ("a column whose name is long", "number"), ("currency", "left out"),
    ]  # fmt: skip
    assert page["columns"][2]["problems"] == ["1 cell is no number, 'on request' in line 6; taken as missing"]


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--ignore", "prize"], "--ignore names 'prize', and no column is called so; did you mean 'price'?"),
        (["--id", "brand"], "products.csv: 2 ids are there more than once"),
        (
            ["--id", "nix"],
            "--id names 'nix', and no column of products.csv is called so (columns: sku, title,",
        ),
        (
            ["--number", "brand"],
            "--number names 'brand', but none of its cells is a number, 'Acme' for instance",
        ),
        (["--embedding", "pri"], "--embedding names 'pri', but there are no columns pri0, pri1, ..."),
        (
            ["--ignore", "year", "--number", "year"],
            "column 'year' is in --ignore and in --number; leave out one",
        ),
        (["--encoding", "klingon"], "unknown encoding 'klingon'"),
    ],
)
def test_errors_name_the_option_and_the_way_out(run, options, error):
    seen = run("catalog", "describe", "products.csv", *options)
    assert seen.code != 0
    assert seen.out == ""
    assert error in seen.err


def test_latin_1_and_no_ids(run, folder):
    (folder / "l.csv").write_bytes("id,name\na,Caf\xe9\n".encode("iso-8859-1"))
    assert "for example --encoding latin-1" in run("catalog", "describe", "l.csv").err
    assert "Café" in run("catalog", "describe", "l.csv", "--encoding", "latin-1").out
    (folder / "n.csv").write_text("shop,f\na,1\na,2\n")
    assert "say --id COLUMN (columns: shop, f)" in run("catalog", "describe", "n.csv").err


def test_the_page_shows_what_is_printed(run, folder):
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "products.csv").write_text(blocks[0], encoding="utf-8")
    seen = run("catalog", "describe", "products.csv")
    printed = "".join(f"{line.rstrip()}\n" for line in (seen.out + seen.err).splitlines())
    assert blocks[1] == f"$ firstclick catalog describe products.csv\n{printed}"
