"""Owns the reading of an operator model from the body of a tile_graph.operator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import (
    captured_values,
    element_bytes,
    parallel_extents,
    root_operation,
)
from magweld.passes.analysis.body_forms import body_form, factor_type
from magweld.passes.analysis.index_maps import linear_index, loop_extents
from magweld.passes.analysis.runtime_extents import stand_ins_of
from magweld.passes.analysis.winograd import winograd_tile
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.pads import Pad, static_pad
from magweld.passes.ir.slices import Slice, sliced_operand, static_slice
from magweld.passes.tiling.arithmetic import (
    argument_uses,
    cheap_operations,
    iteration_flops,
)
from magweld.passes.tiling.matrix_units import HALVES
from magweld.passes.tiling.regions import (
    ZERO,
    Access,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)

_MEMOIZED_MAPS = "linalg.memoized_indexing_maps"
_PRODUCTS = frozenset({OperatorKind.CONTRACTION, OperatorKind.CONVOLUTION})


# Ops without data: made again wherever they are used, they are no inputs.
REMATERIALISED = frozenset({"arith.constant", "linalg.fill", "tensor.empty"})


def is_rematerialised(value: Any) -> bool:
    """Return whether a value holds no data of its own: a constant number, a fill.

    A tensor constant that is no splat is data.
    """
    producer = defining_op(value)
    if producer is None or producer.operation.name not in REMATERIALISED:
        return False
    constant = producer.operation.name == "arith.constant"
    if not constant or not isinstance(value.type, ir.RankedTensorType):
        return True
    elements = producer.operation.attributes["value"]
    return isinstance(elements, ir.DenseElementsAttr) and bool(elements.is_splat)


def inputs_of(operator: Any) -> list[Any]:
    """Return the tensors that an operator or subgraph reads, in first use.

    Upstream clean-up may move constants, fills and empty tensors out of a region;
    they are no inputs wherever they stand.
    """
    found: dict[Any, None] = {}

    def visit(values: list[Any]) -> None:
        for value in values:
            if is_rematerialised(value):
                visit(list(value.owner.operation.operands))
            elif isinstance(value.type, ir.RankedTensorType):
                found[value] = None

    visit(captured_values(operator))
    return list(found)


def root_accesses(root: Any) -> list[Access]:
    """Return how a linalg operation accesses each of its operands, inits last.

    The argument of an access is the number of the operator's input, -1 for what is
    made inside the operator.
    """
    inputs = {value: i for i, value in enumerate(inputs_of(root.parent))}
    maps = _indexing_maps(root)
    return [
        _access(value, map_, inputs)
        for value, map_ in zip(root.operands, maps, strict=True)
    ]


def operator_model(operator: Any) -> OperatorModel:
    """Return the model of a `tile_graph.operator` operation."""
    model = _constant_model(operator)
    stand_ins = stand_ins_of(operator)
    if not stand_ins:
        return model
    extents = enumerate(model.grid_extents)
    runtime = tuple(i for i, extent in extents if stand_ins.is_runtime(extent))
    return replace(model, runtime=runtime)


def _constant_model(operator: Any) -> OperatorModel:
    """The model as if all extents were constants.

    A root whose accesses are not all sums of loops is of kind MOVE or OTHER: it is
    computed whole, so that a wrong region is never assumed.
    """
    root = root_operation(operator)
    name = ir.StringAttr(operator.attributes["op_name"]).value
    if root.name == "tensor.concat" and _is_direct(operator, root):
        return _concatenation_model(operator, name, root)
    maps = _indexing_maps(root)
    gathered = _captured_tensors(root)
    direct = set(gathered).issubset(inputs_of(operator))
    if not maps or not direct or _hides_inputs(operator, root):
        return _opaque_model(operator, name, root)
    accesses = root_accesses(root)
    inputs = len(accesses) - len(root.results)
    writes = tuple(
        Access(i, _shape(result), element_bytes(result.type), _indices(map_))
        for i, (result, map_) in enumerate(
            zip(root.results, maps[inputs:], strict=True)
        )
    )
    reads = tuple(a for a in accesses if a.argument >= 0)
    reads += _gathers(operator, gathered)
    extents = loop_extents(maps, [_shape(value) for value in root.operands])
    parallel = _parallel(writes)
    plain = all(_is_plain(map_) for map_ in maps)
    if extents is None or parallel is None or not plain:
        return _opaque_model(operator, name, root)
    if "indexing_maps" in root.attributes:
        # The dialect counts parallel dimensions by loops where an operation states
        # its maps, and by dimensions of the result where it does not.
        parallel = tuple(sorted(parallel))
    kind = _kind(root, len(extents) - len(parallel))
    elementwise = kind is OperatorKind.ELEMENTWISE
    operands = [i for i, access in enumerate(accesses) if access.argument >= 0]
    return OperatorModel(
        name=name,
        kind=kind,
        extents=extents,
        parallel=parallel,
        reads=reads,
        writes=writes,
        flops=iteration_flops(root),
        form=body_form(root),
        factors=_half_factors(root) if kind in _PRODUCTS else "",
        winograd=winograd_tile(root),
        cheap=cheap_operations(root, operands) if elementwise else (),
        reads_results=elementwise and any(argument_uses(root)[inputs:]),
    )


def _half_factors(root: Any) -> str:
    """The type of the factors of a product of halves, for which units have matrices."""
    found = factor_type(root)
    return found if found in HALVES else ""


def _indexing_maps(root: Any) -> list[Any]:
    """Return the map of each operand; none for operations that have none."""
    if not root.name.startswith("linalg."):
        return []
    if "indexing_maps" in root.attributes:
        return [attr.value for attr in ir.ArrayAttr(root.attributes["indexing_maps"])]
    maps = [attr.value for attr in linalg.get_indexing_maps(root) or ()]
    # Convolutions remember their maps in an attribute; reading must not change them.
    if _MEMOIZED_MAPS in root.attributes:
        del root.attributes[_MEMOIZED_MAPS]
    return maps


def _opaque_model(operator: Any, name: str, root: Any) -> OperatorModel:
    extents = parallel_extents(root)
    moved = static_slice(defining_op(root.results[0]))
    results = [ir.RankedTensorType(result.type) for result in operator.results]
    moves = root.name.startswith("tensor.")
    return OperatorModel(
        name=name,
        kind=OperatorKind.MOVE if moves else OperatorKind.OTHER,
        extents=extents,
        parallel=tuple(range(len(extents))),
        reads=tuple(_moved(i, v, moved) for i, v in enumerate(inputs_of(operator))),
        writes=tuple(_whole(i, type_) for i, type_ in enumerate(results)),
        flops=0,
    )


def _moved(argument: int, value: Any, slice_: Slice | None) -> Access:
    """Return how an operator reads an input that it takes whole, or a slice of."""
    access = _whole(argument, ir.RankedTensorType(value.type))
    if slice_ is None or slice_.source != value:
        return access
    return replace(access, part=slice_.sizes)


def _is_direct(operator: Any, root: Any) -> bool:
    """Whether a root reads inputs or slices of them, none of them empty."""
    inputs = set(inputs_of(operator))
    return all(
        sliced_operand(v, inputs).source in inputs and 0 not in _shape(v)
        for v in root.operands
    )


def _concatenation_model(operator: Any, name: str, root: Any) -> OperatorModel:
    """Return the model of tensors one behind the other, which a tile takes whole."""
    inputs = {value: i for i, value in enumerate(inputs_of(operator))}
    along = ir.IntegerAttr(root.attributes["dim"]).value
    shape = _shape(root.results[0])
    index = tuple(
        None if dim == along else LinearIndex(((dim, 1),)) for dim in range(len(shape))
    )
    size = element_bytes(root.results[0].type)
    return OperatorModel(
        name=name,
        kind=OperatorKind.CONCATENATION,
        extents=shape,
        parallel=tuple(range(len(shape))),
        reads=tuple(_joined_part(v, index, inputs) for v in root.operands),
        writes=(Access(0, shape, size, index),),
        flops=0,
    )


def _joined_part(
    value: Any, index: tuple[LinearIndex | None, ...], inputs: dict[Any, int]
) -> Access:
    """Return how a concatenation reads an operand, which may be a slice."""
    slice_ = sliced_operand(value, inputs)
    size = element_bytes(value.type)
    if slice_.source == value:
        return Access(inputs[value], _shape(value), size, index)
    return Access(
        inputs[slice_.source],
        _shape(slice_.source),
        size,
        _of_source(index, slice_),
        part=slice_.sizes,
        kept=slice_.kept,
        first=slice_.offsets,
    )


def _hides_inputs(operator: Any, root: Any) -> bool:
    """Whether an input reaches the root through anything but a pad or slices."""
    inputs = set(inputs_of(operator))
    known = dict.fromkeys(inputs, True)
    pads = [_pad_of(value, inputs) for value in root.operands]
    operands = [
        pad.source if pad else sliced_operand(value, inputs).source
        for pad, value in zip(pads, root.operands, strict=True)
    ]
    return any(v not in inputs and _depends_on(v, known) for v in operands)


def _depends_on(value: Any, known: dict[Any, bool]) -> bool:
    """Whether a value is made of those that are known to be, which are added to."""
    producer = defining_op(value)
    if value not in known and producer is not None:
        read = [*producer.operation.operands, *captured_values(producer)]
        known[value] = any(_depends_on(operand, known) for operand in read)
    return known.get(value, False)


def _pad_of(value: Any, inputs: Collection[Any]) -> Pad | None:
    """Return the pad of an input that an operand is, None if it is none."""
    pad = None if value in inputs else static_pad(value)
    return pad if pad and pad.source in inputs and 0 not in _shape(pad.source) else None


def _captured_tensors(root: Any) -> list[Any]:
    """The tensors that the region of `root` reads at places that no map tells."""
    captured = captured_values(root)
    return [v for v in captured if isinstance(v.type, ir.RankedTensorType)]


def _gathers(operator: Any, tensors: list[Any]) -> tuple[Access, ...]:
    numbers = {value: i for i, value in enumerate(inputs_of(operator))}
    return tuple(
        replace(_whole(numbers[value], value.type), gathered=True) for value in tensors
    )


def _whole(argument: int, type_: Any) -> Access:
    shape = tuple(type_.shape)
    return Access(argument, shape, element_bytes(type_), (None,) * len(shape))


def _access(value: Any, map_: Any, inputs: dict[Any, int]) -> Access:
    """Trace an operand of the root back to an input of the operator."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType):  # a scalar operand
        return Access(-1, (), 0, ())
    index = _indices(map_)
    pad = _pad_of(value, inputs)
    if pad is not None:
        inside = tuple(
            expr and LinearIndex(expr.terms, expr.constant - low)
            for expr, low in zip(index, pad.low, strict=True)
        )
        shape, argument = _shape(pad.source), inputs[pad.source]
        border = tuple(zip(pad.low, pad.high, strict=True))
        return Access(argument, shape, element_bytes(type_), inside, border)
    slice_ = sliced_operand(value, inputs)
    return Access(
        inputs.get(slice_.source, -1),
        _shape(slice_.source),
        element_bytes(type_),
        _of_source(index, slice_),
        part=slice_.sizes if slice_.source != value else None,
        kept=slice_.kept if slice_.source != value else None,
    )


