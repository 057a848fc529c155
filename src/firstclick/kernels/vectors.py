"""Sums of many columns at once, in vector instructions: what Numba's loops do not reach by themselves.

Numba cannot know that two arrays do not overlap, so in a loop over short lines it tests for that, or gives
up. Here the sums stay in registers until they are complete. They are bounds: their last bits, which
differ between machines, decide nothing.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LANES = 32

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INT = ir.IntType(32)


def sum_lines(block: Any, lines: Any, weights: Any, sums: Any) -> None:
    """Set sums[m] to the sum over j of weights[j] * block[lines[j], m], for `LANES` columns m."""
    sums[:] = weights @ block[lines]


@overload(sum_lines)
def _(block, lines, weights, sums):  # type: ignore[no-untyped-def]
    return lambda block, lines, weights, sums: _sum_lines(block, lines, weights, sums)


@intrinsic
def _sum_lines(typing, block, lines, weights, sums):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        block, lines, weights, sums = (
            context.make_array(type_)(context, builder, value)
            for type_, value in zip(signature.args, arguments, strict=True)
        )
        (n_lines,) = cgutils.unpack_tuple(builder, weights.shape)
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        with cgutils.for_range(builder, n_lines) as loop:
            line = builder.load(builder.gep(lines.data, [loop.index]))
            start = builder.gep(block.data, [builder.mul(line, ir.Constant(line.type, LANES))])
            values = builder.load(builder.bitcast(start, _VECTOR.as_pointer()), align=4)
            weight = builder.load(builder.gep(weights.data, [loop.index]))
            single = builder.insert_element(undefined, weight, ir.Constant(_INT, 0))
            everywhere = builder.shuffle_vector(
                single, undefined, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
            )
            product = builder.fmul(everywhere, values, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        place = builder.bitcast(sums.data, _VECTOR.as_pointer())
        builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    single, whole = types.float32, types.int64
    if (block.dtype, lines.dtype, weights.dtype, sums.dtype) != (single, whole, single, single):
        return None
    if not all(array.layout == "C" for array in (block, lines, weights, sums)):
        return None
    return types.void(block, lines, weights, sums), generate
