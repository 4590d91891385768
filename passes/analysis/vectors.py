"""Owns how many vectors the rows of a tile take, full or not."""

from __future__ import annotations

from magweld.passes.analysis.propagation import Group, Tiles
from magweld.passes.analysis.regions import OperatorKind
from magweld.targets.device import Device


def vector_waste(group: Group, tiles: Tiles, position: int, device: Device) -> float:
    """Return the vectors that a convolution takes over those that its rows fill.

    What is left of a row takes vectors of half the lanes, of a quarter, ..., unless
    rows are walked as one: those that follow each other in memory, and those of a
    window with what lies between them in the image.
    """
    node, box = group.nodes[position], tiles.boxes[position]
    is_image = node.kind is OperatorKind.CONVOLUTION and len(node.parallel) > 1
    if device.threads > 1 or not is_image or not node.reads or not node.reads[0].index:
        return 1.0
    if not all(interval.size for interval in box):
        return 1.0
    image, last = node.reads[0], node.reads[0].index[-1]
    down, across = node.parallel[-2:]
    rows, row = box[down].size, box[across].size
    lanes = max(1, device.vector_bits // (8 * node.writes[0].element_bytes))
    vectors = rows * _vectors(row, lanes)
    inside = group.sources[position][0].producer is not None
    terms = [t for t in last.terms if box[t[0]].size > 1] if last is not None else []
    if terms == [(across, 1)]:
        whole = inside or row == image.shape[-1]
        vectors = _vectors(rows * row, lanes) if whole else vectors
    elif (across, 1) in terms:
        pitch = image.window(box)[-1].size
        vectors = min(vectors, _vectors((rows - 1) * pitch + row, lanes))
    return vectors * lanes / (rows * row)


def _vectors(elements: int, lanes: int) -> int:
    return elements // lanes + (elements % lanes).bit_count()
