"""The build of this process: what decides the last bits of a slate, beside the log."""

import hashlib
from functools import cache

import llvmlite
import llvmlite.binding
import numba

from firstclick._version import __version__
from firstclick.policies.base import Policy
from firstclick.serve.log.events import Build
from firstclick.source_code import code_hash


@cache
def this_build(policy: type[Policy]) -> Build:
    """The build that folds and draws for this policy here."""
    features = llvmlite.binding.get_host_cpu_features().flatten()
    instructions = hashlib.blake2b(features.encode(), digest_size=4).hexdigest()
    compiled = "" if not numba.config.DISABLE_JIT else ", not compiled"
    return Build(
        f"{__version__}, code {code_hash('firstclick.serve.model.model', policy)}",
        numba.__version__ + compiled,
        llvmlite.__version__,
        f"{llvmlite.binding.get_host_cpu_name()}, instructions {instructions}",
    )
