"""`firstclick compare`: the guide's table and picture, kept cell by cell."""

import json

import pytest

SMALL = ("--world", "few-items", "--policy", "cascade-ts", "--steps", 40, "--runs", 2, "--jobs", 1)


def test_it_writes_the_table_and_the_picture_and_goes_on_where_it_was(run, folder):
    first = run("compare", *SMALL, "--out", "guide")
    assert first.code == 0
    said = first.err.splitlines()  # In between there is a line for every half minute.
    assert (said[0], said[-1]) == ("4 cells", "guide: guide/guide.md")
    header, row = first.out.splitlines()
    assert header.split() == ["world", "nobody", "clearly", "better", "than", "least", "regret", "random"]
    assert row.startswith("few-items  cascade-ts")
    written = {path.name for path in (folder / "guide").iterdir()} - {".lock"}
    assert written == {
        "cells", "guide.md", "guide.png", "guide.svg", "manifest.json", "results.csv", "speed.csv"
    }  # fmt: skip
    page = (folder / "guide" / "guide.md").read_bytes()
    assert b"| `cascade-ts` |" in page
    again = run("compare", *SMALL, "--out", "guide")
    assert again.err.splitlines()[0] == "4 cells, 4 of them finished already"
    assert again.out == first.out
    assert (folder / "guide" / "guide.md").read_bytes() == page


def test_json_has_every_policy_and_null_for_what_is_no_number(run):
    seen = run("compare", *SMALL, "--policy", "cascade-lin-ts", "--json")
    assert seen.code == 0
    lines = json.loads(seen.out)
    assert [line["learner"] for line in lines] == ["cascade-ts", "cascade-lin-ts", "random"]
    assert lines[1]["expected_regret"] is None
    assert lines[1]["reason"] == "cascade-lin-ts needs features, and this world has none"
    assert lines[2]["share_of_random"] == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--world", "few-itms"), "unknown stock world 'few-itms'; did you mean 'few-items'?"),
        (("--policy", "cascade-tss"), "unknown policy 'cascade-tss'; did you mean 'cascade-ts'?"),
        (("--policy", "cascade-ts", "--policy", "cascade-ts"), "policy 'cascade-ts' is given twice"),
        (("--steps", 0), "--steps must be at least 1, got 0"),
        (("--runs", "many"), "--runs must be a whole number, got 'many'"),
        (("--engine", "cluster"), "--engine must be local, dask or the tcp://host:port of a scheduler, got"),
        (("--out", "mine"), "mine holds other files (notes.txt); name a new folder, or an empty one"),
    ],
)
def test_a_wrong_call_is_one_line(run, folder, given, sentence):
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    seen = run("compare", *given)
    assert seen.code == 2
    assert sentence in seen.err
    assert len(seen.err.splitlines()) == 1
    assert seen.out == ""


def test_a_folder_of_another_call_is_refused_without_overwrite(run):
    assert run("compare", *SMALL, "--out", "guide").code == 0
    other = ("compare", *SMALL, "--seed", 9, "--out", "guide")
    seen = run(*other)
    assert seen.code == 2
    assert "holds the results of another call; pass --overwrite to replace them" in seen.err
    assert run(*other, "--overwrite").code == 0
