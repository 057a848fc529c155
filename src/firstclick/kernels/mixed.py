"""What `cascade-mixed` knows: counts of items, and features that explain them in part.

    a_i = z_i'theta + b_i,   b_i ~ N(0, beta^2),   theta_j ~ N(0, 1/lambda_j),   click ~ (a_i, variance V_i)

z_i is 1 and the features of item i, each brought to mean 0 and variance 1. Of each item only n_i and s_i are
kept, how often it was examined and clicked. With b integrated out,

    M = diag(lambda) + sum n_i/(V_i + n_i beta^2) z_i z_i',   B = sum s_i/(V_i + n_i beta^2) z_i

and theta ~ N(M^-1 B, M^-1), so that one more look at an item is a rank-one update. lambda, beta and V come
from a *refit*: the (tau, beta, shape) of largest marginal likelihood on a grid, where tau is the standard
deviation of what features explain. A refit begins at counts of looks (16, 24, 36, ...), works on the counts
of that moment, is spread over the looks that follow, and takes effect when a quarter as many have come:
nobody waits for it, and a log always comes to the same bits.
"""

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import add_square, factorise, solve, solve_transposed

FIRST_REFIT, GROWTH = 16.0, 1.5  # looks before the first refit, and how many times as many before the next
DELAY = 0.25  # A refit begun at so many looks takes effect after this share of them more.

# The grid. tau and beta are in units of p, the mean click rate; the first beta is no own part at all.
TAUS, BETAS, SHAPES = 12, 9, 4
FITS = 2 * BETAS  # passes over the items: each beta with one variance for all items, then with one for each

# Catalogs larger than this are sampled for the mean and the variance of their columns.
COLUMN_SAMPLE = 4096

# Multiplications that one look may cost while a refit is under way: some milliseconds. A refit that costs
# more waits until there are more looks to spread it over.
MOST_A_LOOK = 5e6

# What it costs to pass over an item that was never examined: a multiplication costs 1.
SKIPPED_ROW = 0.5

# How many standard deviations from the catalog's mean a feature of a request may be: it is moved there.
FARTHEST = 10.0

# The log of a head start: points of the grid of its drift; its most likely drift before there are live rates
# to compare with, and how much more or less than others its items attract, both in units of p; and for how
# many looks it counts in p at most.
DRIFTS, LIKELY_DRIFT, LOG_LEVEL, MOST_LOGGED = 14, 0.1, 1.0, 200.0

# Places of `scale`.
P, BETA2 = range(2)
# Places of `totals`.
LOOKS, CLICKS = range(2)
# Places of `refit`. A stage is 0 (no refit under way), 1 to FITS (a fit), FITS + 1 (the new M and B are
# summed up).
NEXT, BEGUN, STAGE, ROW, POINT, SPENT, COST, TAU, BETA, SHAPE, NEXT_P, NEXT_BETA2, DONE = range(13)
# Places of `evidence`.
BASE, BEST = range(2)
# Places of `log`: looks and clicks in all, and the square of the drift, now and after the refit under way.
LOGGED, LOGGED_CLICKS, DRIFT2, NEXT_DRIFT2 = range(4)
NO_EVIDENCE = -1e300


