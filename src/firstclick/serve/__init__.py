"""The service: recommend, feedback, nothing lost. Its clients are in `firstclick.client`.

The names below are loaded when they are first used: a command line needs no server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firstclick.extras import needed_by

if TYPE_CHECKING:
    from firstclick.catalog.item import Item
    from firstclick.client.client import AsyncClient, Client
    from firstclick.serve.service import Service, open_service
    from firstclick.wire.feedback import ClickReport, Receipt, ServedSlate

_HOME = {
    "AsyncClient": "client.client", "ClickReport": "wire.feedback", "Client": "client.client",
    "Item": "catalog.item", "Receipt": "wire.feedback", "ServedSlate": "wire.feedback",
    "Service": "serve.service", "open_service": "serve.service",
}  # fmt: skip

__all__ = [
    "AsyncClient",
    "ClickReport",
    "Client",
    "Item",
    "Receipt",
    "ServedSlate",
    "Service",
    "open_service",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_by("the service"):
        return getattr(import_module(f"firstclick.{_HOME[name]}"), name)
