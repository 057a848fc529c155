"""The first event of a model, checked so that nothing is written which could not work."""

import secrets
from collections.abc import Sequence

import numpy as np

from firstclick.catalog.item import Item
from firstclick.online.engine import scale_for
from firstclick.online.random_key import new_key
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.serve.log.events import Created, ItemsPut
from firstclick.serve.model.item_rules import (
    check_context_size,
    check_items,
    check_name,
    filled,
    model_seed,
    scaled,
)
from firstclick.serve.model.model import Model
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, refusing
from firstclick.wire.limits import MOST_ROWS


def first_event(
    name: str,
    *,
    policy: Policy | str,
    k: int,
    items: Sequence[Item],
    seed: int | None,
    feature_names: Sequence[str],
    scale: bool,
) -> Created:
    """How a model of this policy and these items begins, or Malformed."""
    check_name(name)
    with refusing:
        chosen = make_policy(policy)
        places = whole_number("k", k, at_least=1, at_most=MOST_ROWS)
        check_context_size(chosen)
        checked = filled(check_items(items, None, cold=True))
        given = checked[0].features is not None
        if chosen.needs_features and not given:
            raise Malformed(
                f"{chosen.name} needs features, and the items have none: add columns of numbers, take a "
                "policy that needs none, such as cascade-ts, or learn features with `firstclick features`"
            )
        fitted = None
        if scale and given:
            table = np.array([item.features for item in checked])
            if feature_names and len(feature_names) != table.shape[1]:
                raise Malformed(
                    f"there are {table.shape[1]} features, and {len(feature_names)} names for them"
                )
            fitted = scale_for(chosen, table, places, feature_names)
        checked = check_items(scaled(checked, fitted), None)
        drawn = secrets.randbits(32) if seed is None else model_seed(seed)
        body = Created(
            policy=chosen.name,
            settings=chosen.settings,
            k=places,
            seed=drawn,
            n_features=0 if checked[0].features is None else len(checked[0].features),
            items=ItemsPut.of(checked),
            feature_scale=fitted and fitted.as_json(),
            key=int(new_key("model", drawn, chosen, places)),
            version=chosen.version,
        )
        Model(0, name, body)  # What the policy cannot work with it refuses now.
    return body
