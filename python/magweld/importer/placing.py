"""Owns the import of a graph for another device than that of its example inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch import fx
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.meta_utils import MetaConverter
from torch.utils import _pytree as pytree

from magweld.storages import storage_of

CPU: Final = torch.device("cpu")


def tensors_without_data(
    mode: FakeTensorMode, tensors: Sequence[torch.Tensor], device: torch.device | None
) -> list[torch.Tensor]:
    """Return tensors on a device, of the given forms, each in memory of its own.

    Which of the given ones share memory may be another in each call, so a view of one
    must not be taken for a view of another: see `planning`.

    Args:
        mode: What they are made in.
        tensors: Tensors of the device, or of the CPU.
        device: Where they are to be; it need not be there. None for where they are.
    """
    convert: Any = MetaConverter()
    met: set[int] = set()
    found: list[torch.Tensor] = []
    for tensor in tensors:
        place, storage = device or tensor.device, storage_of(tensor)
        if storage in met:
            found.append(FakeTensor(mode, _alone(tensor), place))
        elif tensor.device == place:
            found.append(mode.from_tensor(tensor, static_shapes=True))
        else:
            found.append(FakeTensor(mode, convert(tensor.detach()), place))
        met.add(storage)
    return found


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same form in memory of its own, without data."""
    size = tensor.untyped_storage().nbytes()
    place = (tensor.storage_offset(), tensor.shape, tensor.stride())
    with torch.no_grad(), torch.inference_mode(False):
        memory = torch.empty(size, dtype=torch.uint8, device="meta")
        alone: torch.Tensor = torch.empty((), dtype=tensor.dtype, device="meta")
        alone.set_(memory.untyped_storage(), *place)
    return alone.requires_grad_(tensor.requires_grad)


def stand_ins(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return tensors like the given ones, in memory of their own that nobody writes.

    They share memory as the given ones do. What is not plain stands for itself, and so
    does everything where a mode would see new tensors.
    """
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return list(tensors)
    memory: dict[int, torch.Tensor] = {}

    def stand_in(tensor: torch.Tensor) -> torch.Tensor:
        if type(tensor) is not torch.Tensor or not _is_plain(tensor):
            return tensor
        storage = tensor.untyped_storage()
        owner = memory.get(storage._cdata)
        if owner is None:
            owner = torch.empty(
                storage.nbytes(), dtype=torch.uint8, device=tensor.device
            )
            memory[storage._cdata] = owner
        like: torch.Tensor = torch.empty((), dtype=tensor.dtype, device=tensor.device)
        like.set_(
            owner.untyped_storage(),
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
        )
        return like

    with torch.no_grad(), torch.inference_mode(False):
        return [stand_in(tensor) for tensor in tensors]


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether elements in memory are all that a tensor is."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_conj()
        and not tensor.is_neg()
        and tensor.is_cpu
    )


def placed_graph(
    graph: fx.GraphModule, source: torch.device, device: torch.device
) -> fx.GraphModule:
    """Return a graph whose operators name one device where they named another."""
    if source == device:
        return graph

    def moved(value: Any) -> Any:
        named = isinstance(value, torch.device) and value.type == source.type
        return device if named else value

    copy = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        copies[node] = copy.node_copy(node, copies.__getitem__)
        arguments = pytree.tree_map(moved, (copies[node].args, copies[node].kwargs))
        copies[node].args, copies[node].kwargs = arguments
        if copies[node].kwargs.get("device") == source.type:
            copies[node].update_kwarg("device", device)
    return fx.GraphModule(graph, copy)


def made_on(
    source: torch.device, device: torch.device
) -> AbstractContextManager[object]:
    """Return a context in which tensors are made on another device by default."""
    return nullcontext() if source == device else device