class MixedState(NamedTuple):
    """What `cascade-mixed` knows. D is the number of features and one more, for the constant, which is
    first."""

    examined: NDArray[np.float64]  # n, by item: weighed logs have counts that are not whole
    hits: NDArray[np.float64]  # s
    totals: NDArray[np.float64]  # looks and clicks in all
    precision: NDArray[np.float64]  # M, D x D
    moment: NDArray[np.float64]  # B
    factor: NDArray[np.float64]  # R with R'R = M
    # 3 x features: mean; 1 over the standard deviation, 0 if that is 0; `measure_columns`
    columns: NDArray[np.float64]
    level: NDArray[np.float64]  # the theta by which V follows from features
    scale: NDArray[np.float64]  # p, and the square of beta
    # Sums over looks whose features came with the request, as they came: of zz'/V and zy/V, with the V of
    # the time.
    given_precision: NDArray[np.float64]
    given_moment: NDArray[np.float64]
    # The refit under way: its input, its progress, and its result so far.
    past_examined: NDArray[np.float64]
    past_hits: NDArray[np.float64]
    past_given_precision: NDArray[np.float64]
    past_given_moment: NDArray[np.float64]
    refit: NDArray[np.float64]
    evidence: NDArray[np.float64]
    next_columns: NDArray[np.float64]
    next_level: NDArray[np.float64]
    next_precision: NDArray[np.float64]
    next_moment: NDArray[np.float64]
    best_precision: NDArray[np.float64]
    best_moment: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]
    # The log of a head start; empty if there was none. With one, `examined` and `hits` are live counts and
    # what the log lends, and D is larger by one: whether an item is in the log comes last.
    logged_examined: NDArray[np.float64]
    logged_hits: NDArray[np.float64]
    live_examined: NDArray[np.float64]
    live_hits: NDArray[np.float64]
    log: NDArray[np.float64]


def blank_state(n_items: int, n_features: int) -> MixedState:
    """What is known before the first click: p = 0.3, V = 1/4, and a level that may be anything."""
    size = n_features + 1
    p = 0.3
    prior = np.full(size, n_features / p**2)
    prior[0] = 1.0
    level = np.zeros(size)
    level[0] = 0.5
    refit = np.zeros(DONE + 1)
    refit[NEXT] = FIRST_REFIT
    return MixedState(
        examined=np.zeros(n_items),
        hits=np.zeros(n_items),
        totals=np.zeros(2),
        precision=np.diag(prior),
        moment=np.zeros(size),
        factor=np.diag(np.sqrt(prior)),
        columns=np.stack([np.zeros(n_features), np.ones(n_features), np.ones(n_features)]),
        level=level,
        scale=np.array([p, (0.25 * p) ** 2]),
        given_precision=np.zeros((size, size)),
        given_moment=np.zeros(size),
        past_examined=np.zeros(n_items),
        past_hits=np.zeros(n_items),
        past_given_precision=np.zeros((size, size)),
        past_given_moment=np.zeros(size),
        refit=refit,
        evidence=np.zeros(2),
        next_columns=np.zeros((3, n_features)),
        next_level=np.zeros(size),
        next_precision=np.zeros((size, size)),
        next_moment=np.zeros(size),
        best_precision=np.zeros((size, size)),
        best_moment=np.zeros(size),
        observations=np.zeros(1, np.int64),
        time=np.zeros(1, np.int64),
        logged_examined=np.zeros(0),
        logged_hits=np.zeros(0),
        live_examined=np.zeros(0),
        live_hits=np.zeros(0),
        log=np.zeros(0),
    )


def with_room_for_log(state: MixedState) -> MixedState:
    """The state with the arrays of a log, in which there is nothing yet; a copy."""
    if len(state.log) > 0:
        return state._replace(**{name: array.copy() for name, array in state._asdict().items()})
    wider = ("moment", "precision", "factor", "level")
    arrays = {
        name: np.pad(array, (0, 1)) if name.endswith(wider) else array.copy()
        for name, array in state._asdict().items()
    }
    for matrix in (arrays["precision"], arrays["factor"]):
        matrix[-1, -1] = 1.0  # A factor has no 0 there.
    nothing = np.zeros(len(state.examined))
    arrays |= {"logged_examined": nothing, "logged_hits": nothing.copy(), "log": np.zeros(NEXT_DRIFT2 + 1)}
    return MixedState(**arrays | {"live_examined": state.examined.copy(), "live_hits": state.hits.copy()})


@kernel
def standardise(x, columns, z):  # type: ignore[no-untyped-def]
    """Set `z` to 1 and the features brought to mean 0 and variance 1."""
    z[0] = 1.0
    for j in range(columns.shape[1]):
        z[j + 1] = (x[j] - columns[0, j]) * columns[1, j]


@kernel
def describe(state, x, row, columns, z):  # type: ignore[no-untyped-def]
    """Set `z` to what is known of a row beside its clicks: 1, its features, and whether it is in the log."""
    standardise(x, columns, z)
    if len(state.log) > 0:
        z[len(z) - 1] = 1.0 if state.logged_examined[row] > 0.0 else 0.0


