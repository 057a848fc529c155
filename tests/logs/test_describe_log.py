"""Logs in numbers, and what they allow."""

import json

import numpy as np
import pytest

from firstclick.logs import describe
from firstclick.logs.describe import LogDescription, describe_log
from firstclick.logs.description_text import description_text
from firstclick.logs.open_log import open_ranked_log

CHANCES = {"propensities": [0.5, 0.25, 0.25]}


def describe_rows(folder, rows, **how):
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return describe_log(open_ranked_log(path, **how))


def test_counts_are_those_of_slates_with_a_known_outcome(tmp_path):
    result = describe_rows(
        tmp_path,
        [
            {"items": ["a", "b", "c"], "clicks": [0, 2], "examined": 3},
            {"items": ["a", "b", "c"], "clicks": []},
            {"items": ["b", "a"], "clicks": [1]},
            {"items": ["d", "b", "c"], "clicks": None},
        ],
    )
    assert (result.slates, result.reported, result.items, result.items_shown, result.k) == (4, 3, 4, 4, 3)
    assert [(one.shown, one.clicks) for one in result.positions] == [(3, 1), (3, 1), (2, 1)]
    assert (result.clicks, result.clicked_slates) == (3, 2)
    assert (result.several_clicks, result.clicks_below_first) == (1, 1)
    assert (result.distinct_slates, result.most_frequent, result.shortest) == (3, 2, 2)
    assert result.examined_told == 1
    assert result.items_at_several_positions == 2  # a and b


def test_slates_that_differ_are_counted_over_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(describe, "_AT_ONCE", 7)
    draw = np.random.default_rng(3)
    slates = [draw.permutation(4).tolist() for _ in range(500)]
    result = describe_rows(tmp_path, [{"items": slate, "clicks": [0]} for slate in slates])
    counts = {tuple(slate): slates.count(slate) for slate in slates}
    assert (result.distinct_slates, result.most_frequent) == (len(counts), max(counts.values()))


def slate(items, *clicks, **more):
    return {"items": list(items), "clicks": list(clicks), **more}


AB, BA = slate("ab", 0), slate("ba")


@pytest.mark.parametrize(
    ("rows", "kind", "sentence"),
    [
        ([{"items": ["a", "b"]}], "cannot", "No slate has a reported outcome: nothing can be evaluated."),
        ([slate("ab")], "cannot", "No slate was clicked: nothing can be evaluated"),
        ([slate("a", 0)], "cannot", "One item was shown always"),
        ([slate("aa", 0)], "cannot", "No slate can be used"),
        ([AB], "cannot", "One list was shown always"),
        ([AB, slate("ba", 1)], "cannot", "Without propensities other policies cannot be estimated"),
        ([AB], "cannot", "Every slate with a known outcome was clicked."),
        ([AB | {"propensities": [1, 1]}, BA | {"propensities": [1, 1]}], "cannot", "Every propensity is 1"),
        ([AB | {"propensities": [0.5, 0.5]}, BA], "can", "known for 1 of 2 slates"),
        ([AB | {"propensity": 0.5}, BA | {"propensity": 0.5}], "can", "by slate IPS: the probability of all"),
        ([slate("ab", 0, 1), BA], "can", "100.0% of clicked slates have more than one click"),
        ([AB, BA], "cannot", "No slate has more than one click"),
        ([AB, BA], "cannot", "2 slates are few"),
        ([slate("a", 0), slate("b")], "cannot", "Slates have one place"),
        ([AB | {"propensities": [0.9, 0.9]}] * 199 + [BA | {"propensities": [0.1, 0.1]}], "cannot",
         "99.5% of slates are the same list"),
    ],
)  # fmt: skip
def test_description_says_what_a_log_allows(rows, kind, sentence, tmp_path):
    result = describe_rows(tmp_path, rows)
    assert sentence in " ".join(said for one, said in result.said() if one == kind)
    if not any(row.get("clicks") for row in rows):
        assert len(result.said()) == 1, "a hopeless log has one sentence"


def test_text_has_all_parts(tmp_path):
    rows = [
        {"items": ["a", "b", "c"], "clicks": [1], "time": 1767225600, **CHANCES},
        {"items": ["c", "b", "a"], "clicks": [], "time": 1767312000, "propensities": [2, 0.5, 0.1]},
        {"items": ["c", "c", "a"], "clicks": [0]},
        {"items": ["b", "c", "a"], "clicks": None},
    ]
    lines = [" ".join(line.split()) for line in description_text(describe_rows(tmp_path, rows)).splitlines()]
    assert lines[0] == "log.jsonl: 3 slates of up to 3 of 3 items"
    assert {
        "without reported outcome 1 (33.3%)", "slates with a click 1 (50.0%)", "2 2 1 50.0%",
        "time 2026-01-01 00:00 to 2026-01-02 00:00 UTC",
        "propensities known of every prefix: 1 (33.3%); the smallest is 0.25",
        "- 1 with an item twice (row 2)",
    } < set(lines)  # fmt: skip


def test_json_has_every_field_and_no_nan(tmp_path):
    result = describe_rows(tmp_path, [{"items": ["a", "b"]}])
    page = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert set(page) == {*LogDescription.__dataclass_fields__, "can", "cannot"}
    assert page["positions"][0] == {"position": 1, "shown": 0, "clicks": 0, "click_through": None}
    assert len(page["cannot"]) == 1
