"""Owns traced modules: modules that share all they hold with the module they trace."""

from __future__ import annotations

import abc
import copy
import types
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from magweld.frontend.catalogue import Break
    from magweld.frontend.record import Record
    from magweld.frontend.traced import Traced


class TracedModule:
    """What a traced module adds to the class of its module.

    The instance dict is that of the original: parameters, buffers, children, hooks and
    flags are the same objects under the same names, so `state_dict`, optimisers and
    whatever walks over modules see the original's. Methods of the original that return
    `self` return the traced module. Only a call goes through records.
    """

    __slots__ = ("_magweld_engine", "_magweld_target")

    _magweld_engine: Traced
    _magweld_target: nn.Module

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the class out of what the original's class notes of its subclasses."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer from a record whose guards hold; otherwise run, observed."""
        return self._magweld_engine(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._magweld_target, name)

    @property
    def records(self) -> list[Record]:
        """See `Traced.records`."""
        found: list[Record] = self._magweld_engine.records
        return found

    @property
    def breaks(self) -> list[Break]:
        """See `Traced.breaks`."""
        found: list[Break] = self._magweld_engine.breaks
        return found

    def stats(self) -> dict[str, Any]:
        """See `Traced.stats`."""
        found: dict[str, Any] = self._magweld_engine.stats()
        return found

    def explain(self, recompiles: bool = False) -> str:
        """See `Traced.explain`."""
        text: str = self._magweld_engine.explain(recompiles)
        return text

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._magweld_engine.__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self._magweld_engine.again(copy.copy(self._magweld_target))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._magweld_engine.again(copy.deepcopy(self._magweld_target, memo))


def traced_module(module: nn.Module, engine: Traced) -> Any:
    """Return a module that shares all that another one holds, and calls an engine.

    Args:
        module: The original.
        engine: The traced callable of it.

    Returns:
        An instance of the original's class where that can have subclasses, else of
        `nn.Module`; the engine itself for modules that are not objects of Python.
    """
    if isinstance(module, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        return engine
    made: Any = object.__new__(_class_for(type(module)))
    object.__setattr__(made, "__dict__", module.__dict__)
    object.__setattr__(made, "_magweld_target", module)
    object.__setattr__(made, "_magweld_engine", engine)
    return made


def _class_for(cls: type[nn.Module]) -> type:
    """Return the class of traced modules of a class, each time the same."""
    if type(cls) not in (type, abc.ABCMeta):
        cls = nn.Module  # another metaclass may do anything with a new class
    for known in cls.__subclasses__():
        if TracedModule in known.__bases__:
            return known

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(__slots__=(), __module__=cls.__module__, __doc__=cls.__doc__)

    try:
        return types.new_class(f"Traced{cls.__name__}", (TracedModule, cls), {}, fill)
    except TypeError:
        # Its instances are laid out in a way of their own.
        return _class_for(nn.Module)
