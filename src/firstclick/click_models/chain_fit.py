"""Fits of the click models in which users go down from the top: cm, dcm, sdbn and dbn.

cm has a closed form. EM for the others starts at the closed form of Guo et al. (2009) and Chapelle and Zhang
(2009): users examined the slate down to their last click, and left there. That is biased, because users who
examine more positions without a click are not counted. EM finds the maximum of the likelihood.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.chunks import summed
from firstclick.click_models.em import Numbers, maximise
from firstclick.click_models.sessions import Sessions
from firstclick.click_models.shrinkage import Priors, RatePrior, own_priors, rate_prior
from firstclick.kernels.click_chain import count_chain, expect_chain

# dbn starts here: most users go on.
FIRST_GAMMA = 0.9
# Plain steps before the priors are taken from the expected looks.
SETTLING_STEPS = 5


class ChainCounts(NamedTuple):
    """What is counted once: by cell, and by position in two rows."""

    hits: Numbers
    looks: Numbers
    clicked: Numbers
    left: Numbers
    position_clicked: Numbers
    position_left: Numbers


class ChainFit(NamedTuple):
    """The parameters of a chain, by cell or by position, and the looks that attractions rest on."""

    attraction: Numbers
    leaving: Numbers
    gamma: float
    looks: Numbers
    attraction_prior: RatePrior
    leaving_prior: RatePrior
    steps: int
    finished: bool


def counted(
    sessions: Sessions, weights: Numbers, *, first_click: bool, threads: int | None = None
) -> ChainCounts:
    """Clicks and looks down to the last click, or to the first one."""

    def work(start: int, stop: int, sums: tuple[Numbers, ...]) -> float:
        *by_cell, by_position = sums
        count_chain(
            sessions.cells, sessions.clicks, sessions.examined, weights, start, stop, first_click, *by_cell,
            by_position.reshape(2, sessions.k),
        )  # fmt: skip
        return 0.0

    cells = (sessions.n_cells,) * 4
    _, (*by_cell, by_position) = summed(sessions.n, (*cells, 2 * sessions.k), work, threads)
    return ChainCounts(*by_cell, *by_position.reshape(2, sessions.k))


def fit_chain(
    sessions: Sessions, weights: Numbers, model: str, *,
    threads: int | None = None, priors: Priors = own_priors,
) -> ChainFit:  # fmt: skip
    """Fit cm, dcm, sdbn or dbn to the sessions with these weights."""
    chain = _Chain(sessions, weights, model, threads, priors)
    if model == "cm":
        return chain.result(chain.start(), chain.counts.looks, 0, True)
    return chain.by_em()


class _Chain:
    """One fit: its counts, its priors and its EM step. Parameters are one vector: attraction of each cell,
    leaving of each cell or position, gamma."""

    def __init__(
        self, sessions: Sessions, weights: Numbers, model: str, threads: int | None,
        priors: Priors = own_priors,
    ) -> None:  # fmt: skip
        self.sessions, self.weights, self.model, self.threads = sessions, weights, model, threads
        self.priors = priors
        self.counts = counts = counted(sessions, weights, first_click=model == "cm", threads=threads)
        self.by_position = model in ("cm", "dcm")
        self.segments = sessions.cell_segments
        self.clicked = counts.position_clicked if self.by_position else counts.clicked
        self.places = np.zeros(sessions.k, np.int64) if self.by_position else self.segments
        left = counts.position_left if self.by_position else counts.left
        self.set_priors(counts.looks, left)
        self.left = left

    def set_priors(self, looks: Numbers, left: Numbers) -> None:
        """The priors that these looks and leavings give."""
        n_segments = len(self.sessions.segments)
        self.attraction_prior = self.priors("attraction", self.counts.hits, looks, self.segments, n_segments)
        if self.by_position:
            # Positions are few and differ by their nature: one look, for those that were never clicked.
            of_positions = rate_prior(left, self.clicked, self.places, n_segments)
            self.leaving_prior = of_positions._replace(strength=1.0)
        else:
            self.leaving_prior = self.priors("leaving", left, self.clicked, self.places, n_segments)

    def start(self) -> Numbers:
        """The closed form; of cm, where every click is the last one, leaving is sure."""
        return self.joined(self.counts.looks, self.left, 1.0)

    def joined(self, looks: Numbers, left: Numbers, gamma: float) -> Numbers:
        """The M-step."""
        attraction = self.attraction_prior.rates(self.counts.hits, looks, self.segments)
        if self.model == "cm":
            leaving = np.ones(self.sessions.k)
        else:
            leaving = self.leaving_prior.rates(left, self.clicked, self.places)
        return np.concatenate([attraction, leaving, [gamma]])

    def parts(self, parameters: Numbers) -> tuple[Numbers, Numbers, float]:
        """Attraction, leaving and gamma."""
        n = self.sessions.n_cells
        return parameters[:n], parameters[n:-1], float(parameters[-1])

    def expected(self, parameters: Numbers) -> tuple[float, Numbers, Numbers, NDArray[np.float64]]:
        """The E-step: the log-likelihood; expected looks and leavings; how often users could go on, did."""
        attraction, leaving, gamma = self.parts(parameters)
        sessions = self.sessions

        def work(start: int, stop: int, sums: tuple[Numbers, ...]) -> float:
            total: float = expect_chain(
                sessions.cells, sessions.clicks, sessions.examined, self.weights, start, stop, attraction,
                leaving, gamma, self.by_position, *sums,
            )  # fmt: skip
            return total

        sizes = (sessions.n_cells, len(leaving), 2)
        total, (looks, left, going) = summed(sessions.n, sizes, work, self.threads)
        return total, looks, left, going

    def step(self, parameters: Numbers) -> tuple[Numbers, float]:
        """One EM step, and the objective before it."""
        attraction, leaving, gamma = self.parts(parameters)
        total, looks, left, going = self.expected(parameters)
        total += self.attraction_prior.log_density(attraction, self.segments)
        total += self.leaving_prior.log_density(leaving, self.places)
        if self.model == "dbn" and going[0] > 0:
            gamma = float(going[1] / going[0])
        return self.joined(looks, left, gamma), total

    def by_em(self) -> ChainFit:
        """The maximum of the likelihood with its priors."""
        here = self.start()
        if self.model == "dbn":
            here[-1] = FIRST_GAMMA
        for _ in range(SETTLING_STEPS):
            here, _ = self.step(here)
        _, looks, left, _ = self.expected(here)
        self.set_priors(looks, left)
        end = maximise(self.step, here, float(self.weights.sum()))
        _, looks, _, _ = self.expected(end.parameters)
        return self.result(end.parameters, looks, end.steps + SETTLING_STEPS, end.finished)

    def result(self, parameters: Numbers, looks: Numbers, steps: int, finished: bool) -> ChainFit:
        attraction, leaving, gamma = self.parts(parameters)
        return ChainFit(
            attraction, leaving, gamma, looks, self.attraction_prior, self.leaving_prior, steps, finished
        )
