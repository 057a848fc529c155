"""CascadeMixed, the default."""

from collections.abc import Mapping
from sys import float_info
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.mixed import (
    BEGUN,
    BEST,
    BETA2,
    DONE,
    FITS,
    LOGGED,
    LOGGED_CLICKS,
    NEXT_P,
    NO_EVIDENCE,
    POINT,
    ROW,
    SHAPE,
    SHAPES,
    STAGE,
    TAU,
    TAUS,
    MixedState,
    P,
    blank_state,
    change_features,
    columns_of,
    learn_mixed,
    refit_now,
    with_room_for_log,
)
from firstclick.kernels.posterior import mean, sample
from firstclick.kernels.search.groups import new_groups, note, note_unlearned
from firstclick.kernels.search.seen import estimate_mixed, note_seen, rank_mixed, unlearn_mixed, with_seen
from firstclick.policies.base import PlainParameters, Policy, State, lengthened
from firstclick.policies.score_laws import GaussianScores, features_of, posterior_scores
from firstclick.validation.ranges import COUNT, NOT_NEGATIVE, POSITIVE, Range, check_factor, check_no_more

# A mean click rate, which is neither 0 nor 1.
SHARE = Range(float_info.min, 1 - float_info.epsilon)
# What is counted, and adds up.
COUNTED = ("examined", "hits", "totals", "given_precision", "given_moment")
# What a log has, by item.
OF_LOG = ("logged_examined", "logged_hits", "live_examined", "live_hits")


