"""Users who go down a slate from the top: what is counted, expected and predicted of their sessions.

One chain covers four click models. The user examines the first position. An examined item is clicked with its
attraction. After a click the user is satisfied and leaves with the chance `leaving`; who does not leave so
goes on to the next position with the chance `gamma`.

cm: leaving = 1, gamma = 1. dcm: leaving by position, gamma = 1. sdbn: leaving by item, gamma = 1. dbn:
leaving by item, gamma free. `by_position` says what `leaving` is indexed by.

Sessions are rows: `cells` (one for each item of a segment; negative after the end of a shorter slate),
`clicks`, `examined` (negative: the page does not tell) and `weights` (0: left out). Kernels work on the
sessions from `start` to `stop` and add to what they are given, so that callers can run them on parts.
"""

from math import log

import numpy as np

from firstclick.kernels.compiling import kernel, shared_kernel

# A product of chances is turned into a logarithm before it gets too small for a float.
_SMALL = 1e-200


@kernel
def _length(cells, session):  # type: ignore[no-untyped-def]
    length = cells.shape[1]
    while length > 0 and cells[session, length - 1] < 0:
        length -= 1
    return length


@kernel
def _last_click(clicks, session, length):  # type: ignore[no-untyped-def]
    """The last position that was clicked; -1 if none was."""
    last = length - 1
    while last >= 0 and clicks[session, last] == 0:
        last -= 1
    return last


@shared_kernel
def count_chain(  # type: ignore[no-untyped-def]
    cells, clicks, examined, weights, start, stop, first_click, hits, looks, clicked, left, position_counts
):
    """Clicks and looks of each cell, where a user has looked as far as the last click (`first_click`: the
    first), or to the end if there was none; what the page tells comes first.

    `clicked` and `left` (by cell) and the two rows of `position_counts`: clicks that something stood below,
    and those after which the user was not seen to look on.
    """
    for session in range(start, stop):
        weight = weights[session]
        if weight == 0.0:
            continue
        length = _length(cells, session)
        last = _last_click(clicks, session, length)
        seen = length if last < 0 else last + 1
        if examined[session] >= 0:
            seen = min(max(examined[session], last + 1), length)
        elif first_click:
            for position in range(seen):
                if clicks[session, position]:
                    seen = position + 1
                    break
        for position in range(seen):
            cell = cells[session, position]
            looks[cell] += weight
            if clicks[session, position]:
                hits[cell] += weight
                if position < length - 1:
                    clicked[cell] += weight
                    position_counts[0, position] += weight
                    if position == seen - 1:
                        left[cell] += weight
                        position_counts[1, position] += weight


@shared_kernel
def expect_chain(  # type: ignore[no-untyped-def]
    cells, clicks, examined, weights, start, stop, attraction, leaving, gamma, by_position, looks, left, going
):
    """The E-step: expected looks of each cell, expected satisfied leavings (by cell or position), and how
    often a user who was not satisfied could go on, and did (`going`). Returns the log-likelihood.

    Down to the last click everything was examined. Below it `below[r]` is the chance that nothing is clicked
    from position r on, if r is examined.
    """
    below = np.empty(cells.shape[1] + 1)
    total = 0.0
    for session in range(start, stop):
        weight = weights[session]
        if weight == 0.0:
            continue
        length = _length(cells, session)
        last = _last_click(clicks, session, length)
        told = examined[session]
        seen = last + 1 if told < 0 else min(max(told, last + 1), length)
        chance, logs = 1.0, 0.0
        # What is known: positions that were examined, and that the user went on from all but the last.
        for position in range(seen):
            cell = cells[session, position]
            looks[cell] += weight
            chance *= attraction[cell] if clicks[session, position] else 1.0 - attraction[cell]
            if position < seen - 1:
                going[0] += weight
                going[1] += weight
                chance *= gamma
                if clicks[session, position]:
                    chance *= 1.0 - leaving[position if by_position else cell]
            if chance < _SMALL:
                logs += log(chance)
                chance = 1.0
        if told >= 0:
            if 0 < seen < length:
                # The page tells that the user looked no further.
                cell = cells[session, seen - 1]
                if clicks[session, seen - 1]:
                    place = seen - 1 if by_position else cell
                    stops = leaving[place] + (1.0 - leaving[place]) * (1.0 - gamma)
                    satisfied = leaving[place] / stops
                    left[place] += weight * satisfied
                    going[0] += weight * (1.0 - satisfied)
                    chance *= stops
                elif gamma < 1.0:
                    going[0] += weight
                    chance *= 1.0 - gamma
                # Else a chain that ends at clicks alone does not know of it: the slate ends here.
        elif seen < length:
            none = 1.0
            for position in range(length - 1, seen - 1, -1):
                if position < length - 1:
                    none = gamma * none + 1.0 - gamma
                none *= 1.0 - attraction[cells[session, position]]
                below[position] = none
            reached = 1.0
            if last >= 0:
                place = last if by_position else cells[session, last]
                on = gamma * (1.0 - leaving[place])
                quiet = on * below[seen] + 1.0 - on
                reached = on * below[seen] / quiet
                satisfied = leaving[place] / quiet
                left[place] += weight * satisfied
                going[0] += weight * (1.0 - satisfied)
                going[1] += weight * reached
                chance *= quiet
            else:
                chance *= below[0]
            for position in range(seen, length):
                looks[cells[session, position]] += weight * reached
                if position < length - 1:
                    going[0] += weight * reached
                    if gamma < 1.0:
                        on = gamma * below[position + 1]
                        reached *= on / (on + 1.0 - gamma)
                    going[1] += weight * reached
        total += weight * (logs + log(chance))
    return total


@shared_kernel
def score_clicks(  # type: ignore[no-untyped-def]
    cells, clicks, sessions, start, stop, attraction, examination, leaving, gamma, by_position, least,
    pages, first_clicks, ranks,
):  # fmt: skip
    """How well clicks are predicted, in nats: `pages` gets the log-likelihood of each session's clicks,
    `first_clicks` that down to the first one. Rows of `ranks`, by position: sessions, and the log-likelihood
    of a click or none given the items alone, and given also the clicks above.

    With `examination` (by position) the model is the position-based one, else a chain. Chances below `least`
    count as `least`.
    """
    for number in range(start, stop):
        session = sessions[number]
        marginal, given = 1.0, 1.0
        page, first = 0.0, 0.0
        open_page = True
        for position in range(_length(cells, session)):
            cell = cells[session, position]
            attracts = attraction[cell]
            if len(examination):
                marginal = given = examination[position]
            clicked = clicks[session, position] != 0
            plain = marginal * attracts
            known = given * attracts
            of_plain = log(max(plain if clicked else 1.0 - plain, least))
            of_known = log(max(known if clicked else 1.0 - known, least))
            ranks[0, position] += 1.0
            ranks[1, position] += of_plain
            ranks[2, position] += of_known
            page += of_known
            if open_page:
                first += of_known
                open_page = not clicked
            if not len(examination):
                stays = 1.0 - leaving[position if by_position else cell]
                marginal *= gamma * (1.0 - attracts + attracts * stays)
                if clicked:
                    given = gamma * stays
                elif known < 1.0:
                    given = gamma * given * (1.0 - attracts) / (1.0 - known)
        pages[number] = page
        first_clicks[number] = first
