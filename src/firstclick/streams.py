"""Keyed random streams: a seed and a name give a stream, whatever else is drawn, and in which order.

`stream(seed, "run", 3, "split")` never changes when a policy is added, when policies are
reordered or when more processes take part. Kernels do not draw: they hash a 64-bit `key`.
"""

import hashlib
import json
import operator

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import LARGEST_SEED, in_powers

Name = str | int
LARGEST_KEY = 2**64 - 1


def _digest(seed: int, names: tuple[Name, ...]) -> bytes:
    # JSON keeps ("run", 1, 2) and ("run", 12) and ("run", "1", 2) apart.
    words = [name if isinstance(name, str) else operator.index(name) for name in names]
    number = operator.index(seed)
    if abs(number) > LARGEST_SEED:
        raise InvalidInput(f"must be at most {in_powers(LARGEST_SEED)}, got {quoted(number)}", "seed")
    text = json.dumps([number, *words])
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


def stream(seed: int, *names: Name) -> np.random.Generator:
    """A generator that depends on the seed and the names alone."""
    words = np.frombuffer(_digest(seed, names), dtype=np.uint32)
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(words.tolist())))


def stream_key(seed: int, *names: Name) -> np.uint64:
    """A 64-bit key for kernels that hash (key, step) and (key, item) instead of drawing."""
    return np.uint64(int.from_bytes(_digest(seed, names)[:8], "little"))
