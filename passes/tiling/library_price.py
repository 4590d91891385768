"""Owns what a library of a GPU takes for a product or a convolution.

Results and traffic are those of the operator; how fast a library is, devices state.
"""

from __future__ import annotations

import math

from magweld.passes.tiling.cost import OVERLAP_LOSS
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.targets.device import CONVOLUTION, Device

# Results for each unit of which a call takes twice as long as its rate says: fewer
# leave units idle, and each result begins and ends. On an H100 4096 x 4096 x 4096 of
# f32 runs at 52 TFLOP/s, 512 x 3072 x 768 at 37 (11900 results) and 512 x 768 x 3072 at
# 19 (2979); 1576 x 384 x 1536 of bf16 takes 7.0 us, by this 6.1.
RAMP = 5000
# By how much products of halves are slower whose rows in memory are no multiples of 16
# bytes: 65536 x 256 x 319 of bf16 runs at 189 TFLOP/s, 4096 x 4096 x 4096 at 803.
UNALIGNED = 4
_ALIGNED_BYTES, _HALF_BYTES = 16, 2
# Windows are computed on images whose channels are innermost: the image and the weights
# are copied so first.
_COPIES = 2


def library_seconds(
    node: OperatorModel, operation: str, operand: str, device: Device
) -> float | None:
    """Return the time of a call for an operator, None where none is worth a thought.

    That is arithmetic at the rate of the library, moving each tensor once beside it,
    and a launch; of windows the change of layout as well.

    Args:
        node: The operator.
        operation: One of `LIBRARY_OPERATIONS`, as which the call computes it.
        operand: Element type of the factors and of the result.
        device: What runs it.
    """
    rate = device.library_rate(operation, operand)
    results = math.prod(node.extents[loop] for loop in node.parallel)
    if rate is None or not results or not _sums_channels(node):
        return None
    arithmetic = 2 * node.iterations / (rate * 1e9)
    arithmetic *= 1 + RAMP * device.units / results
    if not _is_aligned(node, operation):
        arithmetic *= UNALIGNED
    bandwidth = device.levels[0].bandwidth * 1e9
    read = sum(access.total_bytes for access in node.reads)
    moved = read + results * node.reads[0].element_bytes
    launches = 1
    if node.kind is OperatorKind.CONVOLUTION:
        launches, moved = launches + _COPIES, moved + 2 * read
    times = arithmetic, moved / bandwidth
    busy = max(times) + OVERLAP_LOSS * min(times)
    return launches * device.launch_seconds + busy


def _sums_channels(node: OperatorModel) -> bool:
    """Whether it is more than windows of each channel or of each group by itself."""
    if node.kind is OperatorKind.CONTRACTION:
        return True
    windows = {
        loop
        for read in node.reads
        for index in read.index
        if index is not None and len(index.terms) > 1
        for loop, _ in index.terms
    }
    # A sum of images, channels and two sides: a loop more counts groups.
    own = [loop for loop in node.parallel if loop not in windows]
    return len(own) == 2 and any(loop not in windows for loop in node.reduction)


def _is_aligned(node: OperatorModel, operation: str) -> bool:
    """Whether rows of factors begin where the widest loads may.

    Those of windows are copied anyway; pixels of single points are one row.
    """
    if node.kind is OperatorKind.CONVOLUTION:
        return True
    first = 2 if operation == CONVOLUTION else -1
    sizes = (
        math.prod(read.shape[first:] or read.shape[-1:]) * read.element_bytes
        for read in node.reads
        if read.element_bytes == _HALF_BYTES and read.shape
    )
    return all(size % _ALIGNED_BYTES == 0 for size in sizes)
