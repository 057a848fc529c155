"""What a handler is given, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from firstclick.serve.config import Settings
from firstclick.serve.service import Service
from firstclick.serve.store.store import ApiKey

if TYPE_CHECKING:
    from firstclick.serve.dashboard.data import Views
    from firstclick.serve.http.loop_inbox import Mailbox
    from firstclick.serve.http.metrics import Metrics

JSON = b"application/json"


@dataclass(slots=True)
class Site:
    """What all requests share."""

    service: Service
    settings: Settings
    mailbox: "Mailbox"
    metrics: "Metrics"
    views: "Views"
    openapi: bytes


@dataclass(slots=True)
class Asked:
    """A request that was let in: its parameters, its body (a Struct, or bytes of a file), its key if any."""

    site: Site
    path: tuple[str, ...]
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    key: ApiKey | None = None

    @property
    def service(self) -> Service:
        return self.site.service


class Answer(NamedTuple):
    """An answer that is more than a Struct with code 200."""

    content: bytes
    code: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    media: bytes = JSON
