"""Owns calls of torch on symbolic sizes that torch itself would fix or cannot run."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import EllipsisType
from typing import Any, Final

import torch
from torch import SymInt, Tensor, fx
from torch.nn import functional

from magweld.frontend.lifting.symbols import NotSymbolicError

_PLAIN: Final = (int, SymInt, slice, EllipsisType, type(None))


def is_at_place(node: fx.Node, args: Any) -> bool:
    """Whether a call of a graph reads or writes a tensor at symbolic integers.

    Args:
        node: The call.
        args: Its arguments, with fake tensors and symbolic numbers.
    """
    indexes = node.target in (operator.getitem, operator.setitem)
    if not indexes or not isinstance(args[0], Tensor):
        return False
    indices = _indices(args)
    return any(isinstance(one, SymInt) for one in indices) and all(
        isinstance(one, _PLAIN) and type(one) is not bool for one in indices
    )


def run_at_place(node: fx.Node, *args: Any) -> Any:
    """Run a call for which `is_at_place` holds.

    Tensor indexing of torch takes an integer among indices for its value. `select`
    does not: it demands that the place is in the tensor.
    """
    part = _part(args[0], _indices(args))
    if node.target is operator.getitem:
        return part
    _write(part, args[2])
    return None


def _indices(args: Any) -> tuple[Any, ...]:
    return args[1] if isinstance(args[1], tuple) else (args[1],)


def _part(tensor: Tensor, indices: tuple[Any, ...]) -> Tensor:
    """Return the view that plain indices take, one of them an integer at least."""
    named = sum(one is not None and one is not Ellipsis for one in indices)
    part, dim = tensor, 0
    for one in indices:
        if one is Ellipsis:
            dim += tensor.dim() - named
        elif one is None:
            part, dim = part.unsqueeze(dim), dim + 1
        elif isinstance(one, slice):
            part, dim = part[(slice(None),) * dim + (one,)], dim + 1
        else:
            part = torch.select(part, dim, one)
    return part


def _write(part: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        part.fill_(value)
        return
    while value.dim() > part.dim() and value.shape[0] == 1:
        value = value[0]
    part.copy_(value)


# Recurrent operators.


def _lstm(source: Any, state: Any, weights: Any, *options: Any) -> tuple[Any, ...]:
    hidden, cell = state
    output = _output(source, hidden, weights, *options)
    return output, torch.empty_like(hidden), torch.empty_like(cell)


def _rnn(source: Any, state: Any, weights: Any, *options: Any) -> tuple[Any, ...]:
    output = _output(source, state, weights, *options)
    return output, torch.empty_like(state)


def _output(
    source: Any,
    hidden: Any,
    weights: Any,
    has_biases: Any,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> Any:
    if isinstance(has_biases, (list, tuple)) or source.dim() != 3:
        raise NotSymbolicError("a packed sequence")
    first, second = source.shape[:2]
    batch, steps = (first, second) if batch_first else (second, first)
    # These become guards.
    if not (hidden.shape[1] == batch and steps > 0 and batch > 0):
        raise NotSymbolicError("sizes of a recurrent operator")
    # The last layer projects if the first state is narrower than the cell.
    width = hidden.shape[2] * (2 if bidirectional else 1)
    output = source.new_empty((steps, batch, width))
    return output.transpose(0, 1) if batch_first else output


def _lstm_cell(source: Any, state: Any, _: Any, recurrent: Any, *biases: Any) -> Any:
    hidden, cell = state
    return _next(source, hidden, recurrent), _next(source, cell, recurrent)


def _gru_cell(source: Any, state: Any, _: Any, recurrent: Any, *biases: Any) -> Any:
    return _next(source, state, recurrent)


def _next(source: Any, state: Any, recurrent: Any) -> Any:
    if source.dim() != 2 or state.dim() != 2:
        raise NotSymbolicError("a cell without a batch")
    # This becomes a guard.
    if state.shape[0] != source.shape[0]:
        raise NotSymbolicError("sizes of a recurrent cell")
    return source.new_empty((source.shape[0], recurrent.shape[1]))


# Convolutions.


def _convolution(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    steps = _spread(input, stride, padding, dilation)
    if steps is None or not _is_plain(input, weight):
        return _CONVOLUTIONS[weight.dim()](
            input, weight, bias, stride, padding, dilation, groups
        )
    _require_channels(input, weight.shape[1] * groups)
    extents = [
        (size + 2 * border - apart * (window - 1) - 1) // step + 1
        for size, window, step, border, apart in zip(
            input.shape[2:], weight.shape[2:], *steps, strict=True
        )
    ]
    return _image(input, weight.shape[0], extents)


def _transposed_convolution(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    steps = _spread(input, stride, padding, output_padding, dilation)
    if steps is None or not _is_plain(input, weight):
        return _TRANSPOSED_CONVOLUTIONS[weight.dim()](
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    _require_channels(input, weight.shape[0])
    extents = [
        (size - 1) * step - 2 * border + apart * (window - 1) + more + 1
        for size, window, step, border, more, apart in zip(
            input.shape[2:], weight.shape[2:], *steps, strict=True
        )
    ]
    return _image(input, weight.shape[1] * groups, extents)


_CONVOLUTIONS: Final = {3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}
_TRANSPOSED_CONVOLUTIONS: Final = {
    3: torch.conv_transpose1d,
    4: torch.conv_transpose2d,
    5: torch.conv_transpose3d,
}


def _is_plain(source: Any, weight: Any) -> bool:
    """Whether a convolution's result has the type of its operands, and lies as they do.

    Torch would choose what computes it, by the number of elements, to tell how the
    result lies. That choice would become a guard, although all of them give this.
    """
    if torch.is_autocast_enabled(source.device.type) or source.device.type != "cpu":
        return False
    same = source.dim() == weight.dim() and source.dtype == weight.dtype
    return bool(same and source.is_contiguous() and weight.is_contiguous())


def _spread(source: Any, *numbers: Any) -> list[tuple[int, ...]] | None:
    """Return arguments with a number for each dimension of an image; None for words."""
    count = source.dim() - 2
    found = [(n,) * count if isinstance(n, int) else n for n in numbers]
    if any(isinstance(n, str) or len(n) not in (1, count) for n in found):
        return None
    return [tuple(n) * (count // len(n)) for n in found]


def _require_channels(source: Any, channels: Any) -> None:
    # These become guards.
    if not (source.shape[1] == channels and source.shape[0] > 0):
        raise NotSymbolicError("channels of a convolution")


def _image(source: Any, channels: Any, extents: list[Any]) -> Any:
    # Torch raises for smaller ones; these become guards.
    if not all(extent > 0 for extent in extents):
        raise NotSymbolicError("sizes of a convolution")
    return source.new_empty((source.shape[0], channels, *extents))


def _pad(source: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Return a tensor of the sizes that one has with a constant around it.

    Torch takes no symbols for how many there are.
    """
    if mode != "constant" or not any(isinstance(n, SymInt) for n in pad):
        return functional.pad(source, pad, mode, value)
    # These become guards. Negative ones cut, and none at all may copy other strides.
    if not all(n >= 0 for n in pad) or not source.is_contiguous():
        raise NotSymbolicError("how much is padded")
    extents = list(source.shape)
    for number, more in enumerate(pad):
        extents[-1 - number // 2] += more
    return source.new_empty(extents)


# Numerators and denominators up to here give exact products with the extents of images.
_EXACT: Final = 1 << 20


def _interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return an image of other extents, which torch fixes or takes no symbols for."""
    if mode == "area":
        return functional.interpolate(input, size, scale_factor, mode, *args, **kwargs)
    count, given = input.dim() - 2, scale_factor if size is None else size
    extents = list(given) if isinstance(given, (tuple, list)) else [given] * count
    if size is None:
        extents = list(map(_scaled, input.shape[2:], extents))
    # These become guards.
    known = len(extents) == count and all(n > 0 for n in (*extents, *input.shape))
    if not known or not input.is_contiguous():
        raise NotSymbolicError("sizes of an image")
    return input.new_empty((*input.shape[:2], *extents))


def _scaled(extent: Any, factor: float) -> Any:
    up, down = float(factor).as_integer_ratio()
    if max(up, down) > _EXACT:
        raise NotSymbolicError("a scale that is rounded")
    return extent * up // down


def _affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    batch, _, *extents = size
    return theta.new_empty((batch, *extents, len(extents)))


def _unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    steps = _spread(input, kernel_size, dilation, padding, stride)
    if steps is None or input.dim() != 4:
        raise NotSymbolicError("windows of an image")
    columns = 1
    for size, window, apart, border, step in zip(input.shape[2:], *steps, strict=True):
        extent = (size + 2 * border - apart * (window - 1) - 1) // step + 1
        if not extent > 0:  # this becomes a guard
            raise NotSymbolicError("windows of an image")
        columns = columns * extent
    rows = input.shape[1] * math.prod(steps[0])
    return input.new_empty((input.shape[0], rows, columns))


def _counted(function: Callable[..., Any], place: int, name: str) -> Any:
    """Return a call of a function that makes so many numbers as one argument says."""

    def call(*args: Any, **kwargs: Any) -> Any:
        count = args[place] if len(args) > place else kwargs.get(name)
        if not isinstance(count, SymInt) or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        if not count > 1:  # this becomes a guard
            raise NotSymbolicError(f"{name} of {function.__name__}")
        if name in kwargs:
            kwargs[name] = 2
        else:
            args = (*args[:place], 2, *args[place + 1 :])
        return function(*args, **kwargs).new_empty((count,))

    return call


def _gradients(outputs: Any, inputs: Any, *others: Any, **named: Any) -> Any:
    """Return tensors like those that gradients are made for; all are of that form."""
    many = inputs if isinstance(inputs, tuple | list) else (inputs,)
    return tuple(one.new_empty(one.shape) for one in many)


# Operators by name; each gives its results for arguments with symbolic sizes.
ON_SYMBOLS: Final[dict[str, Callable[..., Any]]] = {
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "conv_transpose1d": _transposed_convolution,
    "conv_transpose2d": _transposed_convolution,
    "conv_transpose3d": _transposed_convolution,
    "lstm": _lstm,
    "gru": _rnn,
    "rnn_tanh": _rnn,
    "rnn_relu": _rnn,
    "lstm_cell": _lstm_cell,
    "gru_cell": _gru_cell,
    "inner_gradients": _gradients,
    "affine_grid": _affine_grid,
    "hamming_window": _counted(torch.hamming_window, 0, "window_length"),
    "hann_window": _counted(torch.hann_window, 0, "window_length"),
    "interpolate": _interpolate,
    "linspace": _counted(torch.linspace, 2, "steps"),
    "logspace": _counted(torch.logspace, 2, "steps"),
    "pad": _pad,
    "unfold": _unfold,
}
