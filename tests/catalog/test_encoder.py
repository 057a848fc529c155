import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick.catalog.encoded_column import MOST_LEVELS, log
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.features import LARGEST_FEATURE, MOST_FEATURES
from firstclick.errors import InvalidInput
from firstclick.streams import stream

DRAW = stream(1, "encoder")
N = 60


def encoded(encoder, columns):
    n = len(next(iter(columns.values())))
    return encoder.encode(encoder.values_of(columns, n))[0]


def only(cells, name="x", **options):
    """The encoder of one column beside another that always counts, and the decision about it."""
    encoder = Encoder.fitted({name: cells}, **options)
    return encoder, encoder.decisions[0]


def in_short(decision):
    """The reason up to its details."""
    return decision.reason.partition(";")[0]


def skewed(n=N):
    return np.round(np.exp(DRAW.normal(3, 1, n)), 2).tolist()


def plain_numbers(n=N):
    return np.round(DRAW.normal(50, 4, n), 3).tolist()


# Numbers


def test_number_is_centred_on_its_median_and_divided_by_a_robust_spread():
    values = plain_numbers(999)
    wild = [*values, 1e9]
    rows = encoded(only(wild)[0], {"x": wild})
    assert np.median(rows) == pytest.approx(0, abs=0.01)
    assert rows[:-1].std() == pytest.approx(2, abs=0.1)
    assert rows[-1, 0] == 8.0
    # One wild number among a few does not count.
    values = [float(one) for one in range(-5, 5)]
    assert only([*values[:-1], 1e9])[0].columns[0].spread == only(values)[0].columns[0].spread
    # Where most are zero the standard deviation counts.
    values = [0.0] * 97 + [5.0, 10.0, 15.0]
    assert only(values)[0].columns[0].spread == pytest.approx(np.std(values) / 2)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (skewed(400), "log"), (plain_numbers(400), ""), ([-v for v in skewed(400)], ""),
        ([0.0, *skewed(400)], ""), ([-1, *(int(v) for v in skewed(400))], ""),
        ([0, *(int(v) + 1 for v in skewed(400))], "log(1 + x)"), ([0, 1, 2, 1, 0, 2, 1, 1], ""),
    ],
)  # fmt: skip
def test_skewed_positive_numbers_get_a_log_scale(values, scale):
    encoder, decision = only(values)
    assert encoder.columns[0].scale == scale
    assert encoder.names == (("x (log)",) if scale else ("x",))
    assert (f"{scale} scale" in decision.reason) == bool(scale)
    if scale == "log":
        rows, odd = encoder.encode([[0], [-5.0], [1e-300], [20.0], [1e99]])
        assert rows[[0, 1, 2, 4], 0].tolist() == [-8, -8, -8, 8]
        assert abs(rows[3, 0]) < 2
        assert not odd


def test_logarithm_is_that_of_the_library_but_for_its_last_digit():
    values = np.exp(DRAW.normal(0, 100, 100_000))
    assert np.allclose(log(values), np.log(values), rtol=4e-16, atol=3e-16)


def test_missing_numbers_are_the_mean_and_get_an_indicator_where_common():
    values = plain_numbers(96)
    rare, _ = only([*values, None, "", "NA", "-"])
    rows, odd = rare.encode([[None], ["n/a"], ["null"]])
    assert (rare.names, bool(odd)) == (("x",), False)
    assert rows[:, 0] == pytest.approx(np.full(3, encoded(rare, {"x": values}).mean()))
    common, decision = only([*values[:94], None, "", "NA", "-", None, None])
    assert (common.names, decision.n_missing) == (("x", "x missing"), 6)
    assert common.encode([[None], [50]])[0][:, 1].tolist() == [1, 0]


def test_other_cells_of_a_number_are_missing_and_named_with_their_line():
    values = [*map(str, plain_numbers(60)), "on request", "ask us", "inf", 1e308]
    encoder, decision = only(values, where=lambda row: f"line {row + 2}")
    assert (decision.kind, decision.n_missing) == ("number", 4)
    assert decision.problems == (
        "2 cells are no numbers, 'on request' in line 62; taken as missing",
        "2 cells are infinite or above 1e100, 'inf' in line 64; taken as missing",
    )
    rows, odd = encoder.encode([["on request"], [math.inf], [-1e308], [50.0], [None]])
    assert np.isfinite(rows).all()
    assert odd.unreadable == (3,)
    assert odd.sentences() == ["x: 3 cells of later items could not be read as a number; taken as missing"]


