"""The service: recommend, feedback, nothing lost. Its clients are in `firstclick.client`.

The names below are loaded when they are first used: a command line needs no server.
"""

from typing import TYPE_CHECKING

from firstclick.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstclick.catalog.item import Item
    from firstclick.serve.log.tuning import Tuning
    from firstclick.serve.service import Service, open_service
    from firstclick.wire.feedback import ClickReport, Receipt, ServedSlate

__all__ = ["ClickReport", "Item", "Receipt", "ServedSlate", "Service", "Tuning", "open_service"]

_HOME = {
    "ClickReport": "wire.feedback", "Item": "catalog.item", "Receipt": "wire.feedback",
    "ServedSlate": "wire.feedback", "Service": "serve.service", "Tuning": "serve.log.tuning",
    "open_service": "serve.service",
}  # fmt: skip

__getattr__ = lazy_names(__name__, _HOME, "the service")
