"""An experiment is a TOML file that says what is wrong with it."""

import pytest

from firstclick.data.sources import source_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.experiments import Training, read_experiment

WHOLE = """
title    = "Which learner?"
data     = "synthetic-movielens:n_users=90,n_items=61"
path     = "log.csv"
policies = ["cascade-lin-ts:sigma=0.5", "random"]
extras   = ["cascade-ts"]
items    = [7, "all"]
rank     = 5
k        = [2, 3]
steps    = 1_000
runs     = 3
seed     = 9
group    = "Adventure"
scaled   = false
one_split = true
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_every_key_is_read(write, tmp_path):
    found = read_experiment(write(WHOLE))
    assert (found.name, found.title, found.path) == ("mine", "Which learner?", tmp_path / "log.csv")
    assert [source.label for source in found.data] == ["synthetic-movielens:n_users=90,n_items=61"]
    assert [policy.label for policy in found.policies] == ["cascade-lin-ts:sigma=0.5", "random"]
    assert [policy.label for policy in found.extras] == ["cascade-ts"]
    assert (found.items, found.rank, found.k) == ((7, "all"), (5,), (2, 3))
    assert (found.steps, found.runs, found.seed) == (1000, 3, 9)
    assert found.group == {"synthetic-movielens": "Adventure"}
    assert found.training == Training(scaled=False, one_split=True)


def test_what_is_not_said_is_as_in_the_paper(write):
    found = read_experiment(write('data = "synthetic-yelp"\npolicies = ["random"]'))
    assert (found.items, found.rank, found.k, found.steps, found.runs) == (("all",), (20,), (4,), 100_000, 10)
    assert (found.title, found.group, found.path, found.training) == ("mine", {}, None, Training())


def test_a_source_may_be_a_table(write):
    found = read_experiment(
        write('policies = ["random"]\n[data]\nsource = "synthetic-yelp"\nn_users = 50\nn_items = 40')
    )
    assert found.data[0].label == "synthetic-yelp:n_users=50,n_items=40"
    assert found.data[0].name in source_classes()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("title    =", "titel ="), "key 'titel' is unknown; did you mean 'title'?"),
        (("steps    = 1_000", "steps = 0"), "steps must be at least 1, got 0"),
        (("k        = [2, 3]", "k = []"), "k is an empty list"),
        (("k        = [2, 3]", "k = [2.5]"), "k must be a whole number, got 2.5"),
        (("scaled   = false", "scaled = 0"), "scaled must be true or false, got 0"),
        (('[7, "all"]', '[7, "most"]'), "items must be numbers or 'all', got 'most'"),
        (('"random"]', '"randm"]'), "policy 'randm' is unknown; did you mean 'random'?"),
        (('"random"]', '"cascade-ts"]'), "policy 'cascade-ts' is given twice"),
        (("synthetic-movielens", "movielenz"), "source 'movielenz' is unknown"),
        (('title    = "Which learner?"', "title = 3"), "title must be text, got 3"),
        (("policies = [", "policies = [["), "not a TOML file"),
        (("steps    = 1_000", f"steps = {5000 * '9'}"), "a number has too many digits to be read"),
        (("steps    = 1_000", f"steps = 0x{5000 * 'f'}"), "got a whole number of about 6,021 digits"),
        (("scaled   = false", f"scaled = 0x{5000 * 'f'}"), "got a whole number of about 6,021 digits"),
        (('[7, "all"]', "[]"), "items is empty; give at least one"),
        (('= "Adventure"', '= {movielens = "War"}'), "group names 'movielens', which is no source here"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_the_file(write, change, complaint):
    assert change[0] in WHOLE
    with pytest.raises((InvalidInput, UnknownName)) as error:
        read_experiment(write(WHOLE.replace(*change)))
    assert str(error.value).startswith("mine.toml: ")
    assert complaint in str(error.value)


@pytest.mark.parametrize("missing", ["data", "policies"])
def test_data_and_policies_must_be_there(write, missing):
    text = "\n".join(line for line in WHOLE.splitlines() if not line.startswith(missing))
    with pytest.raises(InvalidInput, match=f"{missing} is missing"):
        read_experiment(write(text))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read_experiment(tmp_path / "none.toml")
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InvalidInput, match=r"picture\.toml: not a TOML file"):
        read_experiment(tmp_path / "picture.toml")