@kernel
def lent(state, row, drift2):  # type: ignore[no-untyped-def]
    """Looks and clicks that the log lends to a row: fewer than it has, because a rate of the log differs from
    the live one by more than chance."""
    n, s = state.logged_examined[row], state.logged_hits[row]
    if n == 0.0:
        return 0.0, 0.0
    q = (s + 0.5) / (n + 1.0)
    weight = 1.0 / (1.0 + n * drift2 / (q * (1.0 - q)))
    return n * weight, s * weight


@kernel
def columns_of(state, features):  # type: ignore[no-untyped-def]
    """The scale of features: that of the last refit, or of the first look; before it, of the catalog now."""
    if state.totals[LOOKS] > 0.0 or len(state.log) > 0:
        return state.columns
    columns = np.empty(state.columns.shape)
    measure_columns(features, columns)
    return columns


@kernel
def variance_at(level, z, p):  # type: ignore[no-untyped-def]
    """V: the variance of a click on an item, by its features alone.

    Not by its own clicks: an item that was unlucky at first would be too sure of itself for ever.
    """
    q = 0.0
    for i in range(len(z)):
        q += level[i] * z[i]
    q = min(max(q, 0.25 * p), 1.0 - 0.25 * p)
    return q * (1.0 - q)


@kernel
def own_part(examined, hits, variance, beta2):  # type: ignore[no-untyped-def]
    """What the clicks of an item say of it beside f, what features say: its attraction is keep f + rate, with
    a standard deviation of `spread` for given f."""
    weight = 1.0 / (variance + examined * beta2)
    return variance * weight, beta2 * hits * weight, sqrt(beta2 * variance * weight)


