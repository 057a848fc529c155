"""Worlds made of a fit: what users do there, told as a story, and the best slates by trying all."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, make_world, simulate
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import UnknownName
from firstclick.kernels.attraction import user_in
from firstclick.kernels.clicks import UNTOLD, answer, click_chance, expected_reward, new_memo
from firstclick.streams import stream, stream_key
from firstclick.worlds import most_clicks
from firstclick.worlds.fitted import FittedWorld
from firstclick.worlds.most_clicks import most_clicks_by_position

MODELS = ["cm", "dcm", "sdbn", "pbm", "dbn"]
# Neither rising nor falling, so that no position can be mistaken for another.
CHANCES = {"dcm": (0.8, 0.1, 0.5), "pbm": (0.4, 1.0, 0.7), "dbn": (0.8,)}
SLATE = [3, 0, 4]
K = len(SLATE)


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_taken_from_the_cache():
    simulate(["random"], "blb", k=2, steps=1)


def made_fit(model, *, n_items=6, shares=(1.0,), seed=5):
    draw = stream(seed, "fit", model)
    shape = len(shares), n_items
    return ClickFit(
        model=model,
        items=tuple(f"tea {item}" for item in range(n_items)),
        segments=("",) if len(shares) == 1 else tuple(f"s{place}" for place in range(len(shares))),
        shares=np.array(shares),
        attraction=draw.uniform(0.1, 0.9, shape),
        satisfaction=draw.uniform(0.1, 0.9, shape) if model in ("sdbn", "dbn") else np.empty((0, 0)),
        chances=np.array(CHANCES.get(model, ())),
        looks=np.full(shape, 100.0),
        k=K,
    )


def story(fit, attracted, lucky, content):
    """The clicked positions of a user whom these positions attract. `lucky`: the chance of the position came
    true; `content`: the item there satisfies."""
    clicked = [0] * len(attracted)
    for position in range(len(attracted)):
        if fit.model == "pbm":
            clicked[position] = int(attracted[position] and lucky[position])
            continue
        clicked[position] = attracted[position]
        ends = {"cm": True, "dcm": not lucky[position]}.get(fit.model, content[position])
        if (attracted[position] and ends) or (fit.model == "dbn" and not lucky[position]):
            break
    return tuple(clicked)


def exactly(fit, slate, segment=0):
    """The probability of every answer, by adding up all that can happen."""
    n = len(slate)
    chances = [
        fit.chances[min(place, len(fit.chances) - 1)] if len(fit.chances) else 1.0 for place in range(n)
    ]
    content = fit.satisfaction[segment, slate] if fit.model in ("sdbn", "dbn") else np.zeros(n)
    each = [*fit.attraction[segment, slate], *chances, *content]
    outcomes = {}
    for coins in product([0, 1], repeat=3 * n):
        probability = float(np.prod([p if hit else 1 - p for hit, p in zip(coins, each, strict=True)]))
        if probability:
            clicked = story(fit, coins[:n], coins[n : 2 * n], coins[2 * n :])
            outcomes[clicked] = outcomes.get(clicked, 0.0) + probability
    return outcomes


@pytest.mark.parametrize("model", MODELS)
def test_users_click_as_the_model_says_and_the_reward_is_the_number_of_clicks(model):
    fit = made_fit(model)
    world = FittedWorld(fit)
    arrays, rows, seen = world.arrays(), np.array(SLATE), np.empty(K, np.uint8)
    outcomes = exactly(fit, SLATE)
    clicks = sum(chance * sum(clicked) for clicked, chance in outcomes.items())
    bits = np.empty(1, np.uint64)
    assert world.expected_reward(SLATE) == pytest.approx(clicks, abs=1e-12)
    assert expected_reward(arrays, 0, rows, K, new_memo(K), bits) == pytest.approx(clicks, abs=1e-12)
    some = 1 - outcomes.get((0,) * K, 0.0)
    assert click_chance(arrays, 0, rows, K, new_memo(K), bits) == pytest.approx(some, abs=1e-12)
    counted, steps = {}, 4000
    for step in range(steps):
        reward, told = answer(arrays, stream_key(1, step), 0, 0, rows, K, seen)
        assert (reward, told) == (seen.sum(), UNTOLD)
        clicked = tuple(seen.tolist())
        counted[clicked] = counted.get(clicked, 0) + 1
    assert set(counted) <= set(outcomes)
    for clicked, chance in outcomes.items():
        # 5 standard errors, 5 models with at most 8 outcomes: one false alarm in 40,000 seeds.
        error = 5 * np.sqrt(chance * (1 - chance) / steps) + 1e-9
        assert abs(counted.get(clicked, 0) / steps - chance) <= error, clicked


@pytest.mark.parametrize("model", MODELS)
def test_no_slate_gets_more_clicks_than_the_optimal_one(model):
    for seed in range(20):
        world = FittedWorld(made_fit(model, n_items=7, seed=seed))
        for k in (1, 3, 4):
            best = max(world.expected_reward(slate) for slate in permutations(range(7), k))
            slate = world.optimal_slate(k)
            assert len(set(slate.tolist())) == k
            assert world.expected_reward(slate) == pytest.approx(best, abs=1e-12)


def test_exchanges_find_nearly_always_the_best_slate(monkeypatch):
    found = 0
    for number in range(200):
        draw = stream(number, "exchanges")
        attraction, leaving = draw.random(7), draw.random(4)
        exact = most_clicks_by_position(attraction, leaving, 4)
        with monkeypatch.context() as patched:
            patched.setattr(most_clicks, "FEW_SLATES", 0)
            near = most_clicks_by_position(attraction, leaving, 4)
        clicks = [most_clicks._clicks(attraction, slate, leaving) for slate in (exact, near)]
        assert clicks[1] >= 0.99 * clicks[0]
        found += clicks[1] >= clicks[0] - 1e-12
    assert found >= 195  # It was 198 when this was written, and the worst ratio 0.997.


def test_segments_come_with_their_shares_and_policies_may_know_them():
    fit = made_fit("cm", shares=(0.7, 0.0, 0.3))
    world = FittedWorld(fit)
    assert (world.n_views, world.n_context, world.segments) == (2, 2, ["s0", "s2"])
    arrays = world.arrays()
    users = np.array([user_in(arrays, stream_key(3, step)) for step in range(4000)])
    # 5 standard errors: a false alarm in 2 million seeds.
    assert abs((users == 1).mean() - 0.3) < 5 * np.sqrt(0.21 / 4000)
    best = [world.expected_reward(world.optimal_slate(2, view), view) for view in range(2)]
    assert world.optimal_reward(2) == pytest.approx(0.7 * best[0] + 0.3 * best[1])
    assert FittedWorld(fit, told="number").contexts.tolist() == [[0.0], [1.0]]
    alone = FittedWorld(fit, segment="s2")
    assert (alone.n_views, alone.n_context) == (1, 0)
    assert np.array_equal(alone.attractions[0], fit.attraction[2])
    with pytest.raises(UnknownName, match="segment 's9' is unknown"):
        FittedWorld(fit, segment="s9")


def test_what_a_segment_never_showed_is_not_shown_there():
    fit = made_fit("dbn", n_items=8, shares=(0.5, 0.5))
    looks = np.full((2, 8), 50.0)
    looks[0, 4:] = 0  # s0 has items 0 to 3, s1 has 2 to 6; nobody has 7.
    looks[1, [0, 1, 7]] = 0
    fit = replace(fit, looks=looks, k=5)
    world = FittedWorld(fit)
    assert world.item_names == [f"tea {item}" for item in range(7)]
    assert [world.candidates(view).tolist() for view in range(2)] == [[0, 1, 2, 3], [2, 3, 4, 5, 6]]
    assert set(world.optimal_slate(4, 0).tolist()) == {0, 1, 2, 3}
    one = FittedWorld(fit, segment="s1")
    assert one.item_names == [f"tea {item}" for item in (2, 3, 4, 5, 6)]
    # Random order shows each segment its own items: 4 of 4, and 4 of 5, on half of the pages each.
    results = simulate(["random"], world, k=4, steps=4000, seed=2)
    shown = {item.item: item.share for item in results["random"].shown}
    # 5 standard errors of a share over the last 400 steps.
    for item, share in {"tea 0": 0.5, "tea 2": 0.9, "tea 5": 0.4}.items():
        assert abs(shown[item] - share) < 5 * np.sqrt(share * (1 - share) / 400)
    with pytest.raises(InvalidInput, match="k must be at most 4, got 5: a segment of this world has no more"):
        simulate(["random"], world, k=5, steps=10)
    with pytest.raises(InvalidInput, match="k must be at most 5, the positions of the page"):
        simulate(["random"], world, k=6, steps=10)
    with pytest.raises(InvalidInput, match="bubble-rank would learn wrongly where segments have items"):
        simulate(["bubble-rank"], world, k=4, steps=10)


def test_features_are_those_of_the_catalog_in_the_scale_of_the_service():
    fit = made_fit("cm")
    catalog = Catalog(["other", *reversed(fit.items)], np.arange(14.0).reshape(7, 2))
    features = FittedWorld(fit, catalog=catalog).features
    assert features.shape == (6, 3)
    assert np.linalg.norm(features, axis=1).max() == pytest.approx(1.0)
    assert np.all(np.diff(features[:, 0]) < 0)  # The catalog has the items in the opposite order.
    with pytest.raises(InvalidInput, match="the catalog lacks 1 of 6 items of the fit, such as 'tea 5'"):
        FittedWorld(fit, catalog=Catalog(fit.items[:5], np.eye(5)))
    with pytest.raises(InvalidInput, match="the catalog has no features"):
        FittedWorld(fit, catalog=Catalog(fit.items))


def test_a_file_is_named_with_or_without_its_parameter(tmp_path):
    folder = tmp_path / "my,fits"
    folder.mkdir()
    file = folder / "a=b.npz"
    made_fit("cm", shares=(0.7, 0.3)).save(file)
    for spec in (f"fitted:{file}", f"fitted:file={file}", f" fitted:{file},told=places"):
        assert make_world(spec).build(0).segments == ["s0", "s1"]
    kind = make_world(f"fitted:{file},segment=s1")
    assert (kind.file, kind.segment) == (file, "s1")
    assert make_world(kind.label) == kind
    results = simulate(["random"], f"fitted:{file}", k=2, steps=20)
    assert results.n_items == 6
    assert {shown.item for shown in results["random"].shown} <= set(made_fit("cm").items)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("fitted", "needs the file of a fit"),
        ("fitted:nowhere.npz", r"nowhere\.npz: no such file"),
        ("fitted:damaged.npz", r"damaged\.npz: damaged"),
        ("fitted:good.npz,segment=s9", "segment 's9'"),
        ("fitted:good.npz,clicks=dcm", "clicks must be"),
        ("fitted:good.npz,file=other.npz", "'file' is given twice"),
        ("fitted:good.npz,catalog=none.csv", r"none\.csv: no such file"),
    ],
)
def test_wrong_fitted_worlds_are_refused(spec, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_fit("cm").save("good.npz")
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:300])
    with pytest.raises((InvalidInput, UnknownName), match=problem):
        make_world(spec).build(0)
