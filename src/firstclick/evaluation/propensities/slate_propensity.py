"""How likely a policy, as it is now, is to answer a request with the first 1, 2, ... of some rows."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.propensities.gaussian import gaussian_propensity, not_by_redraws, place_propensity
from firstclick.evaluation.propensities.own_parts import own_parts_propensity
from firstclick.evaluation.propensities.places import Places, places_of, uniform_chances
from firstclick.evaluation.propensities.propensity import Propensity
from firstclick.evaluation.propensities.quadrature import beta_chances
from firstclick.evaluation.propensities.redrawn import redrawn
from firstclick.online.engine import PolicyEngine
from firstclick.online.request import SlateRequest
from firstclick.policies.base import Policy
from firstclick.policies.score_laws import BetaScores, EqualScores, GaussianScores, PlaceScores


def slate_propensity(
    engine: PolicyEngine,
    request: SlateRequest,
    rows: NDArray[np.int64],
    *,
    relative_error: float = 0.05,
    seed: int = 0,
    drew_it: bool = False,
) -> Propensity:
    """The probability of each prefix of these rows, to `relative_error` where it is not exact.

    What the policy knows stays as it is. `drew_it`: the policy has drawn these rows before, from this state
    and for this request; where slates are drawn again and counted, that draw counts too.
    """
    return propensity_later(
        engine, request, rows, relative_error=relative_error, seed=seed, drew_it=drew_it
    )()


def propensity_later(
    engine: PolicyEngine,
    request: SlateRequest,
    rows: NDArray[np.int64],
    *,
    relative_error: float,
    seed: int,
    drew_it: bool = False,
) -> Callable[[], Propensity]:
    """What computes `slate_propensity` for the state of this moment: the engine may go on learning, and
    another thread may do the work. What has to be drawn again is drawn now."""
    engine.follow_catalog()
    rows = np.asarray(rows, np.int64)
    n_rows = len(engine.catalog.items)
    places = places_of(request, n_rows, rows)
    if not len(places.chosen):
        return partial(exact, places.by_prefix(np.ones(1)))
    law = None
    if says_its_law(type(engine.policy)):
        law = engine.policy.score_law(
            engine.numbers, engine.state, engine.arrays(), request.kernel, places.rows
        )
    match law:
        case EqualScores():
            return partial(exact, uniform_chances(request, n_rows, rows))
        case BetaScores():
            return partial(_of_betas, law, places)
        case GaussianScores() if not_by_redraws(law, places):
            solve = gaussian_propensity if law.own is None else own_parts_propensity
            return partial(solve, law, places, relative_error, seed)
        case PlaceScores() if all(not_by_redraws(one, places) for one in law.places):
            return partial(place_propensity, law, places, relative_error, seed)
    found = redrawn(engine, request, rows, relative_error=relative_error, seed=seed, drew_it=drew_it)
    return lambda: found


def _of_betas(law: BetaScores, places: Places) -> Propensity:
    chances = places.by_prefix(beta_chances(law.a, law.b, places))
    return Propensity(chances, np.zeros(len(chances)), "quadrature")


def says_its_law(policy: type[Policy]) -> bool:
    """Whether the law of its scores belongs to its `recommend`, and not to one that it has replaced."""
    for known in policy.__mro__:
        if "score_law" in vars(known):
            return True
        if "recommend" in vars(known):
            return False
    return False


def exact(chances: NDArray[np.float64]) -> Propensity:
    """Chances without an error."""
    return Propensity(chances, np.zeros(len(chances)), "exact")
