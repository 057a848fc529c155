"""cascade-mixed in plain NumPy, slow and by definition: what `kernels/mixed.py` and `kernels/search/seen.py`
must equal.

M and B are summed up anew for each slate, the marginal likelihood is that of the rates under their covariance
matrix, and a refit is computed whole at the moment it takes effect. Nothing here is taken from the kernels
but the numbers of the grid. The interface is that of policies.py.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from firstclick.kernels.hashing import luck

Floats = NDArray[np.float64]


class Look(NamedTuple):
    """A look at an item whose features came with the request."""

    x: Floats
    y: float
    variance: float
    in_log: bool = False


class Refit(NamedTuple):
    """What a refit begins with."""

    looks: float
    p: float
    examined: Floats
    hits: Floats
    given: list[Look]
    drift: float = 0.0


class Setting(NamedTuple):
    """What a refit finds."""

    p: float
    beta: float
    centre: Floats
    deviation: Floats
    in_units: Floats  # the deviation in a feature's natural unit
    prior: Floats
    level: Floats
    drift: float | None = None  # of the log of a head start, if there is one


class MixedReference:
    def __init__(self, features, k=None):
        self.features = features
        n_items, d = features.shape
        self.examined, self.hits = np.zeros(n_items), np.zeros(n_items)
        self.looks, self.clicks = 0.0, 0.0
        self.given = []
        # The log of a head start.
        self.logged, self.logged_hits = np.zeros(n_items), np.zeros(n_items)
        self.next = 16.0
        self.refit = None
        prior, level = np.r_[1.0, np.full(d, d / 0.3**2)], np.r_[0.5, np.zeros(d)]
        self.at = Setting(0.3, 0.25 * 0.3, np.zeros(d), np.ones(d), np.ones(d), prior, level)

    def add(self, features):
        self.features = np.vstack([self.features, features])
        self.examined = np.r_[self.examined, np.zeros(len(features))]
        self.hits = np.r_[self.hits, np.zeros(len(features))]
        self.logged = np.r_[self.logged, np.zeros(len(features))]
        self.logged_hits = np.r_[self.logged_hits, np.zeros(len(features))]

    def warm_start(self, examined, hits):
        """Take these counts as a head start, and refit at once."""
        self.logged, self.logged_hits = self.logged + examined, self.logged_hits + hits
        self.next = 16.0
        while self.next <= self.looks:
            self.next *= 1.5
        self.at = self.fitted(self.now(), *measured(self.features))
        self.refit = None

    def now(self):
        """What a refit begins with that begins now."""
        p = self.mean_rate()
        drift = self.fitted_drift(p)
        examined, hits = self.counts(drift)
        return Refit(self.looks, p, examined, hits, self.given.copy(), drift)

    def mean_rate(self):
        logged, hits = self.logged.sum(), self.logged_hits.sum()
        share = min(1.0, 200.0 / logged) if logged else 0.0
        return float((self.clicks + share * hits + 0.5) / (self.looks + share * logged + 2))

    def fitted_drift(self, p):
        """The standard deviation that makes the differences of rates of the log and live ones most likely."""
        both = (self.examined > 0) & (self.logged > 0)
        n, s, m, t = self.examined[both], self.hits[both], self.logged[both], self.logged_hits[both]
        rate = (s + t + 0.5) / (n + m + 1)
        chance = rate * (1 - rate) * (1 / n + 1 / m)
        grid = [p * 2 ** (0.75 * point - 5) for point in range(14)]

        def likely(drift):
            spread = np.sqrt(chance + drift**2)
            return float(
                norm.logpdf(s / n - t / m, 0, spread).sum() - 0.5 * (np.log(drift / p / 0.1) / 1.5) ** 2
            )

        return max(grid, key=likely)

    def counts(self, drift):
        """Live counts and what the log lends."""
        rate = (self.logged_hits + 0.5) / (self.logged + 1)
        # The variance of a rate of the log is that of chance, and that of the drift.
        variance = rate * (1 - rate) / np.maximum(self.logged, 1e-300) + drift**2
        lent = np.where(self.logged > 0, rate * (1 - rate) / variance, 0.0)
        hits = lent * self.logged_hits / np.maximum(self.logged, 1e-300)
        return self.examined + lent, self.hits + hits

    def known(self):
        """Counts as they are now."""
        return (self.examined, self.hits) if self.at.drift is None else self.counts(self.at.drift)

    def rows(self, at, features=None):
        """What is known of all items beside their clicks."""
        z = standardised(at, self.features if features is None else features)
        return z if at.drift is None else np.c_[z, self.logged[: len(z)] > 0]

    def learn(self, step, slate, clicks, examined):
        if self.looks == 0 and self.at.drift is None:
            centre, deviation, in_units = measured(self.features)
            self.at = self.at._replace(centre=centre, deviation=deviation, in_units=in_units)
        for position in range(examined):
            if step.own:
                x = self.brought_near(step.x[slate[position]])
                in_log = bool(self.logged[slate[position]])
                variance = variances(self.at, look_row(self.at, x, in_log)[None])[0]
                self.given.append(Look(x, float(clicks[position]), variance, in_log))
            else:
                self.examined[slate[position]] += 1
                self.hits[slate[position]] += clicks[position]
            self.looks += 1
            self.clicks += clicks[position]
        if self.refit is None and self.looks >= self.next:
            while self.next <= self.looks:
                self.next *= 1.5
            self.refit = self.now()
            self.columns = measured(self.features)
        elif self.refit is not None and self.looks >= 1.25 * self.refit.looks:
            self.at, self.refit = self.fitted(self.refit, *self.columns), None

    def brought_near(self, x):
        """At most ten standard deviations from the mean; a feature that does not vary has its mean."""
        reach = 10 * self.at.deviation
        return np.clip(x, self.at.centre - reach, self.at.centre + reach)

    def fitted(self, past, centre, deviation, in_units):
        """What is most likely, with one variance for all items first, then with one for each."""
        d = self.features.shape[1]
        drift = past.drift if self.logged.any() else None
        at = Setting(past.p, 0.0, centre, deviation, in_units, np.empty(0), np.empty(0), drift)
        z = self.rows(at, self.features[: len(past.examined)])
        found = at
        for by_item in (False, True):
            v = variances(found, z) if by_item else np.full(len(z), past.p * (1 - past.p))
            best = -np.inf
            for j in range(9):
                beta = (0.0 if d and j == 0 else 2 ** (0.75 * j - 5)) * past.p
                for shape in range(4 if d else 1):
                    for i in range(12 if d else 1):
                        tau = 2 ** (0.75 * i - 4)
                        prior = prior_of(at, tau, shape)
                        likely = self.evidence(past, at, z, v, beta, prior) - 0.5 * (np.log(tau) / 1.5) ** 2
                        if beta > 0:
                            likely -= 0.5 * (np.log(beta / past.p / 0.25) / 1.5) ** 2
                        if likely > best:
                            best = likely
                            m, b = sums(at, z, past.examined, past.hits, v, beta, past.given)
                            level = np.linalg.solve(m + np.diag(prior), b)
                            chosen = at._replace(beta=beta, prior=prior, level=level)
            # V of the second round, and for good, follows from the first round's theta.
            found = chosen if not by_item else chosen._replace(level=found.level)
        return found

    def evidence(self, past, at, z, v, beta, prior):
        """log N(rates; 0, Z diag(1/prior) Z' + noise)."""
        seen = past.examined > 0
        rates = np.r_[past.hits[seen] / past.examined[seen], [look.y for look in past.given]]
        noise = np.r_[v[seen] / past.examined[seen] + beta**2, [look.variance for look in past.given]]
        rows = np.vstack([z[seen], *(look_row(at, look.x, look.in_log) for look in past.given)])
        covariance = (rows / prior) @ rows.T + np.diag(noise)
        root = np.linalg.cholesky(covariance)
        y = np.linalg.solve(root, rates)
        return float(-np.log(np.diag(root)).sum() - 0.5 * y @ y)

    def state(self):
        m, b = self.posterior()
        return {"precision": m, "moment": b}

    def posterior(self):
        """M and B."""
        z = self.rows(self.at)
        m, b = sums(self.at, z, *self.known(), variances(self.at, z), self.at.beta, self.given)
        return m + np.diag(self.at.prior), b

    def scaled(self):
        """Before the first look, features are in the scale of the catalog."""
        if self.looks or self.at.drift is not None:
            return self.at
        centre, deviation, in_units = measured(self.features)
        return self.at._replace(centre=centre, deviation=deviation, in_units=in_units)

    def recommend(self, step, items, k):
        return step.best(np.round(self.scores(step), 11), items, k)

    def scores(self, step):
        """A draw for each item."""
        self.at, noise = self.scaled(), step.noise
        m, b = self.posterior()
        upper = np.linalg.cholesky(m).T
        theta = np.linalg.solve(m, b) + np.linalg.solve(upper, noise[: len(b)])
        u = noise[len(b)]
        if not step.x.shape[1]:  # Items without features have a share of their own in it.
            shares = np.array([luck(np.uint64(step.hash(item))) for item in range(len(step.x))])
            u = (u + shares) / np.sqrt(2)
        z = self.rows(self.at)
        f, v, beta2 = z @ theta, variances(self.at, z), self.at.beta**2
        examined, hits = self.known()
        k = examined * beta2 / (v + examined * beta2)
        rate = hits / np.maximum(examined, 1e-300)
        own = k * (rate - f) + np.sqrt(beta2 * (1 - k)) * u
        return own + (self.rows(self.at, step.x) @ theta if step.own else f)

    def estimates(self, step=None):
        """The mean and the deviation of each item's attraction, by conditioning theta and b jointly on the
        rates."""
        m, b = self.posterior()
        z = self.rows(self.at)
        v, beta2 = variances(self.at, z), self.at.beta**2
        examined, hits = self.known()
        k = examined * beta2 / (v + examined * beta2)
        f = z @ np.linalg.solve(m, b)
        widths = np.einsum("ij,ji->i", z, np.linalg.solve(m, z.T))
        rate = hits / np.maximum(examined, 1e-300)
        return np.clip(f + k * (rate - f), 0, 1), np.sqrt((1 - k) ** 2 * widths + beta2 * (1 - k))


def measured(features):
    centre, deviation = features.mean(axis=0), features.std(axis=0)
    deviation = np.where(deviation > 1e-12 * np.abs(centre), deviation, 0.0)
    two_values = np.array([len(np.unique(column)) == 2 for column in features.T], bool)
    step = np.ptp(features, axis=0)
    return centre, deviation, np.where(two_values, deviation / np.where(two_values, step, 1.0), 1.0)


def standardised(at, x):
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(at.deviation > 0, (x - at.centre) / at.deviation, 0.0)
    return np.hstack([np.ones((len(x), 1)), z])


def look_row(at, x, in_log):
    z = standardised(at, x[None])[0]
    return z if at.drift is None else np.r_[z, float(in_log)]


def variances(at, z):
    q = np.clip(z @ at.level, at.p / 4, 1 - at.p / 4)
    return q * (1 - q)


def prior_of(at, tau, shape):
    p, deviation = at.p, at.deviation
    share = (at.in_units**2, np.ones(len(deviation)), deviation, deviation**2)[shape]
    share = np.where(deviation > 0, share, 0.0)
    share = np.where(deviation > 0, share / max(share.sum(), 1e-300), 1.0)
    of_log = [] if at.drift is None else [1 / p**2]
    return np.r_[1 / (4 * p * p), 1 / (np.maximum(share, 1e-12) * (tau * p) ** 2), of_log]


def sums(at, z, examined, hits, v, beta, given):
    weight = 1 / (v + examined * beta**2)
    m, b = (z.T * (examined * weight)) @ z, z.T @ (hits * weight)
    for look in given:
        zx = look_row(at, look.x, look.in_log)
        m, b = m + np.outer(zx, zx) / look.variance, b + look.y / look.variance * zx
    return m, b
