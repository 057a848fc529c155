"""Saved policies as targets, frozen at their state: the slate that they think best, or the one they draw."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import InvalidInput
from firstclick.evaluation.propensities.slate_propensity import slate_propensity
from firstclick.evaluation.targets import (
    UNKNOWN_ITEM,
    DeterministicTarget,
    Places,
    Predictions,
    Table,
    Target,
    named,
    places_of,
    segments_of,
    shorter_page,
)
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.logs.ranked_log import NO_ITEM, RankedLog, SlateBatch
from firstclick.online.engine import PolicyEngine
from firstclick.online.ranker import Ranker
from firstclick.online.request import RowRequest, SlateRequest, request_of_rows, without_exploring
from firstclick.streams import stream_key

# Of a policy of which nobody knows here what it has learned from.
NOT_LEARNED_FROM = "judge it on slates that it has not learned from: on its own ones it looks too good"
# Slates that are drawn for what a click model expects of a sampling policy. They steady the estimate and add
# no error of their own.
DRAWS = 256


class EngineTarget(Target):
    """What the targets of a saved policy share: its rows, and the requests of logged slates."""

    def __init__(self, policy_at_work: PolicyEngine | Ranker) -> None:
        at_work = policy_at_work
        engine = at_work._engine if isinstance(at_work, Ranker) else at_work
        policy = engine.policy
        if policy.n_context:
            raise InvalidInput(
                f"{policy.label} wants a context with each request, which ranked logs do not tell here; "
                "judge a policy without context, or a list"
            )
        self.engine = engine

    def start(self, log: RankedLog) -> None:
        super().start(log)
        catalog = self.engine.catalog
        # The row of each item of the log in the catalog, and back.
        self._rows = places_of(log.items, catalog.items)
        self._places = np.full(len(catalog.items), UNKNOWN_ITEM, np.int32)
        known = self._rows >= 0
        self._places[self._rows[known]] = np.flatnonzero(known)
        self._requests: dict[bytes, SlateRequest] = {}

    def refusal(self) -> str:
        k = self.log.k
        return shorter_page(f"the policy makes slates of {self.engine.k}", k) if self.engine.k < k else ""

    def notes(self) -> list[str]:
        said = [] if self.has_learned or self.judged_from is not None else [NOT_LEARNED_FROM]
        strange = [item for item, row in zip(self.log.items, self._rows, strict=True) if row < 0]
        if strange:
            said.append(f"the policy does not know {named(strange)} of the log, and never shows it")
        return said

    def _request(self, candidates: NDArray[np.int32] | None) -> tuple[bytes, SlateRequest]:
        """The request that allows these items, and what it is known by."""
        key = b"" if candidates is None else np.unique(candidates).tobytes()
        if key not in self._requests:
            rows = None
            if candidates is not None:
                rows = np.unique(self._rows[candidates]).astype(np.int64)
                rows = rows[rows >= 0]
                rows = rows[self.engine.catalog.hidden[rows] == 0]
            k = min(self.engine.k, self.log.k)
            asked = RowRequest(k, rows, (), {}, None, NO_LIMITS.context, NO_LIMITS.features)
            self._requests[key] = request_of_rows(self.engine, asked)
        return key, self._requests[key]

    def _requests_of(self, slates: SlateBatch) -> list[tuple[bytes, SlateRequest]]:
        if slates.candidates is None:
            return [self._request(None)] * slates.n
        return [self._request(slates.candidates_of(place)) for place in range(slates.n)]

    def _as_places(self, rows: NDArray[np.int64], k: int) -> Places:
        """Rows of the catalog as places in the log, filled up to k."""
        shown = np.full(k, NO_ITEM, np.int32)
        shown[: len(rows)] = self._places[rows[:k]]
        return shown

    @abstractmethod
    def __repr__(self) -> str: ...


class GreedySlate(EngineTarget, DeterministicTarget):
    """The slate that a saved policy thinks best, without exploring: the items with the highest estimates.

    >>> from firstclick import Catalog
    >>> GreedySlate(Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, policy="cascade-ts", seed=1))
    GreedySlate(cascade-ts)

    Judge it on slates that it has not learned from. On its own slates it looks too good.

    Args:
        policy_at_work: The ranker. It is frozen at its present state.

    Raises:
        InvalidInput: The policy does not rank by estimates, or needs a context.
    """

    def __init__(self, policy_at_work: PolicyEngine | Ranker) -> None:
        super().__init__(policy_at_work)
        if not self.engine.policy.best_by_estimates:
            raise InvalidInput(
                f"{self.engine.policy.label} does not rank by its estimates, so that it has no greedy slate; "
                "judge what it draws by sample:"
            )

    def __repr__(self) -> str:
        return f"GreedySlate({self.engine.policy.label})"

    def start(self, log: RankedLog) -> None:
        super().start(log)
        self._best: dict[bytes, Places] = {}

    def best_slates(self, slates: SlateBatch) -> Places:
        k = slates.items.shape[1]
        if slates.candidates is None:
            return np.tile(self._best_for(*self._request(None), k), (slates.n, 1))
        best = [self._best_for(key, asked, k) for key, asked in self._requests_of(slates)]
        return np.array(best, np.int32).reshape(slates.n, k)

    def _best_for(self, key: bytes, asked: SlateRequest, k: int) -> Places:
        if key not in self._best:
            rows = without_exploring(self.engine, asked) if asked.free else np.empty(0, np.int64)
            if rows is None:
                raise InvalidInput(
                    f"{self.engine.policy.label} holds no estimates; judge what it draws by sample:"
                )
            self._best[key] = self._as_places(rows, k)
        return self._best[key]

    def notes(self) -> list[str]:
        said = super().notes()
        if any((best == UNKNOWN_ITEM).any() for best in self._best.values()):
            said.append("some items of its slates are in no slate of the log")
        return said


class SamplingPolicy(EngineTarget):
    """A policy that draws its slates, frozen at its present state.

    Judge it on slates that it has not learned from. On its own slates it looks too good.

    Args:
        policy_at_work: The ranker. It is frozen at its present state.
        seed: The seed of simulated probabilities.
        relative_error: The relative standard error to aim for where a probability is not exact.

    Raises:
        InvalidInput: The policy needs a context.
    """

    def __init__(
        self, policy_at_work: PolicyEngine | Ranker, *, seed: int = 0, relative_error: float = 0.05
    ) -> None:
        super().__init__(policy_at_work)
        self.seed, self.relative_error = seed, relative_error

    def __repr__(self) -> str:
        return f"SamplingPolicy({self.engine.policy.label})"

    def start(self, log: RankedLog) -> None:
        super().start(log)
        # Pages repeat: each slate is computed once for each set of candidates.
        self._chances: dict[tuple[bytes, bytes], Table] = {}
        self._drawn: dict[bytes, Places] = {}
        self._methods: set[str] = set()
        # Over all slates: how far probabilities may be off, and the probabilities.
        self._errors, self._sum = 0.0, 0.0

    def prefix_chances(self, slates: SlateBatch) -> Table:
        found = np.empty(slates.items.shape)
        for place, (key, asked) in enumerate(self._requests_of(slates)):
            items = slates.items[place]
            known = key, items.tobytes()
            if known not in self._chances:
                self._chances[known] = self._of_slate(items, asked)
            found[place] = self._chances[known]
        return found

    def _of_slate(self, items: Places, asked: SlateRequest) -> Table:
        n = int((items != NO_ITEM).sum())
        rows = self._rows[items[:n]].astype(np.int64)
        # The policy never shows an item that it does not know, nor more than it makes.
        possible = int(np.logical_and.accumulate(rows >= 0).sum())
        possible = min(possible, asked.free)
        chances = np.zeros(len(items))
        if possible:
            told = slate_propensity(
                self.engine, asked, rows[:possible], relative_error=self.relative_error, seed=self.seed
            )
            chances[:possible] = told.chances
            self._methods.add(told.method)
            self._errors += float(told.errors.sum())
            self._sum += float(told.chances.sum())
        chances[n:] = chances[n - 1] if n else 1.0
        return chances

    def predictions(self, slates: SlateBatch, fit: ClickFit) -> Predictions:
        """What a click model expects of the policy: the mean over slates that it draws for the request.

        The mean is the same for the logged item and the target's, so that no expectation over the next item
        has to be computed.

        Args:
            slates: A batch of logged slates.
            fit: The click model, fitted to the log.
        """
        n, k = slates.items.shape
        expected = np.empty((n, k))
        segments = segments_of(slates, fit)
        done: dict[tuple[bytes, int], Table] = {}
        for place, (key, asked) in enumerate(self._requests_of(slates)):
            known = key, int(segments[place])
            if known not in done:
                drawn = self._slates_drawn(key, asked, k)
                chances = fit.click_chances(drawn, np.full(len(drawn), segments[place], np.int32))
                means = chances.mean(axis=0)
                done[known] = np.cumsum(means[::-1])[::-1]
            expected[place] = done[known]
        expected[slates.items == NO_ITEM] = 0.0
        return Predictions(expected, expected)

    def examples(self, n: int) -> Places:
        key, asked = self._request(None)
        return self._slates_drawn(key, asked, self.log.k)[:n]

    def _slates_drawn(self, key: bytes, asked: SlateRequest, k: int) -> Places:
        if key not in self._drawn:
            random = stream_key(self.seed, "evaluation", "slates for a click model")
            slates = self.engine.recommend_many(random, range(DRAWS), asked.free, asked.kernel, scored=False)
            drawn = np.array([self._as_places(rows, k) for rows, _ in slates])
            self._drawn[key] = np.where(
                np.logical_and.accumulate(drawn >= 0, axis=1), drawn, np.int32(NO_ITEM)
            )
        return self._drawn[key]

    def notes(self) -> list[str]:
        said = super().notes()
        if self._methods - {"exact"}:
            how = " and ".join(sorted(self._methods))
            share = self._errors / self._sum if self._sum > 0 else 0.0
            error = f", with a standard error of {100 * share:.2g} % of a probability on average"
            said.append(
                f"probabilities of {len(self._chances):,} different slates by {how}"
                + (error if share else "")
            )
        return said
