"""The probability of a polyhedron {g: Bg >= b} under a standard normal g, and of orders of Gaussian scores.

The lines of B have norm 1. All random numbers are hashes of a key and of the number of a draw.
"""

from math import exp, log, pi, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import fill_normal, mix, uniform

# One draw in so many is from the Gaussian around the nearest point of the polyhedron, which bounds weights.
DEFENSIVE = 10


@kernel
def count_orders(means, loads, chosen, full_at, key, draws, hits, last):  # type: ignore[no-untyped-def]
    """Draw scores means + loads g, and count in hits[j] how often the first j + 1 of `chosen` come first in
    their order. Row i takes part at places up to full_at[i]. `last[j]` becomes the last draw that was hit."""
    n, d, k = len(means), loads.shape[1], len(chosen)
    g, scores, taken = np.empty(d), np.empty(n), np.zeros(n, np.uint8)
    for draw in range(draws):
        fill_normal(mix(key, np.uint64(draw)), g)
        for i in range(n):
            total = means[i]
            for j in range(d):
                total += loads[i, j] * g[j]
            scores[i] = total
        found = 0
        while found < k:
            least = scores[chosen[found]]
            beaten = False
            for i in range(n):
                if scores[i] > least and full_at[i] >= found and not taken[i]:
                    beaten = True
                    break
            if beaten:
                break
            hits[found] += 1
            last[found] = draw
            taken[chosen[found]] = 1
            found += 1
        for place in range(found):
            taken[chosen[place]] = 0


@kernel
def nearest_point(lines, bounds, most_sweeps, enough, point, weights):  # type: ignore[no-untyped-def]
    """Set `point` to the point of {Bg >= b} nearest to 0, by ascent of the dual, one weight at a time; return
    a lower bound of half its squared norm, and stop where that exceeds `enough`."""
    n, d = lines.shape
    for j in range(d):
        point[j] = 0.0
    for c in range(n):
        weights[c] = 0.0
    half = 0.0
    for _ in range(most_sweeps):
        worst = 0.0
        for c in range(n):
            missing = bounds[c]
            for j in range(d):
                missing -= lines[c, j] * point[j]
            step = max(missing, -weights[c])
            if step != 0.0:
                weights[c] += step
                worst = max(worst, abs(step))
                for j in range(d):
                    point[j] += step * lines[c, j]
        half = 0.0
        for c in range(n):
            half += weights[c] * bounds[c]
        for j in range(d):
            half -= 0.5 * point[j] * point[j]
        if worst < 1e-9 or half > enough:
            break
    return half


@kernel
def walk(lines, bounds, point, key, steps, points):  # type: ignore[no-untyped-def]
    """Walk in the polyhedron by elliptical slice sampling (Murray, Adams and MacKay 2010), from `point`; each
    step is a line of `points`. Return how many lines of B the last point violates.

    A bound that is violated is lowered to where the walk stands, so that it may get better and never worse.
    """
    n, d = lines.shape
    other, now, beside = np.empty(d), np.empty(n), np.empty(n)
    floor = np.empty(n)
    for step in range(steps):
        own = mix(key, np.uint64(step))
        fill_normal(own, other)
        for c in range(n):
            a, b = 0.0, 0.0
            for j in range(d):
                a += lines[c, j] * point[j]
                b += lines[c, j] * other[j]
            now[c], beside[c] = a, b
            floor[c] = min(bounds[c], a)
        angle = 2.0 * pi * uniform(own, np.uint64(0))
        low, high = angle - 2.0 * pi, angle
        for turn in range(1, 60):
            cosine, sine = np.cos(angle), np.sin(angle)
            inside = True
            for c in range(n):
                if now[c] * cosine + beside[c] * sine < floor[c]:
                    inside = False
                    break
            if inside:
                for j in range(d):
                    point[j] = point[j] * cosine + other[j] * sine
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * uniform(own, np.uint64(turn))
        for j in range(d):
            points[step, j] = point[j]
    violated = 0
    for c in range(n):
        a = 0.0
        for j in range(d):
            a += lines[c, j] * point[j]
        violated += a < bounds[c]
    return violated


@kernel
def weigh(lines, bounds, centre, root, nearest, key, first, draws, points, weights):  # type: ignore[no-untyped-def]
    """Draw from N(centre, root root'), now and then from N(nearest, I), and weigh each draw in the polyhedron
    by the standard normal density over that of the mixture: the mean weight is the probability.

    `root` is lower triangular. Lines of B that are most often violated should come first.
    """
    n, d = lines.shape
    size, shift = 0.0, 0.0
    for j in range(d):
        size += log(root[j, j])
    z, g = np.empty(d), np.empty(d)
    often, seldom = 1.0 - 1.0 / DEFENSIVE, 1.0 / DEFENSIVE
    for draw in range(draws):
        number = first + draw
        fill_normal(mix(key, np.uint64(number)), z)
        defends = number % DEFENSIVE == 0
        for i in range(d):
            if defends:
                g[i] = nearest[i] + z[i]
            else:
                total = centre[i]
                for j in range(i + 1):
                    total += root[i, j] * z[j]
                g[i] = total
        weights[draw] = 0.0
        inside = True
        for c in range(n):
            a = 0.0
            for j in range(d):
                a += lines[c, j] * g[j]
            if a < bounds[c]:
                inside = False
                break
        for j in range(d):
            points[draw, j] = g[j]
        if not inside:
            continue
        if defends:
            # z = root^-1 (g - centre)
            for i in range(d):
                total = g[i] - centre[i]
                for j in range(i):
                    total -= root[i, j] * z[j]
                z[i] = total / root[i, i]
        plain, fitted, near = 0.0, 0.0, 0.0
        for j in range(d):
            plain += g[j] * g[j]
            fitted += z[j] * z[j]
            shift = g[j] - nearest[j]
            near += shift * shift
        # Relative to the standard normal density.
        fitted = often * exp(min(0.5 * (plain - fitted) - size, 700.0))
        near = seldom * exp(min(0.5 * (plain - near), 700.0))
        weights[draw] = 1.0 / (fitted + near)


@kernel
def root_of(matrix, root):  # type: ignore[no-untyped-def]
    """Set `root` to the lower triangular C with CC' = matrix; return whether there is one."""
    d = len(matrix)
    for i in range(d):
        for j in range(i + 1):
            total = matrix[i, j]
            for m in range(j):
                total -= root[i, m] * root[j, m]
            if i == j:
                if not total > 0.0:
                    return False
                root[i, i] = sqrt(total)
            else:
                root[i, j] = total / root[j, j]
        for j in range(i + 1, d):
            root[i, j] = 0.0
    return True
