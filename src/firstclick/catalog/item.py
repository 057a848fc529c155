"""An item as people give it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId


class Item(NamedTuple):
    """An item as it is put into a catalog."""

    id: ItemId
    name: str = ""
    group: str = ""
    features: NDArray[np.float64] | None = None
