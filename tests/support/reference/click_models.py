"""Click models as slowly and plainly as they can be written: every way a user may have gone, one by one."""

from math import log

import numpy as np


def ways(clicks, attraction, leaving, gamma, told=None):
    """(probability, positions examined, whether the user left satisfied) of every way that explains the
    clicks of one slate; chances are given by position."""
    n = len(clicks)
    last = max((position for position in range(n) if clicks[position]), default=-1)
    ends = range(max(last + 1, 1), n + 1) if told is None else [min(max(told, last + 1), n)]
    for end in ends:
        probability = 1.0
        for position in range(end):
            probability *= attraction[position] if clicks[position] else 1 - attraction[position]
            if position < end - 1:
                probability *= gamma * ((1 - leaving[position]) if clicks[position] else 1)
        if end in (0, n):
            yield probability, end, False
        elif clicks[end - 1]:
            yield probability * leaving[end - 1], end, True
            yield probability * (1 - leaving[end - 1]) * (1 - gamma), end, False
        elif told is not None and gamma == 1:
            yield probability, end, False  # The model knows of no such end: the slate counts as that short.
        else:
            yield probability * (1 - gamma), end, False


def expected_chain(slates, clicks, examined, weights, attraction, leaving, gamma, by_position):
    """What `expect_chain` gives, from all ways of all sessions."""
    looks, left, going, total = np.zeros(len(attraction)), np.zeros(len(leaving)), np.zeros(2), 0.0
    for slate, clicked, told, weight in zip(slates, clicks, examined, weights, strict=True):
        cells = [cell for cell in slate if cell >= 0]
        n = len(cells)
        places = range(n) if by_position else cells
        found = list(
            ways(
                clicked[:n],
                [attraction[cell] for cell in cells],
                [leaving[place] for place in places],
                gamma,
                None if told < 0 else told,
            )
        )
        likelihood = sum(probability for probability, _, _ in found)
        total += weight * log(likelihood)
        for probability, end, satisfied in found:
            share = weight * probability / likelihood
            for position in range(end):
                looks[cells[position]] += share
                if position < end - 1:
                    going += share
            if 0 < end < n:
                if satisfied:
                    left[places[end - 1]] += share
                elif clicked[end - 1] or gamma < 1:
                    going[0] += share
    return total, looks, left, going


def expected_positions(slates, clicks, examined, weights, attraction, examination):
    """Expected looks of cells and positions in the position-based model, and the log-likelihood."""
    looks, seen, total = np.zeros(len(attraction)), np.zeros(len(examination)), 0.0
    for slate, clicked, told, weight in zip(slates, clicks, examined, weights, strict=True):
        for position, cell in enumerate(slate):
            if cell < 0:
                break
            chance, attracts = examination[position], attraction[cell]
            if clicked[position]:
                looked, likelihood = 1.0, chance * attracts
            elif told < 0:
                likelihood = 1 - chance * attracts
                looked = chance * (1 - attracts) / likelihood
            else:
                looked = float(position < told)
                likelihood = chance * (1 - attracts) if looked else 1 - chance
            looks[cell] += weight * looked
            seen[position] += weight * looked
            total += weight * log(likelihood)
    return total, looks, seen


def click_chances(slate, fit, segment, clicks=None):
    """The chance of a click at each position: summed over all clicks that may come above, or given them."""
    k = len(slate)
    attraction = [fit.attraction[segment, item] for item in slate]
    if fit.model == "pbm":
        return [fit.chances[position] * attraction[position] for position in range(k)]
    if fit.model == "cm":
        leaving = [1.0] * k
    elif fit.model == "dcm":
        leaving = [1 - chance for chance in fit.chances[:k]]
    else:
        leaving = [fit.satisfaction[segment, item] for item in slate]
    gamma = fit.chances[0] if fit.model == "dbn" else 1.0

    def likelihood(clicked):
        found = ways(clicked, attraction[: len(clicked)], leaving[: len(clicked)], gamma)
        return sum(probability for probability, _, _ in found)

    def every(n):
        return [[number >> bit & 1 for bit in range(n)] for number in range(2**n)]

    if clicks is None:
        return [sum(likelihood([*above, 1]) for above in every(position)) for position in range(k)]
    chances = []
    for position in range(k):
        above = list(clicks[:position])
        before = likelihood(above) if above else 1.0
        chances.append(likelihood([*above, 1]) / before if before else 0.0)
    return chances