@pytest.mark.parametrize(
    ("price", "weight", "first"),
    [
        (["1,52", "2,10", "9,99", "4,00"], ["1.234", "2.500", "1.100", "7.000"], 1234),
        (["1.52", "2.10", "9.99", "4.00"], ["1,234", "2,500", "1,100", "7,000"], 1234),
        (["7", "8", "9", "4"], ["1.234", "2.500", "1.100", "7.000"], 1.234),
        (["7", "8", "9", "4"], ["1,234", "2,500", "1,100", "7,000"], 1234),
    ],
)
def test_file_has_one_decimal_mark_where_a_column_is_unclear(price, weight, first):
    encoder = Encoder.fitted({"price": price, "weight": weight})
    column = encoder.columns[1]
    assert column.encode([weight[0]]).rows == column.encode([first]).rows
    assert any(f"{weight[0]} is taken as {first:g}" in problem for problem in encoder.decisions[1].problems)


# Yes and no, categories, dates

MOSTLY_NUMBERS = [*map(str, [7, 8, 9] * 20), *["cheap"] * 5]
BRANDS = ["Bolt"] * 5 + ["Acme"] * 9 + ["Crux"] * 1 + ["acme ", " ACME"]


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        (MOSTLY_NUMBERS, {}, {"kind": "category", "problems": (
            "92 % of its cells are numbers: `number` takes the others as missing",)}),
        (MOSTLY_NUMBERS, {"number": ["x"]}, {"kind": "number", "n_missing": 5, "names": ("x", "x missing")}),
        ([math.inf, "1e308", -1e200], {}, {"names": (), "short": "empty"}),
        (["4,90", "7,50", "3,20", "24,00", "on request"], {}, {"kind": "number", "n_missing": 1}),
        (["yes", "No", "no", "Yes", "no"] * 10, {}, {
            "kind": "yes/no", "short": "40 % yes", "names": ("x",),
            "rows": {"YES": [1], 0: [0], True: [1], None: [0.4], "maybe": [0.4]}, "unreadable": 1}),
        (["x", None, None, "x", ""] * 10, {}, {
            "kind": "yes/no", "names": ("x given",), "rows": {"x": [1], None: [0], "yes": [1], "no": [0]}}),
        (BRANDS, {}, {
            "names": ("x=Acme", "x=Bolt", "x=other"), "reason": "3 levels, 1 in 'other' (6 % of items)",
            "problems": ("spellings that differ in case or blanks alone were joined: 2",),
            "rows": {"ACME": [1, 0, 0], "Bolt": [0, 1, 0], "Crux": [0, 0, 1], "Dyne": [0, 0, 1],
                     "other": [0, 0, 1], None: [11 / 17, 5 / 17, 1 / 17]}, "unknown": 2}),
        ([2020, 2021.0, "2020", None, 2021] * 5, {"category": ["x"]}, {
            "names": ("x=2020", "x=2021", "x=other", "x missing"),
            "rows": {"2020.0": [0, 0, 1, 0], 2020.0: [1, 0, 0, 0]}, "unknown": 1}),
        (["2024-05-01", "30.04.2024", "2024-04-21T12:00", "2024-03-01", None] * 4, {}, {
            "names": ("x (days before 2024-05-01)", "x missing"),
            "reason": "days before 2024-05-01; the earliest is 2024-03-01",
            "rows": {"2031-01-01": [-8, 0], "1990-01-01": [8, 0]}}),
        (["05/04/2024", "01/02/2024", "09/09/2024"], {}, {
            "problems": ("05/04/2024 is taken as day/month/year",)}),
    ],
)  # fmt: skip
def test_columns_become_features(cells, options, expected):
    encoder, decision = only(cells, **options)
    rows = expected.get("rows", {})
    result, odd = encoder.encode([[cell] for cell in rows])
    facts = vars(decision) | {
        "names": encoder.names,
        "short": in_short(decision),
        "unreadable": sum(odd.unreadable),
        "unknown": sum(odd.unknown),
    }
    assert {name: facts.get(name, rows) for name in expected} == expected
    assert result == pytest.approx(np.reshape(list(rows.values()), result.shape))