@shared_kernel
def learn_mixed(state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Learn from the examined positions of one slate, and go on with the refit."""
    features, given = catalog.features, len(request.features) > 0
    if state.totals[LOOKS] == 0.0 and len(state.log) == 0:
        # Nothing is known yet, so that columns may be brought to their scale without a refit.
        measure_columns(features, state.columns)
    z = np.empty(len(state.moment))
    for position in range(examined):
        row = slate[position]
        if given:
            _observe_given(state, request.features[position], row, float(clicks[position]), z)
        else:
            _observe_item(state, features[row], row, float(clicks[position]), z)
    go_on(state, features)
    state.time[0] += 1


@kernel
def _observe_item(state, x, row, y, z):  # type: ignore[no-untyped-def]
    """Count one look at an item of the catalog."""
    n, s = state.examined[row], state.hits[row]
    describe(state, x, row, state.columns, z)
    variance, beta2 = variance_at(state.level, z, state.scale[P]), state.scale[BETA2]
    before, after = 1.0 / (variance + n * beta2), 1.0 / (variance + (n + 1.0) * beta2)
    _add(state, z, (n + 1.0) * after - n * before, (s + y) * after - s * before)
    refit = state.refit
    if refit[STAGE] == FITS + 1 and row < refit[ROW]:
        # It is summed up already with the counts it had.
        p, beta2 = refit[NEXT_P], refit[NEXT_BETA2]
        describe(state, x, row, state.next_columns, z)
        variance = variance_at(state.next_level, z, p)
        m, t = next_counts(state, row)
        before, after = 1.0 / (variance + m * beta2), 1.0 / (variance + (m + 1.0) * beta2)
        _add_next(state, z, (m + 1.0) * after - m * before, (t + y) * after - t * before)
    state.examined[row] = n + 1.0
    state.hits[row] = s + y
    if len(state.log) > 0:
        state.live_examined[row] += 1.0
        state.live_hits[row] += y
    state.totals[LOOKS] += 1.0
    state.totals[CLICKS] += y


@kernel
def next_counts(state, row):  # type: ignore[no-untyped-def]
    """The counts of a row once the refit under way has taken effect."""
    if len(state.log) == 0:
        return state.examined[row], state.hits[row]
    n, s = lent(state, row, state.log[NEXT_DRIFT2])
    return state.live_examined[row] + n, state.live_hits[row] + s


@kernel
def _observe_given(state, x, row, y, z):  # type: ignore[no-untyped-def]
    """Count one look at an item whose features came with the request: it says something of theta, and nothing
    of what features the catalog has."""
    describe(state, x, row, state.columns, z)
    near = np.empty(len(x))
    for j in range(len(x)):
        # A request far from the catalog would outweigh all others for ever.
        z[j + 1] = min(max(z[j + 1], -FARTHEST), FARTHEST)
        unit = state.columns[1, j]
        near[j] = state.columns[0, j] + (z[j + 1] / unit if unit > 0.0 else 0.0)
    weight = 1.0 / variance_at(state.level, z, state.scale[P])
    _add(state, z, weight, y * weight)
    if state.refit[STAGE] == FITS + 1:
        describe(state, near, row, state.next_columns, z)
        _add_next(state, z, weight, y * weight)
    z[0] = 1.0
    for j in range(len(x)):
        z[j + 1] = near[j]
    _add_square_to(state.given_precision, z, weight)
    for i in range(len(z)):
        state.given_moment[i] += y * weight * z[i]
    state.totals[LOOKS] += 1.0
    state.totals[CLICKS] += y


@kernel
def _add(state, z, weight, moment):  # type: ignore[no-untyped-def]
    """M + weight zz' and B + moment z."""
    root, v = sqrt(max(weight, 0.0)), np.empty(len(z))
    for i in range(len(z)):
        state.moment[i] += moment * z[i]
        v[i] = root * z[i]
    add_square(state.precision, state.factor, state.observations, v)


@kernel
def _add_next(state, z, weight, moment):  # type: ignore[no-untyped-def]
    _add_square_to(state.next_precision, z, weight)
    for i in range(len(z)):
        state.next_moment[i] += moment * z[i]


@kernel
def _add_square_to(matrix, z, weight):  # type: ignore[no-untyped-def]
    """Add weight zz' to the upper triangle."""
    for i in range(len(z)):
        row, a = matrix[i], weight * z[i]
        for j in range(i, len(z)):
            row[j] += a * z[j]


@kernel
def measure_columns(features, columns):  # type: ignore[no-untyped-def]
    """The mean of each feature, 1 over its standard deviation, and that in the feature's natural unit: for a
    feature of two values, such as 0 and 1, the step between them, else the standard deviation itself. Of a
    sample, if there are many items.
    """
    n_rows, d = features.shape
    every = (n_rows + COLUMN_SAMPLE - 1) // COLUMN_SAMPLE
    for j in range(d):
        total, size, count = 0.0, 0.0, 0
        smallest, largest, between = inf, -inf, False
        for row in range(0, n_rows, every):
            total += features[row, j]
            count += 1
            smallest, largest = min(smallest, features[row, j]), max(largest, features[row, j])
        for row in range(0, n_rows, every):
            between = between or smallest < features[row, j] < largest
        centre = total / count
        total = 0.0
        for row in range(0, n_rows, every):
            size = max(size, abs(features[row, j] - centre))
        # Divided first, because the square of a very large or very small number is none.
        for row in range(0, n_rows, every):
            if size > 0.0:
                total += ((features[row, j] - centre) / size) ** 2
        deviation = size * sqrt(total / count)
        columns[0, j] = centre
        # What differs by no more than rounding does not differ.
        columns[1, j] = 1.0 / deviation if deviation > 1e-12 * abs(centre) and deviation > 1e-290 else 0.0
        columns[2, j] = 1.0 if between else deviation / (largest - smallest) if largest > smallest else 1.0


@kernel
def go_on(state, features):  # type: ignore[no-untyped-def]
    """Begin a refit if it is time for one; else do the part of the one under way that is due."""
    refit, looks = state.refit, state.totals[LOOKS]
    if refit[STAGE] == 0.0:
        while looks >= refit[NEXT] and cost_of_refit(state) > MOST_A_LOOK * DELAY * looks:
            refit[NEXT] *= GROWTH  # With very many features the first refits are left out.
        if looks >= refit[NEXT]:
            begin_refit(state, features)
        return
    due = (looks - refit[BEGUN]) / (DELAY * refit[BEGUN])
    work(state, features, inf if due >= 1.0 else due * refit[COST])


@kernel
def begin_refit(state, features):  # type: ignore[no-untyped-def]
    """Begin a refit of what is known now."""
    refit, looks = state.refit, state.totals[LOOKS]
    refit[NEXT] = FIRST_REFIT
    while refit[NEXT] <= looks:
        refit[NEXT] *= GROWTH
    refit[NEXT_P] = mean_rate(state)
    if len(state.log) > 0:
        state.log[NEXT_DRIFT2] = fitted_drift(state, refit[NEXT_P]) ** 2
    for row in range(len(state.examined)):
        state.past_examined[row], state.past_hits[row] = next_counts(state, row)
    for i in range(len(state.moment)):
        state.past_given_moment[i] = state.given_moment[i]
        for j in range(len(state.moment)):
            state.past_given_precision[i, j] = state.given_precision[i, j]
    measure_columns(features, state.next_columns)
    refit[BEGUN], refit[SPENT], refit[COST] = looks, 0.0, cost_of_refit(state)
    state.evidence[BEST] = NO_EVIDENCE
    _begin_stage(state, 1.0)


@kernel
def mean_rate(state):  # type: ignore[no-untyped-def]
    """p: clicks a look. The log counts for some looks at most."""
    looks, clicks = state.totals[LOOKS], state.totals[CLICKS]
    if len(state.log) == 0 or state.log[LOGGED] == 0.0:
        return (clicks + 0.5) / (looks + 2.0)
    share = min(1.0, MOST_LOGGED / state.log[LOGGED])
    return (clicks + share * state.log[LOGGED_CLICKS] + 0.5) / (looks + share * state.log[LOGGED] + 2.0)


@kernel
def fitted_drift(state, p):  # type: ignore[no-untyped-def]
    """The standard deviation of the differences between rates of the log and live ones, beside chance, that
    makes those seen most likely."""
    found, best = 0.0, -inf
    for point in range(DRIFTS):
        drift = p * 2.0 ** (0.75 * point - 5.0)
        likely = -0.5 * (log(drift / p / LIKELY_DRIFT) / 1.5) ** 2
        for row in range(len(state.logged_examined)):
            n, logged = state.live_examined[row], state.logged_examined[row]
            if n > 0.0 and logged > 0.0:
                s, hits = state.live_hits[row], state.logged_hits[row]
                q = (s + hits + 0.5) / (n + logged + 1.0)
                noise = q * (1.0 - q) * (1.0 / n + 1.0 / logged) + drift * drift
                likely -= 0.5 * (log(noise) + (s / n - hits / logged) ** 2 / noise)
        if likely > best:
            found, best = drift, likely
    return found


@kernel
def cost_of_refit(state):  # type: ignore[no-untyped-def]
    """About how many multiplications a refit takes."""
    examined, size = 0.0, float(len(state.moment))
    for row in range(len(state.examined)):
        examined += state.examined[row] > 0.0
    cost = (FITS + 1) * (_cost_of_row(size) * examined + SKIPPED_ROW * len(state.examined))
    return cost + FITS * _points(state) * _cost_of_point(size)


@kernel
def _cost_of_row(size):  # type: ignore[no-untyped-def]
    return size * size


@kernel
def _cost_of_point(size):  # type: ignore[no-untyped-def]
    return size * size * size / 3.0


@kernel
def _points(state):  # type: ignore[no-untyped-def]
    """Points of the grid for one beta."""
    return TAUS * SHAPES if state.columns.shape[1] > 0 else 1


@kernel
def _begin_stage(state, stage):  # type: ignore[no-untyped-def]
    refit = state.refit
    refit[STAGE], refit[ROW], refit[POINT] = stage, 0.0, 0.0
    state.evidence[BASE] = 0.0
    for i in range(len(state.moment)):
        state.next_moment[i] = 0.0
        for j in range(len(state.moment)):
            state.next_precision[i, j] = 0.0
    if stage <= FITS:
        _add_given(state, state.past_given_precision, state.past_given_moment)
    else:
        _add_given(state, state.given_precision, state.given_moment)


@kernel
def _add_given(state, precision, moment):  # type: ignore[no-untyped-def]
    """Bring these sums over requests' own features to the scale of the new columns, and begin with them."""
    if precision[0, 0] == 0.0:
        return
    size = len(state.moment)
    # z = Tx for x = (1, the features as they came).
    turn = np.zeros((size, size))
    turn[0, 0] = 1.0
    turn[size - 1, size - 1] = 1.0  # whether it is in the log, if there is one
    for j in range(state.columns.shape[1]):
        turn[j + 1, 0] = -state.next_columns[0, j] * state.next_columns[1, j]
        turn[j + 1, j + 1] = state.next_columns[1, j]
    half = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            entry = precision[min(i, j), max(i, j)]
            for m in range(size):
                half[m, j] += turn[m, i] * entry
    for i in range(size):
        for j in range(size):
            state.next_moment[i] += turn[i, j] * moment[j]
            for m in range(i, size):
                state.next_precision[i, m] += half[i, j] * turn[m, j]


@kernel
def work(state, features, target):  # type: ignore[no-untyped-def]
    """Go on with the refit until `target` of its work is done, or all of it."""
    refit = state.refit
    size = len(state.moment)
    n_rows, z = len(state.examined), np.empty(size)
    while refit[STAGE] > 0.0 and refit[SPENT] < target:
        stage, row = int(refit[STAGE]), int(refit[ROW])
        if row < n_rows:
            counts, beta2 = state.past_examined, (_beta(state, stage) * refit[NEXT_P]) ** 2
            if stage > FITS:
                counts, beta2 = state.examined, refit[NEXT_BETA2]
            skipped = _next_counted(counts, state.logged_examined, row) - row
            row += skipped
            refit[SPENT] += SKIPPED_ROW * skipped
            refit[ROW] = row
            if row < n_rows:
                n, s = state.past_examined[row], state.past_hits[row]
                if stage > FITS:
                    n, s = next_counts(state, row)
                _sum_up(state, features[row], row, n, s, beta2, stage > BETAS, z)
                refit[SPENT] += _cost_of_row(size)
                refit[ROW] += 1.0
        elif stage > FITS:
            if target < inf:
                return  # All is done, and it is not yet time.
            _finish(state)
        elif refit[POINT] < _points(state):
            _judge(state, stage, int(refit[POINT]))
            refit[POINT] += 1.0
            refit[SPENT] += _cost_of_point(size)
        else:
            _end_fit(state, stage)


@kernel
def _next_counted(counts, logged, row):  # type: ignore[no-untyped-def]
    """The first row from here on that was examined, or is in the log."""
    while row < len(counts) and counts[row] == 0.0 and (len(logged) == 0 or logged[row] == 0.0):
        row += 1
    return row


@kernel
def _beta(state, stage):  # type: ignore[no-untyped-def]
    """The beta of this stage, in units of p. Without features items differ by their own parts alone: no 0."""
    at = (stage - 1) % BETAS
    if at > 0:
        return 2.0 ** (0.75 * at - 5.0)
    return 0.0 if state.columns.shape[1] > 0 else 2.0**-5.0


@kernel
def _sum_up(state, x, row, n, s, beta2, by_item, z):  # type: ignore[no-untyped-def]
    """Add an item to the sums of this stage."""
    p = state.refit[NEXT_P]
    describe(state, x, row, state.next_columns, z)
    variance = variance_at(state.next_level, z, p) if by_item else p * (1.0 - p)
    weight = 1.0 / (variance + n * beta2)
    _add_next(state, z, n * weight, s * weight)
    noise, rate = variance / n + beta2, s / n
    state.evidence[BASE] -= 0.5 * (log(noise) + rate * rate / noise)


@kernel
def _tau(point):  # type: ignore[no-untyped-def]
    return 2.0 ** (0.75 * (point % TAUS) - 4.0)


@kernel
def _set_prior(state, prior, tau, shape):  # type: ignore[no-untyped-def]
    """lambda, for tau in units of p: what features explain has this standard deviation in all."""
    p, columns = state.refit[NEXT_P], state.next_columns
    largest, total = 0.0, 0.0
    for j in range(columns.shape[1]):
        if columns[1, j] > 0.0:
            largest = max(largest, 1.0 / columns[1, j])
    for j in range(columns.shape[1]):
        total += _share(columns, j, shape, largest)
    prior[0] = 1.0 / (4.0 * p * p)
    for j in range(columns.shape[1]):
        share = _share(columns, j, shape, largest) / total if columns[1, j] > 0.0 else 1.0
        prior[j + 1] = 1.0 / (max(share, 1e-12) * (tau * p) ** 2)
    if len(state.log) > 0:
        prior[len(prior) - 1] = 1.0 / (LOG_LEVEL * p) ** 2


@kernel
def _share(columns, j, shape, largest):  # type: ignore[no-untyped-def]
    """What feature j explains beside others, before anything is known: it grows with its variance in natural
    units, so that a rare category explains little (shape 0); is the same for all (1); or grows with its
    standard deviation (2) or its variance (3) as given: then the scale of features says which matter."""
    if columns[1, j] == 0.0:
        return 0.0
    if shape == 0:
        return columns[2, j] ** 2
    return (1.0 / columns[1, j] / largest) ** (shape - 1)


@kernel
def _judge(state, stage, point):  # type: ignore[no-untyped-def]
    """The marginal likelihood of the rates at this point of the grid, times its prior; kept if it is the
    largest."""
    size = len(state.moment)
    beta, tau, shape = _beta(state, stage), _tau(point), point // TAUS
    prior, factor, y = np.empty(size), np.empty((size, size)), np.empty(size)
    _set_prior(state, prior, tau, shape)
    precision = _with_prior(state.next_precision, prior)
    if not factorise(precision, factor):
        return
    evidence = state.evidence[BASE]
    for i in range(size):
        y[i] = state.next_moment[i]
        evidence += 0.5 * log(prior[i]) - log(factor[i, i])
    solve_transposed(factor, y)
    for i in range(size):
        evidence += 0.5 * y[i] * y[i]
    evidence -= 0.5 * (log(tau) / 1.5) ** 2
    if beta > 0.0:
        evidence -= 0.5 * (log(beta / 0.25) / 1.5) ** 2
    if evidence > state.evidence[BEST]:
        state.evidence[BEST] = evidence
        state.refit[TAU], state.refit[BETA], state.refit[SHAPE] = tau, beta, shape
        for i in range(size):
            state.best_moment[i] = state.next_moment[i]
            for j in range(size):
                state.best_precision[i, j] = precision[i, j]


@kernel
def _with_prior(upper, prior):  # type: ignore[no-untyped-def]
    """The whole matrix of which this is the upper triangle, and lambda on its diagonal."""
    size = len(prior)
    whole = np.empty((size, size))
    for i in range(size):
        for j in range(i, size):
            whole[i, j] = whole[j, i] = upper[i, j]
        whole[i, i] += prior[i]
    return whole


@kernel
def _end_fit(state, stage):  # type: ignore[no-untyped-def]
    """After the last beta of a pass: take what was found."""
    refit = state.refit
    if state.evidence[BEST] == NO_EVIDENCE:
        refit[STAGE] = 0.0  # Floating point has no room for these numbers: all stays as it is.
        return
    if stage == BETAS:
        size = len(state.moment)
        factor = np.empty((size, size))
        for i in range(size):
            state.next_level[i] = state.best_moment[i]
        if factorise(state.best_precision, factor):
            solve_transposed(factor, state.next_level)
            solve(factor, state.next_level)
        state.evidence[BEST] = NO_EVIDENCE
    elif stage == FITS:
        refit[NEXT_BETA2] = (refit[BETA] * refit[NEXT_P]) ** 2
    _begin_stage(state, stage + 1.0)


@kernel
def _finish(state):  # type: ignore[no-untyped-def]
    """Put what was found in the place of what was; unless floating point has no room for it."""
    refit, size = state.refit, len(state.moment)
    prior, factor = np.empty(size), np.empty((size, size))
    refit[STAGE] = 0.0
    _set_prior(state, prior, refit[TAU], int(refit[SHAPE]))
    precision = _with_prior(state.next_precision, prior)
    if not factorise(precision, factor):
        return
    refit[DONE] += 1.0
    state.scale[P], state.scale[BETA2] = refit[NEXT_P], refit[NEXT_BETA2]
    for j in range(state.columns.shape[1]):
        for line in range(len(state.columns)):
            state.columns[line, j] = state.next_columns[line, j]
    for i in range(size):
        state.level[i] = state.next_level[i]
        state.moment[i] = state.next_moment[i]
        for j in range(size):
            state.precision[i, j], state.factor[i, j] = precision[i, j], factor[i, j]
    if len(state.log) > 0:
        for row in range(len(state.examined)):
            state.examined[row], state.hits[row] = next_counts(state, row)
        state.log[DRIFT2] = state.log[NEXT_DRIFT2]


@shared_kernel
def change_features(state, rows, before, features):  # type: ignore[no-untyped-def]
    """Put the features that these rows have now in the place of those they had, `before`, in the sums over
    what was learned. The scale of features and the prior stay those of the last refit."""
    z, size = np.empty(len(state.moment)), len(state.moment)
    for place in range(len(rows)):
        row = rows[place]
        n, s = state.examined[row], state.hits[row]
        if n > 0.0:
            for sign in (-1.0, 1.0):
                describe(state, before[place] if sign < 0.0 else features[row], row, state.columns, z)
                variance = variance_at(state.level, z, state.scale[P])
                weight = sign / (variance + n * state.scale[BETA2])
                for i in range(size):
                    state.moment[i] += s * weight * z[i]
                    for j in range(size):
                        state.precision[i, j] += n * weight * z[i] * z[j]
    if state.refit[STAGE] == FITS + 1:
        _begin_stage(state, FITS + 1.0)  # It has summed up features that are no more.
    if not factorise(state.precision, state.factor):
        refit_now(state, features)


@kernel
def unlearn_looks(state, features, slate, examined):  # type: ignore[no-untyped-def]
    """Take back looks at these rows that ended without a click; return whether all was made anew for it.

    Work that was spent on a refit stays spent, and no refit begins a second time.
    """
    z, size = np.empty(len(state.moment)), len(state.moment)
    for position in range(examined):
        row = slate[position]
        n, s = state.examined[row], state.hits[row]
        live, live_hits = n, s
        if len(state.log) > 0:
            live, live_hits = state.live_examined[row], state.live_hits[row]
        if live - live_hits < 1.0 - 1e-9:
            continue  # There was no such look.
        if len(state.log) > 0:
            state.live_examined[row] = live - 1.0
        left = max(n - 1.0, s)
        describe(state, features[row], row, state.columns, z)
        variance = variance_at(state.level, z, state.scale[P])
        before = 1.0 / (variance + n * state.scale[BETA2])
        after = 1.0 / (variance + left * state.scale[BETA2])
        for i in range(size):
            state.moment[i] += s * (after - before) * z[i]
            for j in range(size):
                state.precision[i, j] += (left * after - n * before) * z[i] * z[j]
        state.examined[row] = left
        state.totals[LOOKS] = max(state.totals[LOOKS] - 1.0, 0.0)
    state.time[0] = max(state.time[0] - 1, 0)
    if state.refit[STAGE] == FITS + 1:
        _begin_stage(state, FITS + 1.0)  # It has summed up looks that are no more.
    if factorise(state.precision, state.factor):
        return False
    refit_now(state, features)
    return True


@shared_kernel
def refit_now(state, features):  # type: ignore[no-untyped-def]
    """Make anew, at once, all that follows from the counts: after a merge, or after they were weighed."""
    state.observations[0] = 0
    state.refit[DONE] = 0.0
    if state.totals[LOOKS] > 0.0 or len(state.log) > 0:
        begin_refit(state, features)
        work(state, features, inf)
