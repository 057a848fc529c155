"""The service: recommend, feedback, nothing lost. Its clients are in `firstclick.client`.

The names below are loaded when they are first used: a command line needs no server.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from firstclick.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstclick.catalog.item import Item
    from firstclick.serve.service import Service, open_service
    from firstclick.wire.feedback import ClickReport, Receipt, ServedSlate

__all__ = ["ClickReport", "Item", "Receipt", "ServedSlate", "Service", "open_service"]

_HOME = {
    "ClickReport": "wire.feedback", "Item": "catalog.item", "Receipt": "wire.feedback",
    "ServedSlate": "wire.feedback", "Service": "serve.service", "open_service": "serve.service",
}  # fmt: skip
# Old names, for one release.
_MOVED = {
    "AsyncClient": "client.AsyncClient", "Client": "client.Client", "Said": "serve.ClickReport",
    "Shown": "serve.ServedSlate",
}  # fmt: skip

_load = lazy_names(__name__, _HOME, "the service")


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        home, _, new = _MOVED[name].rpartition(".")
        warnings.warn(
            f"firstclick.serve.{name} is now firstclick.{home}.{new}; the old name works for one release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(f"firstclick.{home}"), new)
    return _load(name)
