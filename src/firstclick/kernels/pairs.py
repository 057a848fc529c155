"""Items compared two by two: who was clicked when the other was not."""

from math import log, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel, shared_kernel


@kernel
def allowed_by(request, n_items):  # type: ignore[no-untyped-def]
    """A 1 for each row that the request allows."""
    candidates, hidden = request.candidates, request.hidden
    allowed = np.ones(n_items, np.uint8)
    if len(candidates) > 0:
        allowed[:] = 0
        for row in candidates:
            allowed[row] = 1
    # The catalog may have rows already for which a policy has made no room yet.
    for row in range(min(len(hidden), n_items)):
        if hidden[row]:
            allowed[row] = 0
    return allowed


@kernel
def beats_for_sure(wins, i, j, constant):  # type: ignore[no-untyped-def]
    """Whether S >= sqrt(2 N log(constant sqrt(N))): of N slates in which only one of the two was clicked, i
    won S more than j."""
    lead, n = wins[i, j] - wins[j, i], wins[i, j] + wins[j, i]
    return lead > 0 and lead >= sqrt(2.0 * n * log(constant * sqrt(n)))


@shared_kernel
def in_layers(beats, block):  # type: ignore[no-untyped-def]
    """Set block[j] to 0 for items that no other beats, to 1 for those beaten by none but these, and so on.

    Items that beat each other in a circle, which only happens by mistake, come last, in one block.
    """
    n_items = len(block)
    beaten = np.zeros(n_items, np.int64)
    for row in range(n_items):
        for j in range(n_items):
            beaten[j] += beats[row, j]
    placed = np.zeros(n_items, np.bool_)
    layer, left = 0, n_items
    while left > 0:
        free = np.nonzero(~placed & (beaten == 0))[0]
        if len(free) == 0:
            free = np.nonzero(~placed)[0]
        for i in free:
            placed[i] = True
            block[i] = layer
            for j in range(n_items):
                beaten[j] -= beats[i, j]
        left -= len(free)
        layer += 1


@kernel
def swaps_for_sure(wins, i, j, budget):  # type: ignore[no-untyped-def]
    """Whether S > 2 sqrt(N budget): of N slates in which only one of the two was clicked, i won S more."""
    lead, n = wins[i, j] - wins[j, i], wins[i, j] + wins[j, i]
    return lead > 2.0 * sqrt(n * budget)
