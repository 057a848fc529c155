"""The probability of a polyhedron {g: Bg >= b} under a standard normal g, and of orders of Gaussian scores.

The lines of B have norm 1. All random numbers are hashes of a key and of the number of a draw.
"""

from math import erfc, exp, inf, log, pi, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import fill_normal, mix, uniform

# One draw in so many comes from a wider Gaussian, so that no weight is very large.
EVERY, WIDE = 8, 3.0
SELDOM = 1.0 / EVERY
OFTEN = 1.0 - SELDOM
ROOT_HALF = sqrt(0.5)


@kernel
def count_orders(means, loads, chosen, full_at, key, draws, hits):  # type: ignore[no-untyped-def]
    """Draw scores means + loads g, and count in hits[j] how often the first j + 1 of `chosen` come first in
    their order. Row i takes part at places up to full_at[i]."""
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
def weigh_lines(slack, slopes, centre, root, key, first, draws, weights):  # type: ignore[no-untyped-def]
    """Draw z from a mixture of N(0, I) and N(0, WIDE^2 I), and integrate the standard normal density exactly
    over the part of each of the d lines through g = centre + root z, one in the direction of each number of
    z, that is in the polyhedron. weights[i] becomes the mean over the lines of that integral, over the
    density of the line: its mean over draws is the probability of the polyhedron.

    The polyhedron is where slack + slopes z >= 0. `root` is lower triangular.
    """
    n, d = slopes.shape
    inverses, norms = np.empty((d, n)), np.empty(d)
    log_size = 0.0
    for k in range(d):
        log_size += log(root[k, k])
        norms[k] = 0.0
        for i in range(k, d):
            norms[k] += root[i, k] * root[i, k]
        for c in range(n):
            inverses[k, c] = 1.0 / slopes[c, k]  # Infinite where the line never leaves: see below.
    z, g, left = np.empty(d), np.empty(d), np.empty(n)
    share = WIDE ** -(d - 1.0) * SELDOM
    for draw in range(draws):
        number = first + draw
        fill_normal(mix(key, np.uint64(number)), z)
        if number % EVERY == 0:
            for k in range(d):
                z[k] *= WIDE
        squares, plain = 0.0, 0.0
        for i in range(d):
            squares += z[i] * z[i]
            total = centre[i]
            for j in range(i + 1):
                total += root[i, j] * z[j]
            g[i] = total
            plain += total * total
        # A line that violates two bounds that it does not move against is of no use, and most are: they end
        # early, as bounds come in the order in which they are violated.
        for c in range(n):
            total = slack[c]
            for j in range(d):
                total += slopes[c, j] * z[j]
            left[c] = total
        mean = 0.0
        for k in range(d):
            low, high, inverse = -inf, inf, inverses[k]
            for c in range(n):
                if inverse[c] > 0.0:
                    low = max(low, z[k] - left[c] * inverse[c])
                else:
                    high = min(high, z[k] - left[c] * inverse[c])
                if low >= high:
                    break
            if low >= high:
                continue
            along, norm = 0.0, norms[k]
            for i in range(k, d):
                along += g[i] * root[i, k]
            along -= z[k] * norm  # h'r, where h = g - z_k r and r is column k of the root
            middle, scale = -along / norm, sqrt(norm)
            base = plain - z[k] * (2.0 * along + z[k] * norm) - norm * middle * middle
            beside = squares - z[k] * z[k]
            inside = between(scale * (low - middle), scale * (high - middle))
            density = OFTEN * exp(-0.5 * beside) + share * exp(-0.5 * beside / (WIDE * WIDE))
            mean += exp(log_size - 0.5 * base) / scale * inside / density
        weights[draw] = mean / d


@kernel
def between(low, high):  # type: ignore[no-untyped-def]
    """The probability that a standard normal number is between these, with all digits in the tails."""
    if low > 0.0:
        low, high = -high, -low
    if high < 0.0:
        return 0.5 * (erfc(-high * ROOT_HALF) - erfc(-low * ROOT_HALF))
    return 1.0 - 0.5 * (erfc(high * ROOT_HALF) + erfc(-low * ROOT_HALF))
