"""An item as people give it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.not_given import NOT_GIVEN, NotGiven

# The value of each column by its name, or of all columns in their order.
Features = Mapping[str, Any] | Sequence[Any] | NDArray[np.float64]


class Item(NamedTuple):
    """An item as it is put into a catalog. What is not given stays as it is; None clears it.

    >>> Item("tea", name="Green tea", group="drinks", features=[0.2, 0.9]).group
    'drinks'
    """

    id: ItemId
    name: str | NotGiven | None = NOT_GIVEN
    group: str | NotGiven | None = NOT_GIVEN
    features: Features | NotGiven | None = NOT_GIVEN
    available: bool | NotGiven = NOT_GIVEN