def test_ten_thousand_levels_are_fifty_and_the_rest():
    cells = [f"level {int(one)}" for one in np.minimum(DRAW.pareto(0.5, 20_000), 1e6)]
    encoder, decision = only(cells)
    assert encoder.n_features == MOST_LEVELS + 1
    assert f"{len(set(cells)):,} levels" in decision.reason
    rows = encoded(encoder, {"x": cells})
    assert (rows.sum(axis=1) == 1).all()
    assert (np.diff(rows.sum(axis=0)[:-1]) <= 0).all()


def test_dates_are_days_before_the_latest():
    encoder, _ = only(["2024-05-01", "30.04.2024", "2024-04-21T12:00", "2024-03-01", None] * 4)
    rows, odd = encoder.encode([["2024-05-01"], ["2024-04-30"], ["2024-03-02"], ["soon"]])
    assert rows[0, 0] < rows[1, 0] < rows[2, 0] < 8.0
    assert odd.unreadable == (1,)
    days = ["13/04/2024", "05/04/2024", "01/02/2024", "09/09/2024"]
    months = ["04/13/2024", "04/05/2024", "02/01/2024", "09/09/2024"]
    one, other = (encoded(only(cells)[0], {"x": cells}).tolist() for cells in (days, months))
    assert one == other


# What is left out


