"""Owns select-winograd: which convolutions are computed with fewer products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import (
    device_of,
    is_tile_graph,
    operators_of,
    root_operation,
)
from magweld.passes.analysis.body_forms import starts_at_zero
from magweld.passes.analysis.operator_model import operator_model
from magweld.passes.analysis.winograd import TILE
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.pads import static_pad
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.winograd_forms import (
    FORMS,
    IN_TILES,
    ROWS,
    WINDOW,
    WinogradForm,
    block_count,
    product_share,
)
from magweld.targets.device import Device

# The tile whose results are as exact as sums of products are.
EXACT_TILE = 2
# Time over that of the window above which the window is taken.
MOST_SHARE = 0.9
# Operations that take as long as transforming one weight of nine.
WEIGHT_OPERATIONS = 192


@dataclass(frozen=True)
class SelectWinograd(FunctionPass):
    """Choose the convolutions that Winograd's minimal filtering computes faster.

    A tile of 2 x 2 results of a window of 3 x 3 takes 16 products instead of 36, and
    sums that are few where there are many channels. The weights are transformed at
    every call, since nobody tells when they change: the smallest images with many
    channels are computed as they are. Written as `magweld.winograd` to the
    convolution: f32, of stride one, without groups, with a multiple of 16 channels in
    its result, on a CPU.
    """

    name: ClassVar[str] = "select-winograd"

    def run_on_function(self, function: Any) -> None:
        """Mark the convolutions of a graph."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        if device.threads > 1:
            return
        for operator in operators_of(function):
            root = root_operation(operator)
            if root.name == "linalg.conv_2d_nchw_fchw" and _is_possible(root):
                if winograd_share(operator_model(operator), device) < MOST_SHARE:
                    root.attributes[TILE] = i64(EXACT_TILE)


def _is_possible(root: Any) -> bool:
    weights = ir.RankedTensorType(root.operands[1].type)
    steps = [
        list(ir.DenseIntElementsAttr(root.attributes[name]))
        for name in ("strides", "dilations")
        if name in root.attributes
    ]
    rows, _, *window = weights.shape
    return (
        isinstance(weights.element_type, ir.F32Type)
        and window == [WINDOW, WINDOW]
        and rows % ROWS == 0
        and all(number == 1 for pair in steps for number in pair)
        and starts_at_zero(root)
        and _has_border_of_zeros(root)
    )


def _has_border_of_zeros(root: Any) -> bool:
    """Whether what is around the image, if anything is, is zero."""
    pad = static_pad(root.operands[0])
    return pad is None or constant_number(pad.fill) == 0


def winograd_share(model: OperatorModel, device: Device) -> float:
    """Return the time of a convolution by its tiles over that by its windows.

    Infinite where its operands are not as the transforms want them.
    """
    direct = model.kind is OperatorKind.CONVOLUTION and len(model.reads) == 2
    if (
        not direct
        or model.reads[1].padded
        or model.reads[1].part is not None
        or 0 in model.extents
    ):
        return float("inf")
    form = FORMS[EXACT_TILE]
    image, *rest = model.parallel
    rows, down, across = (model.extents[loop] for loop in rest)
    depth = model.extents[model.reduction[0]]
    share = product_share(form, rows, depth, (down, across))
    peak = device.peak_gflops * 1e9
    times = block_count(form, depth, (model.extents[image], down, across))
    number = rows * depth
    weights = number * WEIGHT_OPERATIONS / peak
    if times <= IN_TILES:
        weights *= times
    else:
        weights += _moving_seconds(form, number, device)
    return share + weights / (2 * model.iterations / peak)


def _moving_seconds(form: WinogradForm, number: int, device: Device) -> float:
    """Return how long it takes to move weights and what they are transformed to.

    They come from and go to the innermost level that has room for them, and come back.
    """
    window, made = (number * n * 4 for n in (WINDOW**2, form.products))
    level = next(
        level
        for level in reversed(device.levels)
        if not level.capacity or level.capacity * level.units > 2 * made
    )
    return level.transfer_seconds(window + made, made)
