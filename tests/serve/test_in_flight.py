"""Items that change while slates with them are on people's screens: learned as shown, gone when withdrawn."""

import random

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.serve.model.audit import audit_served
from firstclick.serve.service import open_service
from firstclick.wire.errors import Malformed, Unknown
from tests.support import seam
from tests.support.made_log import N_FEATURES, N_ITEMS, K, made_items

NO_LIMITS = [f"i{row}" for row in range(N_ITEMS)]


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def service(folder):
    with opened(folder, "shop") as service:
        yield service
        assert audit_served(service.store, service.model("shop")).equal
        digest = seam.model(service, "shop").digest()
    with open_service(str(folder / "shop.db")) as again:
        assert seam.model(again, "shop").digest() == digest


def opened(folder, name, policy="cascade-lin-ts"):
    service = open_service(str(folder / f"{name}.db"))
    items = made_items()
    if policy == "cascade-ts":
        items = [item._replace(features=None) for item in items]
    service.create("shop", policy=policy, k=K, items=items, seed=5)
    return service


def state(service):
    return [array.copy() for array in service.model("shop").engine.state]


def other_features(item, seed=77):
    (found,) = (made for made in made_items(seed=seed) if made.id == item)
    return found


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def shown_everywhere(service, n=200):
    return {
        item for number in range(n) for item in service.recommend("shop", request_id=f"see {number}").items
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda service, shown: service.withdraw_items("shop", shown.items),
        lambda service, shown: service.set_available("shop", off=shown.items),
        lambda service, shown: service.put_items("shop", made_items(50, first=100)),
        lambda service, shown: service.put_items(
            "shop", [Item(shown.items[0], "new name", "x", features(shown))]
        ),
    ],
    ids=["withdrawn", "sold out", "many added", "renamed"],
)
def test_a_slate_is_learned_as_it_was_shown(service, folder, change):
    """The same as in a service where the items changed after the feedback, bit for bit."""
    with opened(folder, "quiet") as quiet:
        for each in (service, quiet):
            shown = each.recommend("shop", request_id="a")
            if each is service:
                change(service, shown)
            assert each.feedback("shop", shown.token, 1).status == "accepted"
        assert equal(state(service), state(quiet))
        # Learned it has: the next is no longer what a fresh model holds.
        with opened(folder, "fresh") as fresh:
            assert not equal(state(fresh), state(quiet))


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-mixed"])
@pytest.mark.parametrize(
    "change",
    [
        lambda service, shown: service.put_items("shop", [other_features(shown.items[0])]),
        lambda service, shown: [
            service.withdraw_items("shop", shown.items),
            service.put_items("shop", [other_features(item) for item in shown.items]),
        ],
        lambda service, shown: [
            service.put_items("shop", [other_features(shown.items[0], seed)]) for seed in (3, 4, 5)
        ],
    ],
    ids=["edited", "put again otherwise", "edited thrice"],
)
def test_a_late_click_is_learned_with_the_features_of_now(folder, policy, change):
    """The same as in a service that had them when the slate was shown, bit for bit; no row is new."""
    with opened(folder, "late", policy) as late, opened(folder, "early", policy) as early:
        shown = late.recommend("shop", request_id="a")
        change(late, shown)
        change(early, shown)
        assert late.feedback("shop", shown.token, 1).status == "accepted"
        same = early.recommend("shop", pinned=dict(enumerate(shown.items)))
        assert same.items == shown.items
        assert early.feedback("shop", same.token, 1).status == "accepted"
        assert equal(state(late), state(early))
        for each in (late, early):
            assert len(each.model("shop").catalog.items) == len(made_items())
            assert audit_served(each.store, each.model("shop")).equal


def features(shown):
    (found,) = (item.features for item in made_items() if item.id == shown.items[0])
    assert found is not None
    return found


def test_new_features_would_have_been_learned_otherwise(service, folder):
    """What the tests above would see if other features were looked up."""
    with opened(folder, "other") as other:
        first = service.recommend("shop", request_id="a").items[0]
        for each in (service, other):
            if each is other:
                other.put_items("shop", [other_features(str(first))])
            shown = each.recommend("shop", request_id="b", k=1, candidates=[first])
            each.feedback("shop", shown.token, 0)
        assert not equal(state(service), state(other))


def test_withdrawn_is_gone_at_once_and_its_slates_still_count(service):
    shown = [service.recommend("shop") for _ in range(20)]
    gone = shown[0].items[0]
    service.withdraw_items("shop", [gone])
    assert gone not in shown_everywhere(service)
    for slate in shown:
        click = slate.items.index(gone) if gone in slate.items else None
        assert service.feedback("shop", slate.token, click).status == "accepted"
        assert gone not in service.recommend("shop").items
    assert service.model("shop").click_stats.slates == 20


