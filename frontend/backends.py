"""Owns the table of backends and their resolution by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx

Compiled = Callable[..., Sequence[torch.Tensor]]
CompileGraph = Callable[[fx.GraphModule, list[torch.Tensor]], Compiled]

# Name -> "module:function"; the function takes (gm, example_inputs, target=...).
BACKENDS: Final = {"magweld": "magweld.api:compile_graph"}


@dataclass(frozen=True)
class Backend:
    """A way to run captured graphs.

    Attributes:
        name: For messages.
        compile: Turns a graph and example inputs into a callable on tensors.
        differentiates: Whether gradients flow through what it returns.
    """

    name: str
    compile: CompileGraph
    differentiates: bool


def run_eagerly(gm: fx.GraphModule, example_inputs: list[torch.Tensor]) -> Compiled:
    """Return the graph itself, run by torch."""
    compiled: Compiled = gm.forward
    return compiled


def resolve_backend(backend: str | CompileGraph, target: str) -> Backend:
    """Return the backend for a name or a callable.

    Args:
        backend: "eager", a name of `BACKENDS`, or a callable
            `(gm, example_inputs) -> callable(*tensors) -> tuple of tensors`. What it
            returns must write to its inputs as the graph does.
        target: Handed on to a named backend.

    Raises:
        ValueError: No backend has this name.
    """
    if not isinstance(backend, str):
        return Backend(getattr(backend, "__name__", "callable"), backend, True)
    if backend == "eager":
        return Backend("eager", run_eagerly, True)
    if backend not in BACKENDS:
        known = ", ".join(["eager", *BACKENDS])
        raise ValueError(f"unknown backend {backend!r}, expected one of {known}")

    def compile_graph(
        gm: fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Compiled:
        module, _, name = BACKENDS[backend].partition(":")
        function: Any = getattr(importlib.import_module(module), name)
        compiled: Compiled = function(gm, example_inputs, target=target)
        return compiled

    return Backend(backend, compile_graph, False)
