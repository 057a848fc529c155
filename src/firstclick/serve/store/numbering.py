"""Which events of a batch are new, and the numbers they get: the same for every kind of store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import NewEvent
from firstclick.serve.log.history import START, link_of
from firstclick.wire.errors import Unknown

Batch = Sequence[tuple[int, NewEvent]]
# Of (model, nonce), where the event stands and what it says.
Known = Mapping[tuple[int, bytes], tuple[int, bytes]]
# The link of the last event of each model.
Links = Mapping[int, bytes]
# model, seq, kind, nonce, payload, received, link
Row = tuple[int, int, int, bytes, bytes, float, bytes]


class ModelGone(Unknown):
    """An event of a model that is not in the store, or was deleted."""

    def __init__(self, model: int) -> None:
        super().__init__(f"there is no model number {model} in the store; it may have been deleted")
        self.model = model


class Appended(NamedTuple):
    """Where an event stands in the log, and what stands there: of two with one nonce, the first."""

    seq: int
    new: bool
    payload: bytes


def numbered(
    batch: Batch, heads: Mapping[int, int], links: Links, known: Known
) -> tuple[list[Row], list[Appended]]:
    """The rows to insert, and the answer for each event, if `known` are all that the logs hold already."""
    last, last_link = dict(heads), dict(links)
    met = dict(known)
    rows: list[Row] = []
    answers: list[Appended] = []
    for model, event in batch:
        kind, nonce, payload, received = event
        there = met.get((model, nonce))
        if there is not None:
            answers.append(Appended(there[0], False, there[1]))
            continue
        try:
            seq = last[model] + 1
        except KeyError:
            raise ModelGone(model) from None
        last[model] = seq
        met[model, nonce] = (seq, payload)
        last_link[model] = link = link_of(event, last_link[model])
        rows.append((model, seq, kind, nonce, payload, received, link))
        answers.append(Appended(seq, True, payload))
    return rows, answers


def heads_after(rows: Sequence[Row]) -> dict[int, int]:
    """The last seq of each model with new rows."""
    return {row[0]: row[1] for row in rows}


def first_rows(model: int, name: str, events: Sequence[NewEvent]) -> list[Row]:
    """The rows of a new model, which has all its events or none."""
    rows, answers = numbered([(model, event) for event in events], {model: 0}, {model: START}, {})
    for place, answer in enumerate(answers):
        if not answer.new:
            raise InvalidInput(
                f"events {answer.seq} and {place + 1} of model {name!r} have one nonce; each has its own"
            )
    return rows
