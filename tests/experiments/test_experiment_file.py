"""An experiment is a TOML file that says what is wrong with it."""

import pytest

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


def test_defaults_are_those_of_the_paper(write):
    found = read_experiment(write('policies = ["random"]\n[data]\nsource = "synthetic-yelp"\nn_users = 50'))
    assert found.data[0].label == "synthetic-yelp:n_users=50"
    assert (found.items, found.rank, found.k, found.steps, found.runs) == (("all",), (20,), (4,), 100_000, 10)
    assert (found.title, found.group, found.path, found.training) == ("mine", {}, None, Training())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("title    =", "titel ="), "'title'"),
        (("data     =", "# data ="), "data is missing"),
        (("policies =", "# policies ="), "policies is missing"),
        (("steps    = 1_000", "steps = 0"), "steps"),
        (("k        = [2, 3]", "k = []"), "k is"),
        (("scaled   = false", "scaled = 0"), "scaled"),
        (('[7, "all"]', '[7, "most"]'), "items"),
        (('"random"]', '"randm"]'), "'random'"),
        (('"random"]', '"cascade-ts"]'), "'cascade-ts' is given twice"),
        (("synthetic-movielens", "movielenz"), "source 'movielenz'"),
        (('title    = "Which learner?"', "title = 3"), "title"),
        (("policies = [", "policies = [["), "not a TOML file"),
        (("steps    = 1_000", f"steps = {5000 * '9'}"), "too many digits"),
        (('[7, "all"]', "[]"), "items is empty"),
        (('= "Adventure"', '= {movielens = "War"}'), "group names 'movielens'"),
    ],
)  # fmt: skip
def test_mistake_is_reported_with_the_file(write, change, problem):
    assert change[0] in WHOLE
    with pytest.raises((InvalidInput, UnknownName), match=problem) as error:
        read_experiment(write(WHOLE.replace(*change)))
    assert str(error.value).startswith("mine.toml: ")


def test_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read_experiment(tmp_path / "none.toml")
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InvalidInput, match=r"picture\.toml: not a TOML file"):
        read_experiment(tmp_path / "picture.toml")
