"""The service: recommend, feedback, nothing lost.

The names below are loaded when they are asked for: a client needs no server, and a command line neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firstclick.serve.client import AsyncClient, Client
    from firstclick.serve.events import Item
    from firstclick.serve.feedback import Receipt, Said, Shown
    from firstclick.serve.service import Service, open_service

__all__ = ["AsyncClient", "Client", "Item", "Receipt", "Said", "Service", "Shown", "open_service"]

_HOME = {
    "AsyncClient": "client", "Client": "client", "Item": "events", "Receipt": "feedback", "Said": "feedback",
    "Shown": "feedback",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'service')}"), name)
