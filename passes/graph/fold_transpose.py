"""Owns the pass that folds transposes into the matrix products that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from magweld.bindings import ir, linalg
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.linalg_builder import map_array

MatmulLike: TypeAlias = linalg.MatmulOp | linalg.BatchMatmulOp

_OWN_ATTRIBUTES = frozenset({"indexing_maps", "operandSegmentSizes", "cast"})


def fold_into_matmul(op: MatmulLike, rewriter: Any) -> bool:
    """Read the sources of transposed operands through permuted indexing maps."""
    if not op.results:
        return False  # on buffers nothing says that the source is unchanged
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.indexing_maps]
    inputs = list(op.inputs)
    for number, value in enumerate(inputs):
        transpose = _foldable_transpose(value, maps[number])
        if transpose is not None:
            inputs[number] = transpose.input
            maps[number] = _through(maps[number], transpose.permutation)
    if inputs == list(op.inputs):
        return False
    folded = type(op)(
        [op.results[0].type],
        inputs,
        list(op.outputs),
        indexing_maps=map_array(maps),
        cast=op.cast if "cast" in op.attributes else None,
    )
    linalg.fill_builtin_region(folded.operation)
    _copy_markers(op, folded)
    rewriter.replace_op(op.operation, folded.operation)
    return True


def _copy_markers(source: MatmulLike, target: MatmulLike) -> None:
    """Carry over the attributes that are not the operation's own."""
    for name in source.attributes:
        if name not in target.attributes and name not in _OWN_ATTRIBUTES:
            target.attributes[name] = source.attributes[name]


def _foldable_transpose(
    value: ir.Value, indexing_map: ir.AffineMap
) -> linalg.TransposeOp | None:
    owner = value.owner
    transpose = owner.opview if isinstance(owner, ir.Operation) else owner
    if not isinstance(transpose, linalg.TransposeOp):
        return None
    # The verifier takes no permuted map of a broadcast operand (one of lower rank)...
    if len(indexing_map.results) != indexing_map.n_dims - 1:
        return None
    # ... and only maps whose batch dimension comes first.
    batch_dimensions = len(transpose.permutation) - 2
    if list(transpose.permutation)[:batch_dimensions] != list(range(batch_dimensions)):
        return None
    return transpose


def _through(indexing_map: ir.AffineMap, permutation: Sequence[int]) -> ir.AffineMap:
    # transposed[i] has the extent of source[permutation[i]].
    results = list(indexing_map.results)
    permuted = [results[0]] * len(results)
    for position, source_dimension in enumerate(permutation):
        permuted[source_dimension] = results[position]
    return ir.AffineMap.get(indexing_map.n_dims, 0, permuted)


@dataclass(frozen=True)
class FoldTranspose(PatternPass):
    """Fold `linalg.transpose` into the matrix products that read it.

    ```mlir
    %t = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%e) permutation = [1, 0]
    %r = linalg.matmul ins(%a, %t : ...) outs(%c : ...)
    ```
    becomes
    ```mlir
    %r = linalg.matmul indexing_maps = [..., affine_map<(m, n, k) -> (n, k)>, ...]
         ins(%a, %b : ...) outs(%c : ...)
    ```
    A transpose with other readers stays for them. A permutation that moves the batch
    dimension of `linalg.batch_matmul` is left alone, and so are operands that the
    product broadcasts.
    """

    name: ClassVar[str] = "fold-transpose"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return one pattern for each kind of product."""
        return (
            (linalg.MatmulOp, fold_into_matmul),
            (linalg.BatchMatmulOp, fold_into_matmul),
        )
