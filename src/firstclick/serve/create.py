"""The first event of a model, checked so that nothing is written which could not work."""

import secrets
from collections.abc import Sequence

from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError
from firstclick.online.random_key import new_key
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.serve.log.events import Created, ItemsPut
from firstclick.serve.model.item_rules import (
    check_context_size,
    check_items,
    check_name,
    filled,
    fitted_scale,
    model_seed,
    scaled,
)
from firstclick.serve.model.model import Model
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, Refused
from firstclick.wire.limits import MOST_ROWS


def beginning(
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
    try:
        chosen = make_policy(policy)
        places = whole_number("k", k, at_least=1, at_most=MOST_ROWS)
        check_context_size(chosen)
        checked = filled(check_items(items, None, cold=True))
        if chosen.needs_features and checked[0].features is None:
            raise Malformed(
                f"{chosen.name} needs features, and the items have none: add columns of numbers, take a "
                "policy that needs none, such as cascade-ts, or learn features with `firstclick features`"
            )
        fitted = None
        # Shares between 0 and 1 mean what they are, and a constant beside them would be one more.
        if scale and not chosen.unit_features:
            fitted = fitted_scale(checked, feature_names, add_constant=not _pairs_features(chosen))
        if fitted and chosen.n_context:
            # What is said of the number of features is said of those that were given.
            chosen.initial_state(len(checked), len(fitted.names), places)
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
    except Refused:
        raise
    except FirstclickError as error:
        raise Malformed.of(error) from None
    return body


def _pairs_features(policy: Policy) -> bool:
    """Whether each feature has a number of the context of its own, so that a constant would have none."""
    return policy.n_context > 0 and policy.settings.get("combine") == "product"
