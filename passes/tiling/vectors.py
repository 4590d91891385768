"""Owns the cycles of a tile beside arithmetic: vectors that are not full, panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import (
    WINDOW_LOOPS,
    Interval,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.strips import strip_vectors
from magweld.passes.tiling.winograd_forms import (
    FORMS,
    ROWS,
    product_share,
)
from magweld.targets.device import Device

Box = tuple[Interval, ...]

# Cycles to copy an element of an operand into a panel, turned or as it is, the latter
# with vectors of 512 bits: memory decides about it, so it takes as long with others.
TURN_CYCLES, COPY_CYCLES, COPY_BITS = 0.5, 0.15, 512
# What it takes in their place where rows begin anywhere in a line, so that vectors are
# of two lines each: 1024 rows of 14 x 14 pixels take a tenth of their product (Zen 4).
UNEVEN_COPY_CYCLES = 0.45
# Likewise of an image whose every second, or further, element is read: 64 windows of
# 7 x 7 over 3 x 224 x 224 pixels take 2.3 ms where a tile has all 64, 2.7 where it has
# 16 (Zen 4; 2.4 and 2.8 with AVX2).
APART_COPY_CYCLES = 0.25
# Pixels that are dot products of copied columns in any case; of more that fill no
# vector it takes many rows for that to pay.
DOT_PIXELS = 2
# What vectors along the reduction cost more, which need no panel.
ALONG_REDUCTION = 1.25
# Width of the registers that come with masks: a load or store of some lanes takes as
# long as one of all.
MASKED_BITS = 512
# Points of a window that are written out, so that its last vector of a row may be one
# that is not full; and bytes of the elements that are loaded and stored so.
MOST_POINTS, MASKED_BYTES = 64, 4
# Factors of which one instruction multiplies two pairs.
PAIRED = "bf16"


def _product_waste(node: OperatorModel, box: Box, device: Device) -> float:
    """Return the cycles of a product over those of its multiply-adds.

    Vectors run along the columns. The operand that moves with these is copied into a
    panel for every tile, which few rows do not pay for.
    """
    column = node.parallel[-1]
    panel = next((r for r in node.reads if _moves(r.index, column)), None)
    points = math.prod(interval.size for interval in box)
    if panel is None or not points:
        return 1.0
    lanes = max(1, device.vector_bits // (8 * node.writes[0].element_bytes))
    elements = math.prod(interval.size for interval in panel.window(box))
    turned = not _moves(panel.index[-1:], column) or _has_pairs(node)
    copied = TURN_CYCLES if turned else copy_cycles(device.vector_bits)
    columns = box[column].size
    high = math.prod(
        box[loop].size for loop in node.parallel if not _moves(panel.index, loop)
    )
    waste = strip_vectors(columns, high, lanes, device.vector_bits) * lanes / columns
    waste += copied * elements * lanes / points
    rows = (
        any(_moves(r.index[-1:], loop) for loop in node.reduction) for r in node.reads
    )
    return min(waste, ALONG_REDUCTION) if all(rows) else waste


def _has_pairs(node: OperatorModel) -> bool:
    """Whether the image or panel of a product is copied in pairs of neighbours.

    The products of pairs are half as many, and pairs half as many as elements.
    """
    return node.factors == PAIRED


def copy_cycles(vector_bits: int, *, even: bool = True) -> float:
    """Return what copying an element into a panel takes, in products of vectors.

    Args:
        vector_bits: Width of a vector.
        even: Whether all rows begin at the same place of a line.
    """
    cycles = COPY_CYCLES if even else UNEVEN_COPY_CYCLES
    return cycles * COPY_BITS / vector_bits


def moved_bytes(sizes: Sequence[int], element: int, device: Device) -> int:
    """Return what the rows of a box take to be moved: a core moves whole vectors.

    Args:
        sizes: Of the box.
        element: Bytes of an element.
        device: What moves them.
    """
    size = math.prod(sizes) * element
    if device.threads > 1 or not size:
        return size
    row, vector = sizes[-1] * element, device.vector_bits // 8
    return size // row * _rounded_up(row, vector)


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _moves(index: Sequence[LinearIndex | None], loop: int) -> bool:
    return any(i is not None and any(t[0] == loop for t in i.terms) for i in index)


def vector_waste(part: OperatorTile, device: Device) -> float:
    """Return the vectors that a convolution takes over those that its rows fill.

    What is left of a row takes vectors of half the lanes, of a quarter, ..., unless
    rows are walked as one: those that follow each other in memory, and those of a
    window with what lies between them in the image. With fewer products than windows
    have, it is less than one.
    """
    node, box = part.model, part.box
    if device.threads > 1:
        return 1.0
    if node.kind is OperatorKind.CONTRACTION and node.parallel:
        return _product_waste(node, box, device)
    is_image = node.kind is OperatorKind.CONVOLUTION and len(node.parallel) > 1
    if not is_image or not node.reads or not node.reads[0].index:
        return 1.0
    if not all(interval.size for interval in box):
        return 1.0
    if node.winograd:
        return _winograd_share(node, box)
    image, dim = node.reads[0], -1
    down, across = node.parallel[-2:]
    rows, row = box[down].size, box[across].size
    if image.shape[-1] == node.extents[across] == 1:
        # An image that is one column wide is one row in memory.
        dim, across, rows, row = -2, down, 1, rows
    last = image.index[dim]
    lanes = max(1, device.vector_bits // (8 * node.writes[0].element_bytes))
    vectors = rows * _row_vectors(node, box, row, lanes, device)
    inside = not part.outside[0]
    terms = [t for t in last.terms if box[t[0]].size > 1] if last is not None else []
    if terms == [(across, 1)]:
        whole = inside or row == image.shape[dim]
        vectors = (
            _flat_vectors(node, box, rows * row, lanes, device) if whole else vectors
        )
    elif (across, 1) in terms:
        pitch = image.window(box)[dim].size
        flat = (rows - 1) * pitch + row
        vectors = min(vectors, _flat_vectors(node, box, flat, lanes, device))
    waste = vectors * lanes / (rows * row)
    return waste + _panel_waste(node, box, lanes, device)


def _row_vectors(
    node: OperatorModel, box: Box, row: int, lanes: int, device: Device
) -> float:
    """Return the vectors of a row; the last one of a window may not be full."""
    points = math.prod(node.extents[loop] for loop in node.reduction)
    slides = any(i is not None and len(i.terms) > 1 for i in node.reads[0].index)
    floats = all(
        access.element_bytes == MASKED_BYTES for access in (*node.reads, *node.writes)
    )
    masked = slides and floats and points <= MOST_POINTS
    if not masked or device.vector_bits < MASKED_BITS:
        return _flat_vectors(node, box, row, lanes, device)
    return -(-row // lanes)


def _flat_vectors(
    node: OperatorModel, box: Box, columns: int, lanes: int, device: Device
) -> float:
    """Return the vectors that pixels take as columns, without masks.

    Windows of few points are written out: they have no strips of columns.
    """
    points = math.prod(node.extents[loop] for loop in node.reduction)
    slides = any(
        sum(node.extents[loop] > 1 for loop, _ in i.terms) > 1
        for i in node.reads[0].index
        if i is not None
    )
    if len(node.parallel) <= WINDOW_LOOPS or (slides and points <= MOST_POINTS):
        return _vectors(columns, lanes)
    *_, row, _, _ = node.parallel
    return strip_vectors(columns, box[row].size, lanes, device.vector_bits)


def _panel_waste(node: OperatorModel, box: Box, lanes: int, device: Device) -> float:
    """Return what copying the image takes of the multiply-adds of a convolution.

    It is copied for every tile.
    """
    if min(len(node.reduction), len(node.parallel)) <= WINDOW_LOOPS:
        return 0.0  # one dimension is slid over, or no channels are summed up
    *_, high, wide = node.reduction
    is_point = box[high].size * box[wide].size == 1
    copied = _point_copy if is_point else _window_copy
    *_, row, _, _ = node.parallel
    return copied(node, box, lanes, device) * lanes / box[row].size


def _point_copy(node: OperatorModel, box: Box, lanes: int, device: Device) -> float:
    """Return the cycles to copy an element of the image of single points.

    Where a few of its pixels fill no vector they are dot products, which read columns
    that are copied, with the panel that they are a part of. Those of bf16 are copied in
    any case: two that are multiplied with two others become neighbours.
    """
    if _has_pairs(node):
        return TURN_CYCLES
    *_, down, across = node.parallel
    pixels = box[down].size * box[across].size
    is_copied = 0 < pixels % lanes <= DOT_PIXELS
    return copy_cycles(device.vector_bits, even=False) if is_copied else 0.0


def _window_copy(node: OperatorModel, box: Box, lanes: int, device: Device) -> float:
    """Return the cycles to copy an element of what windows read.

    Those of many points read vectors of neighbours: with strides, of a copy.
    """
    points = math.prod(box[loop].size for loop in node.reduction)
    last, across = node.reads[0].index[-1], node.parallel[-1]
    apart = last is not None and any(t[0] == across and t[1] > 1 for t in last.terms)
    is_copied = apart and points > MOST_POINTS
    return APART_COPY_CYCLES * COPY_BITS / device.vector_bits if is_copied else 0.0


def _winograd_share(node: OperatorModel, box: tuple[Interval, ...]) -> float:
    """Return the arithmetic of a tile over that of the windows.

    Without whole blocks of rows of the weights, the windows are computed as they are.
    """
    *_, row, down, across = node.parallel
    rows, depth = box[row].size, box[node.reduction[0]].size
    if rows % ROWS:
        return 1.0
    form = FORMS[node.winograd]
    return product_share(form, rows, depth, (box[down].size, box[across].size))


def _vectors(elements: int, lanes: int) -> int:
    return elements // lanes + (elements % lanes).bit_count()
