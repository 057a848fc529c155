import json

import numpy as np
import pytest

from firstclick.data import feedback_matrix
from firstclick.data.sources import lines as lines_module
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.yelp import Yelp
from firstclick.errors import InvalidInput

# 4 restaurants of 6 businesses; "Restaurants and Bars" is no restaurant, though the word is in it.
BUSINESSES = [
    ("b7", "Chez Émile", ["Restaurants", "French"]),
    ("b2", "Joe's", ["American (Traditional)", "Restaurants", "Burgers"]),
    ("b9", "A shop", ["Shopping"]),
    ("b5", "Nova", ["Bars", "American (New)", "Restaurants"]),
    ("b1", "Empty", ["Restaurants"]),
    ("b3", "Almost", ["Restaurants and Bars", "American (New)"]),
]
# Five users review restaurants, "shopper" none. "fan" writes about b7 three times; nobody about b1.
REVIEWS = [
    ("shopper", "b9"),
    ("late", "b2"),
    ("fan", "b7"),
    ("fan", "b7"),
    ("fan", "b7"),
    ("walker", "b5"),
    ("walker", "b2"),
    ("walker", "b9"),
    ("eater", "b5"),
    ("eater", "b2"),
    ("eater", "b7"),
    ("third", "b5"),
    ("third", "b3"),
    ("once", "b2"),
]
RESTAURANT_PAIRS = {(user, b) for user, b in REVIEWS if b in {"b7", "b2", "b5"}}


def business(business_id, name, categories):
    return {"business_id": business_id, "name": name, "categories": categories, "stars": 4.0}


def review(user, business_id, number=0):
    return {"review_id": f"r{number}", "user_id": user, "business_id": business_id, "text": "é\u2028\n!"}


def as_lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


BUSINESS_TEXT = as_lines(business(*entry) for entry in BUSINESSES)
REVIEW_TEXT = as_lines(review(*entry, number) for number, entry in enumerate(REVIEWS))


@pytest.fixture
def write(tmp_path):
    def write(businesses=BUSINESS_TEXT, reviews=REVIEW_TEXT, prefix="yelp_academic_dataset_", folder=""):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        for what, text in (("business", businesses), ("review", reviews)):
            content = text if isinstance(text, bytes) else text.encode()
            (place / f"{prefix}{what}.json").write_bytes(content)
        return tmp_path

    return write


def pairs(read):
    return [(read.user_ids[u], read.item_ids[e]) for u, e in zip(read.users, read.items, strict=True)]


def refusal(path, **settings):
    with pytest.raises(InvalidInput) as caught:
        Yelp(**settings).load(path)
    return str(caught.value)


def test_yelp_is_known_by_its_name():
    assert source_classes()["yelp"] is Yelp
    assert make_source("yelp:n_items=7,users_by=first-met") == Yelp(n_items=7, users_by="first-met")
    assert (Yelp().n_items, Yelp().n_users, Yelp().users_by) == (3000, 20000, "reviews")


def test_reviewed_restaurants_their_reviewers_and_each_pair_once(write):
    read = Yelp().load(write())
    assert read.item_ids == ("b2", "b5", "b7")
    assert read.item_names == ("Joe's", "Nova", "Chez Émile")
    assert read.user_ids == ("eater", "fan", "late", "once", "third", "walker")
    assert sorted(pairs(read)) == sorted(RESTAURANT_PAIRS)
    assert read.attracted.all()
    assert feedback_matrix(read).shape == (6, 3)


def test_facts_count_the_whole_files(write):
    facts = Yelp(n_items=1, n_users=1).load(write()).facts
    assert facts == {"businesses": 6, "restaurants": 4, "reviews": 14, "users": 7}


def test_groups_are_the_categories_and_american_is_new_or_traditional(write):
    read = Yelp().load(write())
    assert read.item_groups == (
        ("American (Traditional)", "Burgers", "American"),
        ("Bars", "American (New)", "American"),
        ("French",),
    )


def test_new_editions_write_the_categories_as_one_text_or_null(write):
    new = [business(*entry[:2], ", ".join(entry[2])) for entry in BUSINESSES]
    new.append(business("b8", "Nothing known", None))
    path = write(as_lines(new), prefix="")
    read, old = Yelp().load(path), Yelp().load(write())
    assert read.item_groups == old.item_groups
    assert read.item_ids == old.item_ids


def test_most_reviewed_means_most_distinct_reviewers(write):
    # b2 has 4 reviewers, b5 3; b7 has 2 reviewers who wrote 4 reviews.
    assert Yelp(n_items=1).load(write()).item_ids == ("b2",)
    assert Yelp(n_items=2).load(write()).item_ids == ("b2", "b5")