class CascadeMixed(Policy):
    """Learn from features and from each item's own clicks; the data decide how much each counts. The default.

    It has no parameters, works with features and without, and takes features in any units.

    The attraction of item i is z_i'theta + b_i, where z_i is 1 and its features, and b_i ~ N(0, beta^2) is
    its own part, which no feature explains. For n looks and s clicks, and a click's variance V,

        M = Lambda + sum n/(V + n beta^2) z z',   B = sum s/(V + n beta^2) z,   theta ~ N(M^-1 B, M^-1)
        score = f + k (s/n - f) + sqrt(beta^2 (1 - k)) u,   f = z'theta,   k = n beta^2/(V + n beta^2)

    with one draw of theta and u for a slate. Without features, half of the variance of u is each item's own.
    Lambda, beta and V are refitted after 16, 24, 36, ... looks: the point of a grid with the largest marginal
    likelihood times weak priors. The work of a refit is spread over the looks that follow; it takes effect
    after a quarter as many. With more than 50 features the first refits are left out, because they would
    take too long.

    The log of a head start is counted beside live clicks. Its rates differ from live ones by a drift, which
    refits find where there are both: the larger, the fewer looks an item of the log counts for. Whoever chose
    the log's items knew something of them: they have a level of their own, beside theta.

    Assumes a cascade, and a Gaussian for clicks. There is no bound on its regret: the shared u is not a draw
    from the posterior. The estimate of an item is its rate of clicks when it is looked at, given no click
    above it. Looks at slates with features of their own teach theta alone; a feature that does not vary in
    the catalog is ignored.
    """

    name = "cascade-mixed"
    paper = "ours; the model is that of Wan, Ge and Song 2023 (MTSS), the fit empirical Bayes"
    family = "features"
    made_for = ("partly-explained",)
    look = "black"
    takes_features: ClassVar[bool] = True
    # Hyper-parameters are fitted to counts of some moments: between two refits, what came first matters.
    order_free: ClassVar[bool] = False
    by_item: ClassVar[tuple[str, ...]] = ("examined", "hits", "past_examined", "past_hits")
    counts_suffice: ClassVar[bool] = True
    scales_features: ClassVar[bool] = True
    corrects: ClassVar[bool] = True
    # Below so many items a scan takes no longer than looking at groups of equal counts.
    grouped_from: ClassVar[int] = 32

    def initial_state(self, n_items: int, n_features: int, k: int) -> MixedState:
        return blank_state(n_items, n_features)

    def noise_size(self, k: int, n_features: int) -> int:
        return n_features + 3  # theta, u, and the level of a log's items

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        counted = ("examined", "hits", "totals", "past_examined", "past_hits", "log", *OF_LOG)
        return {**dict.fromkeys(counted, COUNT), **dict.fromkeys(("scale", "refit"), NOT_NEGATIVE)}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_factor(self.name, "factor", state.factor)
        check_no_more(self.name, "hits", state.hits, "examined", state.examined)
        check_no_more(self.name, "past_hits", state.past_hits, "past_examined", state.past_examined)
        check_no_more(self.name, "logged_hits", state.logged_hits, "logged_examined", state.logged_examined)
        check_no_more(self.name, "live_hits", state.live_hits, "live_examined", state.live_examined)
        if len(state.log):
            clicks, looks = state.log[LOGGED_CLICKS : LOGGED_CLICKS + 1], state.log[LOGGED : LOGGED + 1]
            check_no_more(self.name, "clicks in log", clicks, "looks in log", looks)
        SHARE.check(self.name, "p in scale", state.scale[P : P + 1])
        self._check_columns("columns", state.columns)
        refit = state.refit
        for word, place, most in (
            ("stage", STAGE, FITS + 1), ("row", ROW, n_items), ("point", POINT, TAUS * SHAPES),
            ("shape", SHAPE, SHAPES - 1), ("number", DONE, COUNT.most),
        ):  # fmt: skip
            if refit[place] > most or refit[place] % 1:
                raise InvalidInput(
                    f"must have as its {word} a whole number of at most {most}, got {refit[place]}",
                    "refit", self.name,
                )  # fmt: skip
        if refit[STAGE] > 0:
            # What is divided by.
            SHARE.check(self.name, "p in refit", refit[NEXT_P : NEXT_P + 1])
            POSITIVE.check(self.name, "looks in refit", refit[BEGUN : BEGUN + 1])
            if state.evidence[BEST] > NO_EVIDENCE or refit[STAGE] > FITS:
                POSITIVE.check(self.name, "tau in refit", refit[TAU : TAU + 1])
            self._check_columns("next_columns", state.next_columns)

    def _check_columns(self, name: str, columns: NDArray[np.float64]) -> None:
        for word, line, allowed in (("deviations", 1, NOT_NEGATIVE), ("units", 2, POSITIVE)):
            allowed.check(self.name, f"{word} in {name}", columns[line])

    def like(self, blank: MixedState, arrays: Mapping[str, NDArray[Any]]) -> MixedState:
        return with_room_for_log(blank) if np.size(arrays.get("log", ())) else blank

    def grow(self, state: MixedState, n_items: int) -> MixedState:
        grown = super().grow(state, n_items)
        if len(state.log):
            grown = grown._replace(**{name: lengthened(getattr(state, name), n_items) for name in OF_LOG})
        return grown

    def merge(self, first: MixedState, second: MixedState) -> MixedState:
        """Sums of counts. All else follows from them: `refitted`."""
        counted: tuple[str, ...] = (*COUNTED, "time")
        if len(first.log) or len(second.log):
            first, second = with_room_for_log(first), with_room_for_log(second)
            counted += (*OF_LOG, "log")
        return first._replace(**{name: getattr(first, name) + getattr(second, name) for name in counted})

    def tempered(self, state: MixedState, weight: float, draw: np.random.Generator) -> MixedState:
        """Counts are real numbers: nothing is rounded but the number of slates."""
        counted = {name: weight * getattr(state, name) for name in COUNTED}
        return state._replace(**counted, time=np.rint(weight * state.time).astype(np.int64))

    def with_counts(
        self, state: MixedState, examined: NDArray[np.float64], hits: NDArray[np.float64], slates: int
    ) -> MixedState:
        return state._replace(
            examined=state.examined + examined,
            hits=state.hits + hits,
            totals=state.totals + np.array([examined.sum(), hits.sum()]),
            time=state.time + slates,
        )

    def with_log(self, state: MixedState, past: MixedState, *, nothing_known: bool) -> MixedState:
        """The counts of the log beside the live ones. Looks with features of their own teach theta as live
        ones do."""
        if not past.totals.any():
            return state
        told, blank = with_room_for_log(past), with_room_for_log(state)
        logged = np.r_[past.totals, 0.0, 0.0]
        return blank._replace(
            logged_examined=blank.logged_examined + past.examined,
            logged_hits=blank.logged_hits + past.hits,
            log=blank.log + logged,
            given_precision=blank.given_precision + told.given_precision,
            given_moment=blank.given_moment + told.given_moment,
            time=blank.time + past.time,
        )

    def refitted(self, state: MixedState, catalog: CatalogArrays) -> MixedState:
        fresh = _copied(state)
        refit_now(fresh, catalog.features)
        return fresh

    def with_changed_features(
        self, state: MixedState, catalog: CatalogArrays, rows: NDArray[np.int64], before: NDArray[np.float64]
    ) -> MixedState:
        fresh = _copied(state)
        change_features(fresh, rows, before, catalog.features)
        return fresh

    def unlearn(
        self, state: MixedState, catalog: CatalogArrays, slate: NDArray[np.int64], examined: int
    ) -> None:
        """Looks with features of their own were weighed by what was known then, and stay."""
        unlearn_mixed(state, catalog, slate, examined)
        note_unlearned(catalog.groups, slate[:examined])

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        catalog = super().shortcuts(catalog)
        if catalog.features.shape[1] > 0:
            return with_seen(catalog)
        n_items = len(catalog.rows)
        return catalog._replace(groups=new_groups(n_items)) if n_items >= self.grouped_from else catalog

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        return mixed_scores(state, catalog, request, rows)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = sample(state.moment, state.factor, 1.0, noise)
        return rank_mixed(state, theta, noise[len(theta)], catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        learn_mixed(state, catalog, request, slate, examined, clicks)
        note_seen(catalog.seen, state, catalog.features, slate, examined)
        note(catalog.groups, slate, examined)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        theta = mean(state.moment, state.factor, 1.0)
        estimate_mixed(state, catalog, request, rows, theta, means, deviations)


def mixed_scores(
    state: MixedState, catalog: CatalogArrays, request: Request, rows: NDArray[np.int64]
) -> GaussianScores:
    """The scores rate + keep f + spread u of these rows, where f = z'theta; g is the noise of theta, and u.

    As `kernels.search.seen` has them, but for what is the same for all rows.
    """
    columns = columns_of(state, catalog.features)

    def described(features: NDArray[np.float64]) -> NDArray[np.float64]:
        logged = [state.logged_examined[rows] > 0] if len(state.log) else []
        return np.column_stack([np.ones(len(rows)), (features - columns[0]) * columns[1], *logged])

    z, p, beta2 = described(catalog.features[rows]), state.scale[P], state.scale[BETA2]
    click_rate = np.clip(z @ state.level, 0.25 * p, 1.0 - 0.25 * p)
    variance = click_rate * (1.0 - click_rate)
    weight = 1.0 / (variance + state.examined[rows] * beta2)
    keep, rate, spread = (
        variance * weight,
        beta2 * state.hits[rows] * weight,
        np.sqrt(beta2 * variance * weight),
    )
    if len(request.features):
        # Its own part was learned beside the features of the catalog.
        z = described(features_of(catalog, request, rows)) + (keep - 1.0)[:, None] * z
    else:
        z *= keep[:, None]
    law = posterior_scores(z, state.moment, state.factor, 1.0)
    if state.columns.shape[1]:
        return GaussianScores(rate + law.means, np.column_stack([law.loads, spread]))
    shared = np.sqrt(0.5) * spread
    return GaussianScores(rate + law.means, np.column_stack([law.loads, shared]), shared)


def _copied(state: MixedState) -> MixedState:
    return state._replace(**{name: array.copy() for name, array in state._asdict().items()})
