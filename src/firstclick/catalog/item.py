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
    """An item to add or change. Fields that are not given stay as they are; None clears a field.

    >>> Item("tea", name="Green tea", group="drinks", features=[0.2, 0.9]).group
    'drinks'

    Attributes:
        id: A string or an integer.
        name: What people call it.
        group: Its group. `recommend(at_most=...)` limits groups.
        features: A list of numbers, or values by column name.
        available: Whether it may be shown: in stock or sold out.
    """

    id: ItemId
    name: str | NotGiven | None = NOT_GIVEN
    group: str | NotGiven | None = NOT_GIVEN
    features: Features | NotGiven | None = NOT_GIVEN
    available: bool | NotGiven = NOT_GIVEN