def test_most_reviewing_means_most_distinct_restaurants_over_all_of_them(write):
    # eater 3, walker 2 (the shop does not count), fan 1 though 3 reviews.
    assert Yelp(n_users=2).load(write()).user_ids == ("eater", "walker")
    # Among equals the lower id; fan is kept though the one restaurant kept is not theirs.
    read = Yelp(n_users=3, n_items=1).load(write())
    assert read.user_ids == ("eater", "fan", "walker")
    assert sorted(pairs(read)) == [("eater", "b2"), ("walker", "b2")]


def test_restaurants_have_their_ranks_by_reviewers_over_all_users(write):
    # b2 has 4 reviewers, b5 3, b7 2, whoever of them is kept.
    for settings in ({"n_users": 1}, {}, {"n_users": 2, "users_by": "first-met"}):
        read = Yelp(**settings).load(write())
        assert read.item_ids == ("b2", "b5", "b7")
        assert read.item_ranks.tolist() == [0, 1, 2]
    # With three more b7 leads, though none of them is kept, and b2 and b7 are left with two each.
    reviews = [*REVIEWS, ("x", "b7"), ("y", "b7"), ("z", "b7")]
    read = Yelp(n_items=2, n_users=3).load(write(reviews=as_lines(review(*entry) for entry in reviews)))
    assert (read.item_ids, read.item_ranks.tolist()) == (("b2", "b7"), [1, 0])


@pytest.mark.parametrize("name", ["", None])
def test_a_restaurant_without_a_name_is_called_by_its_id(write, name):
    businesses = [business(b, name if b == "b5" else called, groups) for b, called, groups in BUSINESSES]
    assert Yelp().load(write(as_lines(businesses))).item_names == ("Joe's", "b5", "Chez Émile")


def test_first_met_scans_the_restaurants_from_the_most_reviewed_down(write):
    # b2 in file order: late, walker, eater, once; then b5 adds third; then b7 adds fan.
    def met(n):
        return Yelp(users_by="first-met", n_users=n).load(write()).user_ids

    assert met(1) == ("late",)
    assert met(2) == ("late", "walker")
    assert met(4) == ("eater", "late", "once", "walker")
    assert met(5) == ("eater", "late", "once", "third", "walker")
    assert met(6) == met(100) == ("eater", "fan", "late", "once", "third", "walker")


@pytest.mark.parametrize("prefix", ["yelp_academic_dataset_", ""])
@pytest.mark.parametrize("folder", ["", "yelp", "yelp_dataset"])
def test_the_files_are_found_under_their_usual_names(write, prefix, folder):
    assert len(Yelp().load(write(prefix=prefix, folder=folder)).users) == len(RESTAURANT_PAIRS)


def test_without_its_files_it_says_what_was_expected(write, tmp_path):
    assert "has no Yelp data: expected yelp_academic_dataset_business.json and" in refusal(tmp_path)
    (write() / "yelp_academic_dataset_review.json").unlink()
    assert "expected yelp_academic_dataset_business.json and" in refusal(tmp_path)


def test_progress_reaches_the_bytes_of_both_files(write):
    path = write()
    seen = []
    Yelp().load(path, lambda done, total: seen.append((done, total)))
    size = sum(file.stat().st_size for file in path.iterdir())
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_blocks_of_any_size_give_the_same(write, monkeypatch):
    path = write()
    whole = pairs(Yelp().load(path))
    for size in (1, 7, 100):
        monkeypatch.setattr(lines_module, "_BLOCK", size)
        assert pairs(Yelp().load(path)) == whole


def bad_line(text, number, line):
    """The text with another line of this number."""
    lines = text.split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


@pytest.mark.parametrize("block", [50, 1 << 18])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("not json", "expected one JSON object, got 'not json'"),
        ("[1, 2]", "expected one JSON object, got '[1, 2]'"),
        ("", "expected one JSON object, got ''"),
        ("[" * 100_000, "expected one JSON object, got '" + "[" * 40 + "'"),
        ('{"user_id": "u"}', "no 'business_id' among the keys user_id"),
        ('{"business_id": "b2"}', "no 'user_id' among the keys business_id"),
        ('{"business_id": 5, "user_id": "u"}', "business_id must be a text that is not empty, got 5"),
        ('{"business_id": "b2", "user_id": ""}', "user_id must be a text that is not empty, got ''"),
    ],
)
def test_a_wrong_review_is_named_with_its_line(write, monkeypatch, line, problem, block):
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    path = write(reviews=bad_line(REVIEW_TEXT, 3, line))
    assert refusal(path) == f"yelp_academic_dataset_review.json line 3: {problem}"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"business_id": "b0", "name": "x"}', "no 'categories' among the keys business_id, name"),
        (
            '{"business_id": "b0", "name": "x", "categories": {"a": 1}}',
            "categories must be a list of texts, one text or null, got {'a': 1}",
        ),
        (
            '{"business_id": "b0", "name": "x", "categories": ["Restaurants", 3]}',
            "categories must be a list of texts, one text or null, got ['Restaurants', 3]",
        ),
        (
            '{"business_id": "b0", "categories": ["Restaurants"]}',
            "no 'name' among the keys business_id, categories",
        ),
        (
            '{"business_id": "b0", "name": 7, "categories": ["Restaurants"]}',
            "name must be a text that is not empty, got 7",
        ),
        (
            '{"business_id": "b7", "name": "x", "categories": "Restaurants"}',
            "business_id 'b7' is already on an earlier line",
        ),
    ],
)
def test_a_wrong_business_is_named_with_its_line(write, line, problem):
    path = write(businesses=bad_line(BUSINESS_TEXT, 4, line))
    assert refusal(path) == f"yelp_academic_dataset_business.json line 4: {problem}"


