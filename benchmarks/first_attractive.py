"""The first click of a cascade, without what a run keeps besides: for benchmarks and tests."""

import numpy as np

from firstclick.kernels.attraction import attracts
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import user_of


@kernel
def first_attractive(world, key, slate, n):  # type: ignore[no-untyped-def]
    """The first position of `slate` that attracts the user of this key in the first view, or -1."""
    user = user_of(key, world.n_users)
    covered = np.empty(len(world.interest))
    for position in range(n):
        if attracts(world, key, user, 0, slate, position, covered):
            return position
    return -1
