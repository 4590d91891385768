"""Owns the walk over modules that asks nothing of the program's classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn


def named_modules(root: object) -> Iterator[tuple[nn.Module, str]]:
    """Yield a module and those below it with names, as `nn.Module.named_modules` does.

    What is no module, or in no plain dict, is left out.
    """
    seen: set[int] = set()
    waiting: list[tuple[Any, str]] = [(root, "")]
    while waiting:
        module, name = waiting.pop()
        if id(module) in seen or not issubclass(type(module), nn.Module):
            continue
        seen.add(id(module))
        yield module, name
        children = object.__getattribute__(module, "__dict__").get("_modules")
        if type(children) is dict:
            below = f"{name}." if name else ""
            waiting += [
                (one, f"{below}{key}") for key, one in [*children.items()][::-1]
            ]
