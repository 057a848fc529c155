"""A ranker of a catalog that was read from a table: its columns become features, and items change."""

import numpy as np
import pytest

from firstclick import Catalog, FirstclickError, Ranker
from tests.online.rankers import refusal, rewritten

CSV = """sku;title;brand;price;added;online;available
a1;Red shoe;Acme;9,50;01.03.2024;yes;yes
a2;Blue shoe;Acme;12,00;31.12.2023;no;yes
b1;Hat;Bolt;30,25;05.04.2024;yes;no
b2;Cap;Bolt;-;06.07.2024;no;yes
c1;Scarf;Crux;7,00;01.01.2022;yes;yes
c2;Glove;Crux;80,00;15.02.2024;no;yes
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "products.csv"
    path.write_text(CSV)
    return path


def shown(ranker, n=60):
    return {item for _ in range(n) for item in ranker.recommend()}


@pytest.mark.parametrize("policy", ["cascade-mixed", "cascade-lin-ts"])
def test_it_learns_changes_and_goes_on_from_its_file(path, tmp_path, policy):
    ranker = Ranker(Catalog.read(path), k=3, policy=policy, seed=1)
    for number in range(30):
        ranker.learn(ranker.recommend(), click=number % 3)
    assert "b1" not in shown(ranker)
    ranker.set_available(["b1"], True)
    ranker.set_available(["a1"], False)
    ranker.change_items(["a2"], [{"price": "1,25"}])
    ranker.add_items(["y", "z"], [{"brand": "Zeta", "price": 3}, ["Acme", 4, None, True]])
    assert ranker.catalog.values["a2"] == ["Acme", "1,25", "31.12.2023", "no"]
    assert set(ranker.recommend(k=3, candidates=["a1", "b1", "z"])) == {"b1", "z"}
    ranker.learn(ranker.recommend(k=2, candidates=["a2", "c2"], features=[{"price": 5}, {}]), click=0)
    ranker.save(tmp_path / "ranker.npz")
    again = Ranker.load(tmp_path / "ranker.npz")
    assert again.catalog.encoder == ranker.catalog.encoder
    assert again.catalog.values == ranker.catalog.values
    for _ in range(20):
        mine, its = ranker.recommend(), again.recommend()
        assert mine.items == its.items
        assert "a1" not in mine.items
        ranker.learn(mine, click=1)
        again.learn(its, click=1)
    again.change_items(["c1"], [{"brand": "Acme"}])
    assert again.catalog.values["c1"][0] == "Acme"
    encoded, _ = again.catalog.encoder.encode([again.catalog.values["c1"]])
    np.testing.assert_array_equal(again.catalog.features[4], encoded[0])


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda ranker: ranker.change_items(["a1"], [{"price": 1}, {}]), "features"),
        (lambda ranker: ranker.change_items(["a1"], {"price": 1}), "features"),
        (lambda ranker: ranker.change_items(["a1", "a1"], [{}, {}]), "items"),
        (lambda ranker: ranker.change_items(["a1"], [{"price": 1}], groups=["x", "y"]), "groups"),
        (lambda ranker: ranker.set_available(["a1", "never"], False), "items"),
        (lambda ranker: ranker.recommend(candidates=["a1"], features=[{"prise": 5}]), "features"),
        (lambda ranker: ranker.recommend(candidates=["a1"], features=[[1, 2]]), "features"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(path, change, argument):
    ranker = Ranker(Catalog.read(path), k=2, seed=1)
    catalog = ranker.catalog
    before = catalog.table.copy(), dict(catalog.values), set(catalog.unavailable), catalog.groups
    assert refusal(change, ranker, error=FirstclickError).argument == argument
    np.testing.assert_array_equal(catalog.table, before[0])
    assert (catalog.values, catalog.unavailable, catalog.groups) == before[1:]


def test_a_policy_with_topics_wants_a_catalog_that_was_not_scaled(path):
    assert "unscaled=True" in str(refusal(Ranker, Catalog.read(path), k=2, policy="cascade-lsb"))
    topics = {"id": list("abcd"), "news": [0.1, 0.9, 0.5, 0.3], "sport": [0.9, 0.1, 0.5, 0.2]}
    catalog = Catalog.from_frame(topics, unscaled=True)
    assert catalog.features.tolist() == [[0.1, 0.9], [0.9, 0.1], [0.5, 0.5], [0.3, 0.2]]
    Ranker(catalog, k=2, policy="cascade-lsb")


def test_a_ranker_file_with_an_encoder_that_does_not_fit_is_refused(path, tmp_path):
    place, encoder = tmp_path / "ranker.npz", Catalog.read(path).encoder.as_json()
    other = Catalog.from_frame({"id": [1, 2, 3], "x": [1.0, 5.0, 9.0]}).encoder.as_json()
    assert other != encoder
    for wrong in (
        lambda page, _: page.update(encoder=other),
        lambda page, _: page.update(encoder={"version": 99}),
        lambda page, _: page.update(values=page["values"][1:]),
        lambda page, _: page.update(values=[[item, line[1:]] for item, line in page["values"]]),
        lambda page, _: page.update(unavailable=["never"]),
    ):
        Ranker(Catalog.read(path), k=2, seed=1).save(place)
        assert "ranker.npz" in str(refusal(Ranker.load, rewritten(place, wrong)))
