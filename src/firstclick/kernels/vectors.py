"""Sums of many columns of half precision at once, in vector instructions that Numba's loops do not reach.

Numba cannot know that two arrays do not overlap, so in a loop over short lines it tests for that, or gives
up; and it knows no numbers of half precision. Here the sums stay in registers until they are complete. They
are bounds: their last bits, which differ between machines, decide nothing.
"""

import platform
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 32


def _knows_halves() -> bool:
    """Whether the processor that Numba compiles for converts half precision by itself.

    Elsewhere the compiler would call a function that is not there, and the process would end.
    """
    if platform.machine() in ("aarch64", "arm64"):
        return True
    if config.CPU_NAME is not None:
        return "+f16c" in (config.CPU_FEATURES or "")
    return bool(binding.get_host_cpu_features().get("f16c", False))


HALVES = bool(config.DISABLE_JIT) or _knows_halves()

_HALVES, _SINGLES = ir.VectorType(ir.HalfType(), LANES), ir.VectorType(ir.FloatType(), LANES)
_INT = ir.IntType(32)


def sum_lines(block: Any, lines: Any, weights: Any, sums: Any) -> None:
    """Set sums[m] to the sum over j of weights[j] * block[lines[j], m], for `LANES` columns m.

    The block is of half precision, given as its bits.
    """
    sums[:] = weights @ block[lines].view(np.float16).astype(np.float32)


def halve(singles: Any, halves: Any) -> None:
    """Round `LANES` numbers to half precision, given as its bits."""
    halves[:] = singles.astype(np.float16).view(np.uint16)


@overload(sum_lines)
def _(block, lines, weights, sums):  # type: ignore[no-untyped-def]
    return lambda block, lines, weights, sums: _sum_lines(block, lines, weights, sums)


@overload(halve)
def _(singles, halves):  # type: ignore[no-untyped-def]
    return lambda singles, halves: _halve(singles, halves)


@intrinsic
def _sum_lines(typing, block, lines, weights, sums):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        block, lines, weights, sums = _arrays(context, builder, signature, arguments)
        if not HALVES:
            return context.get_dummy_value()  # There is no tree, and nobody calls this.
        (n_lines,) = cgutils.unpack_tuple(builder, weights.shape)
        total = cgutils.alloca_once_value(builder, ir.Constant(_SINGLES, [0.0] * LANES))
        with cgutils.for_range(builder, n_lines) as loop:
            line = builder.load(builder.gep(lines.data, [loop.index]))
            start = builder.gep(block.data, [builder.mul(line, ir.Constant(line.type, LANES))])
            values = builder.fpext(_load(builder, start, _HALVES), _SINGLES)
            weight = _everywhere(builder, builder.load(builder.gep(weights.data, [loop.index])))
            product = builder.fmul(weight, values, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        _store(builder, builder.load(total), sums.data)
        return context.get_dummy_value()

    given = ((block, types.uint16), (lines, types.int64), (weights, types.float32), (sums, types.float32))
    return (types.void(block, lines, weights, sums), generate) if _fit(given) else None


@intrinsic
def _halve(typing, singles, halves):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        if not HALVES:
            return context.get_dummy_value()
        singles, halves = _arrays(context, builder, signature, arguments)
        values = _load(builder, singles.data, _SINGLES)
        _store(builder, builder.fptrunc(values, _HALVES), halves.data)
        return context.get_dummy_value()

    given = ((singles, types.float32), (halves, types.uint16))
    return (types.void(singles, halves), generate) if _fit(given) else None


def _fit(given):  # type: ignore[no-untyped-def]
    return all(array.dtype == wanted and array.layout == "C" for array, wanted in given)


def _arrays(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    return [
        context.make_array(type_)(context, builder, value)
        for type_, value in zip(signature.args, arguments, strict=True)
    ]


def _everywhere(builder, number):  # type: ignore[no-untyped-def]
    """The number in every lane."""
    undefined = ir.Constant(_SINGLES, ir.Undefined)
    single = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))


def _load(builder, start, vector):  # type: ignore[no-untyped-def]
    """The vector whose first number is at `start`."""
    return builder.load(builder.bitcast(start, vector.as_pointer()), align=2)


def _store(builder, vector, start):  # type: ignore[no-untyped-def]
    builder.store(vector, builder.bitcast(start, vector.type.as_pointer()), align=2)
