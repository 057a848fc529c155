"""Slates by their numbers: a hash for each."""

import numpy as np

from firstclick.kernels.compiling import shared_kernel
from firstclick.kernels.hashing import mix


@shared_kernel
def hash_numbers(key, numbers, hashed):  # type: ignore[no-untyped-def]
    """Fill `hashed` with the hash of each number under this key."""
    for place in range(len(numbers)):
        hashed[place] = mix(key, np.uint64(numbers[place]))
