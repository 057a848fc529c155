"""The K best items of `cascade-mixed`: a scan of the items that were examined, a search among all others.

Scores are relative to what is the same for all items that were never examined. These differ by x'theta alone,
so that the tree finds the best of them; of the others each has an own part, which is kept here until the item
is examined again. Without features items differ by their counts and by their luck: equal counts make a group,
and its luckiest are looked at.
"""

from math import inf, sqrt

import numpy as np

from firstclick.kernels.arrays import CatalogArrays, SeenArrays
from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import luck, mix
from firstclick.kernels.mixed import (
    BETA2,
    DONE,
    P,
    columns_of,
    describe,
    own_part,
    unlearn_looks,
    variance_at,
)
from firstclick.kernels.ranking import TILE, accumulate, features_at, place, product, products, rank, rows_of
from firstclick.kernels.search.groups import N_GROUPS, follow, luckiest
from firstclick.kernels.search.tree import rank_above

# Places of `clock`.
SIZE, REFIT = range(2)

# The luckiest that an item can be: no hash gives more.
MOST_LUCK = 8.3


def nothing_seen() -> SeenArrays:
    """No items: every recommendation looks at all of the catalog."""
    return new_seen(0, 0)


def new_seen(n_items: int, n_features: int) -> SeenArrays:
    """Room for all items; filled at the first recommendation."""
    return SeenArrays(
        place_of=np.full(n_items, -1, np.int32),
        rows=np.empty(n_items, np.int64),
        columns=np.empty((n_features, n_items)),
        keep=np.empty(n_items),
        rate=np.empty(n_items),
        spread=np.empty(n_items),
        clock=np.array([0, -1]),
    )


def with_seen(catalog: CatalogArrays) -> CatalogArrays:
    """The catalog with room for what is known of items that were examined."""
    return catalog._replace(seen=new_seen(*catalog.features.shape))


@kernel
def own_part_of(state, columns, features, row, z):  # type: ignore[no-untyped-def]
    """What the clicks of this row say of it: `kernels.mixed.own_part`. `z` becomes its scaled features."""
    describe(state, features[row], row, columns, z)
    variance = variance_at(state.level, z, state.scale[P])
    return own_part(state.examined[row], state.hits[row], variance, state.scale[BETA2])


@kernel
def note_seen(seen, state, features, slate, examined):  # type: ignore[no-untyped-def]
    """Bring the rows that were just examined up to date, unless all are out of date."""
    if len(seen.place_of) == 0 or seen.clock[REFIT] != int(state.refit[DONE]):
        return
    z = np.empty(len(state.moment))
    for position in range(examined):
        # A look with features of its own is not counted: then there may be nothing to keep.
        if state.examined[slate[position]] > 0.0:
            _put(seen, state, features, slate[position], z)


@kernel
def _put(seen, state, features, row, z):  # type: ignore[no-untyped-def]
    at = seen.place_of[row]
    if at < 0:
        at = seen.clock[SIZE]
        seen.clock[SIZE] += 1
        seen.place_of[row], seen.rows[at] = at, row
        for j in range(features.shape[1]):
            seen.columns[j, at] = features[row, j]
    seen.keep[at], seen.rate[at], seen.spread[at] = own_part_of(state, state.columns, features, row, z)


@kernel
def _follow_seen(seen, state, features):  # type: ignore[no-untyped-def]
    """Bring all rows up to date, if there was a refit since."""
    if seen.clock[REFIT] == int(state.refit[DONE]):
        return
    z = np.empty(len(state.moment))
    for row in range(len(state.examined)):
        if state.examined[row] > 0.0:
            _put(seen, state, features, row, z)
    seen.clock[REFIT] = int(state.refit[DONE])


