"""The position-based click model from counts: it needs no more than clicks by cell and position."""

from math import log

import numpy as np

from firstclick.kernels.compiling import shared_kernel

# Rows of a table of counts: clicks; no click, and nobody knows whether it was examined; examined, no click;
# not examined.
CLICKED, QUIET, SEEN, UNSEEN = range(4)


@shared_kernel
def count_positions(cells, clicks, examined, weights, start, stop, counts):  # type: ignore[no-untyped-def]
    """Add sessions to `counts` (4 x cells x positions)."""
    for session in range(start, stop):
        weight = weights[session]
        if weight == 0.0:
            continue
        for position in range(cells.shape[1]):
            cell = cells[session, position]
            if cell < 0:
                break
            if clicks[session, position]:
                kind = CLICKED
            elif examined[session] < 0:
                kind = QUIET
            else:
                kind = SEEN if position < examined[session] else UNSEEN
            counts[kind, cell, position] += weight


@shared_kernel
def expect_positions(counts, attraction, examination, looks, examined):  # type: ignore[no-untyped-def]
    """The E-step: expected looks of each cell, and at each position. Returns the log-likelihood."""
    total = 0.0
    for cell in range(counts.shape[1]):
        attracts = attraction[cell]
        for position in range(counts.shape[2]):
            clicked, quiet = counts[CLICKED, cell, position], counts[QUIET, cell, position]
            seen, unseen = counts[SEEN, cell, position], counts[UNSEEN, cell, position]
            if clicked + quiet + seen + unseen == 0.0:
                continue
            chance = examination[position]
            expected = clicked + seen
            if quiet > 0.0:
                missed = 1.0 - chance * attracts
                expected += quiet * chance * (1.0 - attracts) / missed
                total += quiet * log(missed)
            if clicked > 0.0:
                total += clicked * log(chance * attracts)
            if seen > 0.0:
                total += seen * log(chance * (1.0 - attracts))
            if unseen > 0.0:
                total += unseen * np.log1p(-chance)
            looks[cell] += expected
            examined[position] += expected
    return total
