"""When Python's garbage collector looks at what there is: never at all of it while others wait.

A full collection holds the interpreter's lock while it looks at every object. A put of 100,000 items makes
a million of them, and the collector would look again and again. Young objects are looked at as usual. Those
that lived on are looked at once, twenty thousand at a time, and then left alone (`gc.freeze`): when
nothing refers to them any more they go, as ever. Only circles among those that were left alone stay.
"""

import gc

# Young collections, of 700 new objects and ten of these each, after which a full one comes by itself: never.
NEVER = 1_000_000
# Collections of the middle generation, of 7,000 objects each: so many objects are looked at, and more are
# left alone at once.
SOME, MANY = 1, 3


class Garbage:
    """The collector's rules, while a server runs."""

    def __init__(self) -> None:
        """Look at all once, now that nobody waits, and leave it alone from now on."""
        self._usual = gc.get_threshold()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*self._usual[:2], NEVER)
        self._seen = 0

    def tidy(self) -> None:
        """Look at what came since the last time, if it is not much."""
        new = gc.get_count()[2] - self._seen
        if new < SOME:
            return
        if new < MANY:
            gc.collect()
        gc.freeze()
        self._seen = gc.get_count()[2]

    def close(self) -> None:
        """As it was before."""
        gc.set_threshold(*self._usual)
        gc.unfreeze()
