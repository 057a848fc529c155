"""What a store of logs can do. The log is the truth; snapshots are a cache."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

from firstclick.serve.log.events import Event, NewEvent
from firstclick.serve.log.token import TokenKey

KEPT_SNAPSHOTS = 3


class StoredModel(NamedTuple):
    """A model by its number in this store, which is never given again."""

    id: int
    name: str
    head: int  # seq of the last event


class Appended(NamedTuple):
    """Where an event stands in the log, and what stands there: of two with one nonce, the first."""

    seq: int
    new: bool
    payload: bytes


class ApiKey(NamedTuple):
    """Who may do what. Of the key itself only the SHA-256 is kept."""

    id: int
    name: str
    role: str
    hash: bytes
    created: float


class Store(ABC):
    """Logs, snapshots and keys, safe for use by several threads.

    Any method raises Unavailable when the storage cannot answer now, and StoreBroken when it must not be
    believed any more. An exception of `append` or `create` leaves open whether the events are in the log;
    sending them again, with the same nonces, settles it.
    """

    kind: ClassVar[str]
    # Whether other processes may append to the same logs.
    shared: ClassVar[bool]
    # What its owner should know, a sentence each.
    notes: tuple[str, ...] = ()

    @abstractmethod
    def models(self) -> list[StoredModel]:
        """All models, in one quick query."""

    @abstractmethod
    def create(self, name: str, events: Sequence[NewEvent]) -> StoredModel:
        """A new model with these first events, all of them or none; Conflict when the name is taken."""

    @abstractmethod
    def append(self, batch: Sequence[tuple[int, NewEvent]]) -> list[Appended]:
        """Put events of any models into their logs, in this order, in one transaction; on the disk on return.

        An event whose nonce its model's log has already, or that comes twice in the batch, is there once.
        """

    @abstractmethod
    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """The events with after < seq <= upto, in order, some thousands at a time.

        Without `feedback` only the others: creation, items, rollbacks; found without reading the whole log.
        """

    @abstractmethod
    def save_snapshot(self, model: int, seq: int, content: bytes) -> None:
        """Keep a snapshot beside the two newest others."""

    @abstractmethod
    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """The snapshots kept, newest first."""

    @abstractmethod
    def token_keys(self) -> list[TokenKey]:
        """Oldest first."""

    @abstractmethod
    def add_token_key(self, secret: bytes, created: float) -> TokenKey:
        """A new key, which signs from now on."""

    @abstractmethod
    def drop_token_keys(self, before: int) -> None:
        """Forget keys with a lower id: no token of theirs is believed any more."""

    @abstractmethod
    def api_keys(self) -> list[ApiKey]:
        """The keys that are not revoked."""

    @abstractmethod
    def add_api_key(self, name: str, role: str, hash: bytes, created: float) -> ApiKey:
        """A new key."""

    @abstractmethod
    def revoke_api_key(self, key: int) -> bool:
        """Whether there was such a key, which is no longer good."""

    @abstractmethod
    def note_replica(self, name: str, seqs: dict[int, int], now: float) -> None:
        """This process is alive and has folded each model so far; does nothing where there is only one."""

    @abstractmethod
    def replicas(self) -> list[tuple[str, float, dict[int, int]]]:
        """Processes heard of lately: name, when, and how far each has folded each model."""

    @abstractmethod
    def check(self) -> list[str]:
        """What is wrong with the storage itself, a sentence each: damage, gaps in a log; or nothing."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
