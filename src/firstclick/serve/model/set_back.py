"""How much is lost when a store turns out to have another log than a model has folded."""

from typing import NamedTuple

from firstclick.serve.model.model import Model
from firstclick.serve.store.store import Store


class SetBack(NamedTuple):
    """A log that has not all the events any more that it had."""

    name: str
    known: int  # the last event that is known to have been in the log
    lost: int
    exact: bool  # whether that is how many are lost; at least so many otherwise

    def __str__(self) -> str:
        if self.exact:
            rest = self.known - self.lost
            return f"{self.lost} events up to event {self.known} are gone, all after event {rest}"
        return f"at least {self.lost} events up to event {self.known} are gone"


def set_back_of(store: Store, model: Model) -> SetBack:
    """What a model has folded, or appended, and its log does not have now."""
    with model.lock:
        past, known = list(model.past), max(model.seq, model.appended)
    first = past[0].seq
    there = store.marks(model.id, first, past[-1].seq)
    common = first - 1
    for mark in past:
        if not mark.same(there.get(mark.seq)):
            break
        common = mark.seq
    if common >= first or first == 1:
        return SetBack(model.name, known, known - common, exact=True)
    # All that is remembered is lost. What came before may be lost too, beyond the end of the log for sure.
    return SetBack(model.name, known, known - min(common, store.head(model.id)), exact=False)