def test_put_again_with_equal_features_goes_on_with_what_was_counted(folder):
    with opened(folder, "counted", "cascade-ts") as service:
        shown = service.recommend("shop")
        gone = shown.items[0]
        service.withdraw_items("shop", [gone])
        service.feedback("shop", shown.token, 0)
        row = service.model("shop").catalog.row_of(gone)
        service.put_items("shop", [Item(gone, "again")])
        assert service.model("shop").catalog.row_of(gone) == row
        again = service.recommend("shop", k=1, candidates=[gone])
        assert again.items == [gone]
        # Beta(1, 1) with one click of one.
        assert again.scores == pytest.approx([2 / 3])
        assert audit_served(service.store, service.model("shop")).equal


def test_another_number_of_features_is_another_model(service):
    before = service.recommend("shop", request_id="before")
    wider = [item._replace(features=np.append(item.features, 0.5)) for item in made_items()]
    with pytest.raises(Malformed, match="a model with other features is a new model"):
        service.put_items("shop", wider[:1])
    service.create("wider", policy="cascade-lin-ts", k=K, items=wider, seed=5)
    new = service.recommend("wider")
    for name, token in (("wider", before.token), ("shop", new.token)):
        with pytest.raises(Unknown, match="another model's"):
            service.feedback(name, token, 0)
    assert service.feedback("shop", before.token, 0).status == "accepted"
    assert service.feedback("wider", new.token, 0).status == "accepted"


def test_fewer_items_than_places(service):
    before = service.recommend("shop")
    service.withdraw_items("shop", NO_LIMITS[2:])
    few = service.recommend("shop")
    assert sorted(few.items) == ["i0", "i1"]
    with pytest.raises(Malformed, match="0 to 1, got 2"):
        service.feedback("shop", few.token, 2)
    assert service.feedback("shop", few.token, 1).status == "accepted"
    assert service.feedback("shop", before.token, K - 1).status == "accepted"


def test_no_items_at_all(service):
    before = service.recommend("shop")
    service.withdraw_items("shop", NO_LIMITS)
    empty = service.recommend("shop")
    assert empty.items == []
    with pytest.raises(Malformed, match="the slate is empty, so click must be None"):
        service.feedback("shop", empty.token, 0)
    assert service.feedback("shop", empty.token, None).status == "accepted"
    assert service.feedback("shop", before.token, None).status == "accepted"
    service.put_items("shop", made_items(1, first=200))
    assert service.recommend("shop").items == ["i200"]
    assert service.feedback("shop", before.token, None).status == "duplicate"


def test_a_slate_from_before_a_rollback_and_one_with_items_it_took_away(service):
    old = service.recommend("shop")
    start = seam.model(service, "shop").seq
    service.put_items("shop", made_items(1, first=300))
    new = service.recommend("shop", pinned={0: "i300"})
    service.roll_back("shop", start)
    assert "i300" not in shown_everywhere(service)
    for slate in (old, new):
        assert service.feedback("shop", slate.token, 0).status == "accepted"
    # The row of i300 is not given to another.
    service.put_items("shop", [made_items(1, first=301)[0]])
    catalog = service.model("shop").catalog
    assert catalog.items.index("i300") != catalog.row_of("i301")


def test_everything_at_once(service):
    """Hundreds of slates outstanding while items change in any order: all count, none is misread."""
    draw = random.Random(8)
    outstanding = []
    answered = 0
    for number in range(300):
        outstanding.append(service.recommend("shop"))
        item = f"i{draw.randrange(N_ITEMS)}"
        match draw.randrange(8):
            case 0:
                service.put_items("shop", [other_features(item, draw.randrange(4))])
            case 1 if service.model("shop").items.is_shown(item):
                service.withdraw_items("shop", [item])
            case 2:
                service.put_items("shop", made_items(1, first=400 + number))
            case 3 if number % 5 == 0:
                service.roll_back("shop", draw.randint(1, seam.model(service, "shop").seq))
            case _ if len(outstanding) > 20:
                slate = outstanding.pop(draw.randrange(len(outstanding)))
                click = draw.randrange(-1, len(slate.items))
                assert (
                    service.feedback("shop", slate.token, None if click < 0 else click).status == "accepted"
                )
                answered += 1
    for outcome in service.feedback_batch("shop", [(slate.token, None) for slate in outstanding]):
        assert outcome.status == "accepted"
    assert service.model("shop").click_stats.slates == answered + len(outstanding)


def test_the_items_of_these_tests_have_features_to_change():
    assert not np.array_equal(other_features("i1").features, made_items()[1].features)
    assert len(other_features("i1").features) == N_FEATURES