@shared_kernel
def rank_mixed(state, theta, u, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest score under this draw of theta and of what own parts share, `u`;
    return how many were found."""
    d = state.columns.shape[1]
    if d == 0:
        return _rank_without_features(state, theta, u, catalog, request, key, slate)
    # In the units of the catalog: f = level + x'slope.
    slope, level, columns = np.empty(d), theta[0], columns_of(state, catalog.features)
    for j in range(d):
        slope[j] = theta[j + 1] * columns[1, j]
        level -= columns[0, j] * slope[j]
    beta, lift = sqrt(state.scale[BETA2]), theta[len(theta) - 1]
    seen, logged = catalog.seen, state.logged_examined
    if len(seen.place_of) > 0:
        _follow_seen(seen, state, catalog.features)
    if len(seen.place_of) == 0 or len(request.candidates) > 0:
        return _scan(state, slope, level, lift, beta, u, catalog, request, key, slate)
    hidden, labels, rows = request.hidden, catalog.labels, seen.rows
    keep, rate, spread = seen.keep, seen.rate, seen.spread
    k, n, least = len(slate), 0, -inf
    best, scores = np.empty(k), np.empty(TILE)
    size = seen.clock[SIZE]
    for start in range(0, size, TILE):
        stop = min(start + TILE, size)
        accumulate(scores[: stop - start], seen.columns, slope, start)
        for i in range(start, stop):
            scores[i - start] = keep[i] * scores[i - start] + (
                (rate[i] + (keep[i] - 1.0) * level) + (spread[i] - beta) * u
            )
        if len(logged) > 0:
            for i in range(start, stop):
                if logged[rows[i]] > 0.0:
                    scores[i - start] += keep[i] * lift
        for i in range(start, stop):
            if scores[i - start] >= least and (len(hidden) == 0 or not hidden[rows[i]]):
                n = place(slate, best, n, rows[i], scores[i - start], labels, key)
                if n == k:
                    least = best[n - 1]
    if size < len(catalog.rows):
        others = np.empty(k, np.int64)
        found = rank_above(slope, least, state.examined, catalog, request, key, others)
        for i in range(found):
            n = place(slate, best, n, others[i], product(catalog.features[others[i]], slope), labels, key)
    return n


@kernel
def _scan(state, slope, level, lift, beta, u, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """The same, looking at every row that is asked for."""
    # Arrays are taken out of their tuples once: Numba counts references at every access.
    rows, features, examined, seen = rows_of(catalog, request), catalog.features, state.examined, catalog.seen
    logged = state.logged_examined
    place_of, keeps, rates, spreads = seen.place_of, seen.keep, seen.rate, seen.spread
    kept, given = len(place_of) > 0, len(request.features) > 0
    scores, z = np.empty(len(rows)), np.empty(len(state.moment))
    products(rows, catalog, request, slope, scores)
    for j in range(len(rows)):
        row = rows[j]
        if examined[row] > 0.0:
            at = place_of[row] if kept else -1
            if at >= 0:
                keep, rate, spread = keeps[at], rates[at], spreads[at]
            else:
                keep, rate, spread = own_part_of(state, state.columns, features, row, z)
            own = (rate + (keep - 1.0) * level) + (spread - beta) * u
            if given:
                # Its own part was learned beside the features of the catalog.
                scores[j] += (keep - 1.0) * product(features[row], slope)
            else:
                scores[j] *= keep
            scores[j] += own
            if len(logged) > 0 and logged[row] > 0.0:
                scores[j] += keep * lift
    return rank(rows, scores, catalog, request, key, slate)


@kernel
def _rank_without_features(state, theta, u, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` by a draw for each item, half of which all items share."""
    if len(state.log) > 0:
        return _rank_logged(state, theta, u, catalog, request, key, slate)
    level = theta[0]
    variance, beta2 = variance_at(state.level, np.ones(1), state.scale[P]), state.scale[BETA2]
    labels, hidden, groups, k = catalog.labels, request.hidden, catalog.groups, len(slate)
    if len(groups.group_of) == 0 or len(request.candidates) > 0:
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            row = rows[j]
            centre, spread = _without_luck(state.examined[row], state.hits[row], variance, beta2, level)
            scores[j] = centre + spread * (u + luck(mix(key, labels[row])))
        return rank(rows, scores, catalog, request, key, slate)
    follow(groups, state.time[0], state.examined, state.hits, labels)
    n, least = 0, -inf
    best, hashes, lucky = np.empty(k), np.empty(k, np.uint64), np.empty(k, np.int64)
    for group in range(groups.clock[N_GROUPS]):
        centre, spread = _without_luck(groups.examined[group], groups.hits[group], variance, beta2, level)
        if groups.size[group] == 0 or centre + spread * (u + MOST_LUCK) < least:
            continue
        for i in range(k):
            hashes[i] = 0
        start = groups.start[group]
        stop = start + groups.size[group]
        members, marks = groups.members[start:stop], groups.marks[start:stop]
        for i in range(luckiest(members, marks, hidden, key, hashes, lucky)):
            score = centre + spread * (u + luck(hashes[i]))
            if score < least:
                break
            n = place(slate, best, n, lucky[i], score, labels, key)
            if n == k:
                least = best[n - 1]
    return n


@kernel
def _rank_logged(state, theta, u, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """The same where a log was a head start: its items have a level of their own."""
    rows, logged, beta2 = rows_of(catalog, request), state.logged_examined, state.scale[BETA2]
    scores, z = np.empty(len(rows)), np.ones(2)
    for j in range(len(rows)):
        row = rows[j]
        z[1] = 1.0 if logged[row] > 0.0 else 0.0
        variance = variance_at(state.level, z, state.scale[P])
        keep, rate, spread = own_part(state.examined[row], state.hits[row], variance, beta2)
        own_luck = luck(mix(key, catalog.labels[row]))
        scores[j] = rate + keep * (theta[0] + z[1] * theta[1]) + spread * sqrt(0.5) * (u + own_luck)
    return rank(rows, scores, catalog, request, key, slate)


@kernel
def _without_luck(examined, hits, variance, beta2, level):  # type: ignore[no-untyped-def]
    """The score of an item is centre + spread (u + its luck)."""
    keep, rate, spread = own_part(examined, hits, variance, beta2)
    return rate + (keep - 1.0) * level, spread * sqrt(0.5)


@shared_kernel
def unlearn_mixed(state, catalog, slate, examined):  # type: ignore[no-untyped-def]
    """Take back what was learned of the examined positions of a slate without a click."""
    seen = catalog.seen
    anew = unlearn_looks(state, catalog.features, slate, examined)
    for position in range(examined):
        anew = anew or state.examined[slate[position]] == 0.0
    if anew and len(seen.place_of) > 0:
        # A row that was never examined is found by the search, and must not be here too.
        for row in range(len(seen.place_of)):
            seen.place_of[row] = -1
        seen.clock[SIZE], seen.clock[REFIT] = 0, -1
    note_seen(seen, state, catalog.features, slate, examined)


@shared_kernel
def estimate_mixed(state, catalog, request, rows, theta, means, deviations):  # type: ignore[no-untyped-def]
    """The mean of the attraction of each row, moved into [0, 1] if it lies outside, and its standard
    deviation; theta is the mean of its posterior."""
    size = len(theta)
    features, factor, z, x = catalog.features, state.factor, np.empty(size), np.empty(size)
    columns = columns_of(state, features)
    for j in range(len(rows)):
        row = rows[j]
        keep, rate, spread = own_part_of(state, columns, features, row, z)
        if len(request.features) > 0:
            # f of the request, and what f of the catalog takes from the own part.
            describe(state, features_at(catalog, request, row, j), row, columns, x)
            for i in range(size):
                z[i] = x[i] + (keep - 1.0) * z[i]
        else:
            for i in range(size):
                z[i] *= keep
        mean, squares = rate, 0.0
        for i in range(size):
            mean += theta[i] * z[i]
        for i in range(size):
            line = factor[i]
            z[i] /= line[i]
            squares += z[i] * z[i]
            for m in range(i + 1, size):
                z[m] -= line[m] * z[i]
        means[j] = min(max(mean, 0.0), 1.0)
        deviations[j] = sqrt(squares + spread * spread)
