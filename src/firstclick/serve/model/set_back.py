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
        gone = f"{self.lost} event{'s' * (self.lost != 1)} up to event {self.known}"
        gone += " is gone" if self.lost == 1 else " are gone"
        return f"{gone}, all after event {self.known - self.lost}" if self.exact else f"at least {gone}"


def set_back_of(store: Store, model: Model) -> SetBack:
    """What a model has folded, or appended, and its log does not have now."""
    with model.lock:
        past, last, known = list(model.past), model.seq, max(model.seq, model.appended)
    first = last - len(past) + 1
    if (base := store.bases().get(model.id)) is not None and first < base.seq <= last:
        past, first = past[base.seq - first :], base.seq  # What is before is archived, and not lost.
    there = store.marks(model.id, first, last)
    # The last event that both have; `sure` when nothing before it can differ.
    common, sure = first - 1, first == 1
    for seq, link in enumerate(past, first):
        if seq not in there:
            break
        if link != there[seq].link:
            break
        common, sure = seq, True
    if sure:
        return SetBack(model.name, known, known - common, exact=True)
    # What came before may be lost too; what is beyond the end of the log is so for sure.
    lost = known - min(common, store.head(model.id))
    return SetBack(model.name, known, max(lost, 1), exact=False)