def test_columns_that_say_nothing_are_left_out():
    price = skewed()
    columns = {
        "price": (price, None),
        "cents": ([round(100 * one) for one in price], "a copy of price"),
        "minus": (up := plain_numbers(), None),
        "plus": ([-one for one in up], "a copy of minus"),
        "currency": (["EUR"] * N, "constant"),
        "seven": ([7.0] * N, "constant"),
        "nothing": ([None, "", "NA"] * (N // 3), "empty"),
        "title": ([f"Article {i}" for i in range(N)], "differs in nearly every row"),
        "ean": ([10**12 + 7 * i for i in range(N)], "identifier"),
        "productId": ([str(3 * i) for i in range(N)], "identifier"),
        "paid": ([float(i * i) for i in range(N)], None),
        "text": ([f"{i % 2} " + "long " * 100 for i in range(N)], "long text"),
        "Unnamed: 0": (list(range(N)), "row numbers"),
        "brand": (["A", "B", "B"] * (N // 3), None),
        "brand_id": ([17, 4, 4] * (N // 3), None),
        "brand_name": (["Acme", "Bolt", "Bolt"] * (N // 3), "a copy of brand"),
        "weight": (plain_numbers(), "ignored"),
    }
    encoder = Encoder.fitted({name: cells for name, (cells, _) in columns.items()}, ignore=["weight"])
    why = {one.name: in_short(one) for one in encoder.decisions if one.kind == "left out"}
    assert why == {name: reason for name, (_, reason) in columns.items() if reason}
    assert encoder.inputs == ("price", "minus", "paid", "brand", "brand_id")
    assert encoder.blocks == ((0,), (1,), (2,), (3, 4, 5), (6,))
    assert sum(decision.n_columns for decision in encoder.decisions) == encoder.n_features == 7


def test_too_many_features_name_the_widest_columns():
    levels = [f"level {i % 50}" for i in range(200)]
    lists = [DRAW.normal(size=1000).tolist() for _ in range(200)]
    with pytest.raises(InvalidInput, match=r"becomes 1,051 features.* vec \(1,000\), brand \(51\).*`ignore`"):
        Encoder.fitted({"brand": levels, "vec": lists})


# Embeddings


@pytest.mark.parametrize(
    ("names", "embedding"),
    [
        ("f1,f2", []), ("vec_0,vec_1", []), ("Emb3,Emb4", []), ("x_a_0,x_a_1", ["x_a"]),
        ("text 1,text 2", ["Text "]),
    ],
)  # fmt: skip
def test_embedding_is_scaled_by_one_number(names, embedding):
    table = DRAW.normal(size=(100, 2)) * (100, 0.5)
    columns = dict(zip(names.split(","), table.T.tolist(), strict=True))
    encoder = Encoder.fitted(columns, embedding=embedding)
    rows = encoded(encoder, columns)
    assert encoder.names == tuple(columns)
    assert {one.kind for one in encoder.decisions} == {"embedding"}
    assert rows * encoder.columns[0].divisor == pytest.approx(table)
    assert np.median(np.linalg.norm(rows - rows.mean(axis=0), axis=1)) == pytest.approx(np.sqrt(2))
    assert encoder.blocks == ((0,), (1,))


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        ("img_0 img_1 img_2 img_3", ["embedding"] * 4),
        ("img_0 img_1 img_3", ["number"] * 3),
        ("f1 price", ["embedding", "number"]),
        ("size_1 size_2 vec_9", ["number"] * 3),
    ],
)
def test_numbered_columns_are_an_embedding_if_none_is_missing(names, kinds):
    encoder = Encoder.fitted({name: skewed() for name in names.split()})
    assert [one.kind for one in encoder.decisions] == kinds


def test_lists_are_an_embedding():
    table = DRAW.normal(size=(40, 3)) * (3, 2, 1)
    cells = [*table.tolist(), None, [1.0, 2.0], str(table[0].tolist())]
    encoder, decision = only(cells, "vec")
    assert encoder.names == ("vec[0]", "vec[1]", "vec[2]")
    assert decision.problems == (
        "1 cell is no list of 3 number, [1.0, 2.0] in row 41 (from 0); taken as missing",
    )
    rows = encoded(encoder, {"vec": cells})
    assert rows[:40] * encoder.columns[0].divisor == pytest.approx(table)
    assert rows[42].tolist() == rows[0].tolist()
    assert rows[40].tolist() == rows[41].tolist() == pytest.approx(rows[[*range(40), 42]].mean(axis=0))
    assert encoder.values_of({"vec": cells}, 43)[42] == (table[0].tolist(),)
    # A wide one does not drown other columns.
    wide = (DRAW.normal(size=(200, 64)) * 7 + 3).tolist()
    rows = encoded(only(wide)[0], {"x": wide})
    assert np.median(np.linalg.norm(rows - rows.mean(axis=0), axis=1)) == pytest.approx(4)


# Overruling, and what is wrong


TABLE = {"price": skewed(20), "brand": ["A", "B"] * 10, "vec1": skewed(20), "vec2": skewed(20)}
TABLE |= {"mix1": skewed(20), "mix2": TABLE["brand"]}


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (TABLE, {"ignore": ["prize"]}, "ignore names 'prize', .*; did you mean 'price'"),
        (TABLE, {"category": "price"}, r"category must be a list .*; say \['price'\]"),
        (TABLE, {"number": ["brand"]}, "number names 'brand', but none of its cells is a number, 'A' for"),
        (TABLE, {"number": ["price"], "category": ["PRICE"]}, "'price' is in `category` and in `number`"),
        (TABLE, {"embedding": ["vex"]}, "embedding names 'vex', but .* vex0, vex1, .*; did you mean 'vec'"),
        (TABLE, {"embedding": ["mix"]}, "embedding names 'mix', but its column 'mix2' is no number, 'A' for"),
        ({"a": [1, 2], "b": [1]}, {}, "columns must have a cell for each item, got 2 in 'a' and 1 in 'b'"),
        ({"a": []}, {}, "a catalog without items"),
        ({"a": "text"}, {}, "a column must be a list of cells, got the text 'text'"),
    ],
)
def test_wrong_columns_and_overrules_are_refused(columns, options, words):
    with pytest.raises(InvalidInput, match=words):
        Encoder.fitted(columns, **options)


def test_values_that_do_not_fit_the_encoder_are_refused():
    encoder = Encoder.fitted({"price": skewed(), "brand": ["A", "B", "B"] * (N // 3)})
    with pytest.raises(InvalidInput, match=r"2 values here.* got 1; it may be an encoder of another catalog"):
        encoder.encode([[3.0]])
    assert encoder.values_of({"brand": ["A"], "unknown": [3]}, 1) == [(None, "A")]
    with pytest.raises(InvalidInput, match="'brand' must have a cell for each of 2 items, got 1"):
        encoder.values_of({"brand": ["A"]}, 2)
    empty = Encoder.fitted({})
    assert (empty.n_features, empty.encode([[], []])[0].shape) == (0, (2, 0))
    assert Encoder.fitted({"x": [1.0, 2.0]}).encode([])[0].shape == (0, 1)


def test_unscaled_columns_stay_as_they_are():
    topics = {"rock": [0.5, 0.5, 0.5], "jazz": ["1", "0", None], "title": ["a", "b", "c"], "f1": [0.25, 1, 0]}
    encoder = Encoder.fitted(topics, unscaled=True)
    assert encoder.names == ("rock", "jazz", "jazz missing", "f1")
    rows = encoded(encoder, topics)
    assert rows.tolist() == [[0.5, 1, 0, 0.25], [0.5, 0, 0, 1], [0.5, 0.5, 1, 0]]
    assert encoder.encode([[7.5, True, -3]])[0].tolist() == [[7.5, 1, 0, -3]]


def test_odd_cells_of_later_items_add_up():
    encoder = Encoder.fitted({"brand": ["A", "B", "B", "A"], "price": [1.0, 2.0, 3.0, 4.0]})
    first, second = (encoder.encode(rows)[1] for rows in ([["C", "x"]] * 3, [["A", 1]] * 22))
    both = first + second
    assert (both.n_rows, both.unknown, both.unreadable) == (25, (3, 0), (0, 3))
    assert both.sentences()[0] == (
        "brand: 12 % of new items have a level the model does not know; start a new model to learn them"
    )
    assert (bool(first), bool(second)) == (True, False)
    with pytest.raises(InvalidInput, match="of one encoder"):
        first + Encoder.fitted({"x": ["A", "A", "B"]}).encode([])[1]


def test_minus_zero_has_the_bits_of_zero_alone_and_among_others():
    encoder, _ = only([0.0, 0.5, 1.0, 0.0, 0.0])
    together = encoder.encode([[0.0], [-0.0], ["-0"]])[0]
    assert b"".join(encoder.encode([[one]])[0].tobytes() for one in (0.0, -0.0, "-0")) == together.tobytes()
    assert together[0].tobytes() == together[1].tobytes()
    lists = Encoder.fitted({"vec": [[0.0, 1.0], [-0.0, 2.0]]})
    assert lists.encode([[[-0.0, 1.0]]])[0].tobytes() == lists.encode([[[0.0, 1.0]]])[0].tobytes()


# Stored and read again

EVERYTHING = {
    "price": [f"{one:.2f}".replace(".", ",") for one in skewed()],
    "weight": [*plain_numbers(N - 6), *[None] * 6],
    "brand": (["Acme", "Bolt", "Bolt", "Crux", "Ébène"] * N)[:N],
    "ok": ["yes", "no", None] * (N // 3),
    "since": [f"2024-{1 + i % 12:02}-{1 + i % 27:02}" for i in range(N)],
    "vec": DRAW.normal(size=(N, 3)).tolist(),
    "f1": skewed(),
    "f2": plain_numbers(),
    "title": [f"t{i}" for i in range(N)],
}


def test_stored_encoder_is_read_again():
    encoder = Encoder.fitted(EVERYTHING)
    again = Encoder.from_json(json.loads(json.dumps(encoder.as_json(), allow_nan=False)))
    assert again == encoder
    assert hash(again) == hash(encoder)
    assert again != Encoder.fitted(EVERYTHING, ignore=["weight"])
    assert encoded(again, EVERYTHING).tobytes() == encoded(encoder, EVERYTHING).tobytes()


def wrong_pages():
    page = Encoder.fitted(EVERYTHING).as_json()
    yield None
    yield {}
    for key in page:
        yield {name: value for name, value in page.items() if name != key}
        yield page | {key: None}
    yield page | {"items": -1}
    yield page | {"columns": page["columns"] + page["columns"][:1]}
    for place, column in enumerate(page["columns"]):
        for key, value in column.items():
            changes = [None, {}, [math.nan], "no such", math.inf, 10**400]
            if key in ("spread", "divisor"):
                changes += [0.0, -1.0]
            if key in ("levels", "shares"):
                changes += [value[:-1], [*value, value[0]]]
            for change in changes:
                if key in ("name", "block") and change == "no such":
                    continue
                columns = [*page["columns"]]
                columns[place] = column | {key: change}
                yield page | {"columns": columns}
        yield page | {"columns": [{**column, "more": 1}]}
    for key in page["decisions"][0]:
        yield page | {"decisions": [page["decisions"][0] | {key: None}]}


def test_stored_encoder_that_does_not_fit_together_is_refused():
    count = 0
    for page in wrong_pages():
        count += 1
        with pytest.raises(InvalidInput):
            Encoder.from_json(page)
    assert count > 200


def test_encoder_of_another_version_is_refused():
    page = Encoder.fitted({"price": [1.0, 2.0, 4.0]}).as_json()
    with pytest.raises(InvalidInput, match="version 1 was expected, got 2"):
        Encoder.from_json(page | {"version": 2})


WORDS = ["yes", "no", "NA", "1,5", "2.5", "1.234", "12 €", "2024-05-01", "03/04/2024", "Acme", "inf"]
lists = st.lists(st.floats(-5, 5), min_size=2, max_size=2)
cells = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates(), lists,
    st.sampled_from(WORDS),
)  # fmt: skip
narrow = st.sampled_from([
    st.floats(), st.floats(0, 100), st.integers(0, 3), st.integers(), st.booleans(), st.dates().map(str),
    st.sampled_from(["Acme", "Bolt", "bolt ", "Crux", None]), st.floats(0.01, 1e6).map("{:.2f}".format),
    lists, cells, st.sampled_from(["yes", "no", None]),
])  # fmt: skip
names = st.sampled_from(
    ["id", "f1", "f2", "vec_0", "vec_1", "price", "brand", "x missing", "x", "title", "ean", ""]
)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 25))
    called = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    return {name: draw(st.lists(draw(narrow), min_size=n, max_size=n)) for name in called}


@settings(deadline=None)
@given(tables(), st.booleans(), st.data())
def test_any_table_is_encoded_row_by_row_with_the_same_bits(table, unscaled, data):
    n = len(next(iter(table.values())))
    encoder = Encoder.fitted(table, unscaled=unscaled)
    again = Encoder.from_json(json.loads(json.dumps(encoder.as_json(), allow_nan=False)))
    assert again == encoder
    assert len(set(encoder.names)) == encoder.n_features <= MOST_FEATURES
    assert [one.name for one in encoder.decisions] == list(table)
    assert sum(one.n_columns for one in encoder.decisions) == encoder.n_features
    assert [place for block in encoder.blocks for place in block] == list(range(encoder.n_features))
    later = {
        name: [*column, *data.draw(st.lists(cells, min_size=3, max_size=3))] for name, column in table.items()
    }
    values = encoder.values_of(later, n + 3)
    assert json.loads(json.dumps(values, allow_nan=False)) == [list(row) for row in values]
    rows, odd = encoder.encode(values)
    assert (np.abs(rows) <= LARGEST_FEATURE).all()
    if not unscaled:
        assert np.abs(rows).max(initial=0) <= 100
    alone = [again.encode([row]) for row in json.loads(json.dumps(values))]
    assert b"".join(one.tobytes() for one, _ in alone) == rows.tobytes()
    total = alone[0][1]
    for _, one in alone[1:]:
        total += one
    assert total == odd
    # Raw cells and what is stored of them are the same to it.
    raw = [tuple(later[name][row] for name in encoder.inputs) for row in range(n + 3)]
    assert encoder.encode(raw)[0].tobytes() == rows.tobytes()
    # A change of one input changes its own columns alone.
    if encoder.inputs:
        place = data.draw(st.integers(0, len(encoder.inputs) - 1))
        changed = [list(row) for row in values]
        changed[0][place] = values[-1][place]
        others = [j for block in (*encoder.blocks[:place], *encoder.blocks[place + 1 :]) for j in block]
        assert encoder.encode(changed)[0][0, others].tobytes() == rows[0, others].tobytes()