def test_a_file_that_was_cut_off_says_so(write):
    message = refusal(write(reviews=REVIEW_TEXT[:-20]))
    assert message.startswith("yelp_academic_dataset_review.json line 14: expected one JSON object, got ")
    assert message.endswith("the file ends within this line: is it complete?")
    assert "is it complete" not in refusal(write(reviews=bad_line(REVIEW_TEXT, 14, "{")))


def test_blank_lines_and_other_line_ends_at_the_end_do_no_harm(write):
    whole = pairs(Yelp().load(write()))
    for text in (
        REVIEW_TEXT + "\n\r\n",
        REVIEW_TEXT[:-1],
        REVIEW_TEXT.replace("\n", "\r\n"),
        "\ufeff" + REVIEW_TEXT,
    ):
        assert pairs(Yelp().load(write(reviews=text))) == whole


def test_swapped_files_are_noticed(write):
    message = refusal(write(businesses=REVIEW_TEXT, reviews=BUSINESS_TEXT))
    assert message == (
        "yelp_academic_dataset_business.json line 1: expected a business, got a review; "
        "are the business and review files swapped?"
    )
    message = refusal(write(reviews=BUSINESS_TEXT))
    assert message.startswith("yelp_academic_dataset_review.json line 1: expected a review, got a business;")


def test_another_encoding_is_named_with_its_line(write):
    latin = BUSINESS_TEXT.encode().replace(b"Joe", "Jöe".encode("latin-1"))
    message = refusal(write(businesses=latin))
    assert message == (
        "yelp_academic_dataset_business.json line 2: bytes that are not UTF-8; convert the file to UTF-8"
    )


@pytest.mark.parametrize("text", ["<!DOCTYPE html>\n<p>Sign in</p>\n", "\n <html>"])
def test_a_web_page_is_no_data(write, text):
    assert "business.json line 1: a web page, not data" in refusal(write(businesses=text))


@pytest.mark.parametrize("text", ["", "\n", "\r\n\n", "\ufeff"])
def test_an_empty_file_is_refused(write, text):
    assert refusal(write(reviews=text)) == "yelp_academic_dataset_review.json is empty"


def test_without_restaurants_there_is_nothing_to_load(write):
    path = write(businesses=as_lines([business("b9", "A shop", ["Shopping"])]))
    assert "1 businesses, but none in the category 'Restaurants'" in refusal(path)
    path = write(reviews=as_lines([review("u", "b9"), review("u", "unknown")]))
    assert (
        "2 reviews, but none of a restaurant in the business file; are both files of one edition?"
        in refusal(path)
    )


def test_codes_match_ids_on_a_larger_set_read_the_slow_way(write):
    rng = np.random.default_rng(5)
    businesses = [
        business(f"b{n:03}", f"place {n}", ["Restaurants"] if n % 3 else "Shopping") for n in range(40)
    ]
    entries = [
        (f"u{int(u)}", f"b{int(b):03}")
        for u, b in zip(60 * rng.random(900) ** 2, 40 * rng.random(900) ** 2, strict=True)
    ]
    path = write(as_lines(businesses), as_lines(review(*entry) for entry in entries))
    wanted = {(u, b) for u, b in entries if int(b[1:]) % 3}
    by_item, by_user = ({x: sum(p[k] == x for p in wanted) for x in {p[k] for p in wanted}} for k in (1, 0))
    top_items = sorted(by_item, key=lambda b: (-by_item[b], b))[:11]
    top_users = sorted(by_user, key=lambda u: (-by_user[u], u))[:17]
    read = Yelp(n_items=11, n_users=17).load(path)
    assert read.item_ids == tuple(sorted(top_items))
    assert read.user_ids == tuple(sorted(top_users))
    assert set(pairs(read)) == {(u, b) for u, b in wanted if u in top_users and b in top_items}
    assert len(pairs(read)) == len(set(pairs(read)))
    assert read.item_ranks.tolist() == [top_items.index(item) for item in read.item_ids]
    ranked = sorted(by_item, key=lambda b: (-by_item[b], b))
    met = list(dict.fromkeys(u for b in ranked for u, at in entries if at == b))[:17]
    assert Yelp(n_items=11, n_users=17, users_by="first-met").load(path).user_ids == tuple(sorted(met))