def _indices(map_: Any) -> tuple[LinearIndex | None, ...]:
    return tuple(linear_index(expr) for expr in map_.results)


def _of_source(
    index: tuple[LinearIndex | None, ...], slice_: Slice
) -> tuple[LinearIndex | None, ...]:
    """Indices of a slice as indices of the tensor behind it."""
    of_slice = dict(zip(slice_.kept, index, strict=True))
    found = [of_slice.get(dim, ZERO) for dim in range(len(slice_.offsets))]
    return tuple(
        expr and LinearIndex(expr.terms, expr.constant + offset)
        for expr, offset in zip(found, slice_.offsets, strict=True)
    )


def _shape(value: Any) -> tuple[int, ...]:
    is_tensor = isinstance(value.type, ir.RankedTensorType)
    return tuple(value.type.shape) if is_tensor else ()


def _is_plain(map_: Any) -> bool:
    """Whether a slice of the tensor can be read by the same indices, moved to zero.

    Not where an index has a constant part, or runs against its loop.
    """
    return all(
        expr is not None and not expr.constant and all(c > 0 for _, c in expr.terms)
        for expr in _indices(map_)
    )


def _parallel(writes: Sequence[Access]) -> tuple[int, ...] | None:
    """Loops that index the results, in the order of the first one's dimensions.

    None unless every result is indexed by the same single loops, so that a tile of
    them is a tile of each result and every element is written once.
    """
    found = [_single_loops(write) for write in writes]
    first = found[0]
    if first is None or any(f is None or set(f) != set(first) for f in found):
        return None
    return first


def _single_loops(write: Access) -> tuple[int, ...] | None:
    loops: list[int] = []
    for expr, extent in zip(write.index, write.shape, strict=True):
        is_loop = expr is not None and [c for _, c in expr.terms] == [1]
        if expr is None or not (is_loop or (not expr.terms and extent == 1)):
            return None
        loops.extend(loop for loop, _ in expr.terms)
    return tuple(loops) if len(set(loops)) == len(loops) else None


def _kind(root: Any, reductions: int) -> OperatorKind:
    if linalg.isa_convolution_op(root):
        return OperatorKind.CONVOLUTION
    if linalg.isa_contraction_op(root) and reductions:
        return OperatorKind.CONTRACTION
    return OperatorKind.REDUCTION if reductions else OperatorKind.ELEMENTWISE
