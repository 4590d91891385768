"""Owns `trace` and what it returns: traced modules and traced callables."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, Final

from torch import nn
from torch._C import _len_torch_function_stack
from torch.autograd import profiler
from torch.compiler import is_dynamo_compiling

from magweld import env
from magweld.compiler_options import parse_bytes
from magweld.frontend.annotations.user import UserAnnotation, in_force, of_libraries
from magweld.frontend.engine import Engine, watched
from magweld.frontend.left_frames import empty_frames
from magweld.frontend.records.backends import CompileGraph, resolve_backend
from magweld.frontend.records.policy import Dynamic, lifting_policy
from magweld.logs import name_of, show_logs


def trace(
    target_callable: Any,
    backend: str | CompileGraph = "magweld",
    target: str = "auto",
    dynamic: Dynamic = "auto",
    check: bool | None = None,
    annotations: Iterable[UserAnnotation] = (),
    tune: object = None,
    memory_budget: int | str | None = None,
    compile: str | None = None,
) -> Any:
    """Wrap a callable or module: calls are captured once and then answered by graphs.

    Args:
        target_callable: Function, bound method, `nn.Module` or other callable object.
        backend: "magweld", "eager" (the captured graph run by torch), a name that
            `torch.compiler.list_backends()` has, such as "inductor", or a callable
            `(gm, example_inputs) -> callable(*tensors) -> tuple of tensors`.
        target: For the "magweld" backend: "auto" for the device of the tensors, "cpu",
            or a GPU such as "nvvm:sm_90a" that they are on.
        dynamic: "auto" lifts numbers that keep changing out of the guards, False never
            does. A mapping lifts what it names from the first call on, e.g.
            `{"n": True, "self.step": True}`, and what keeps changing beside it.
        check: Whether each hit is compared with an eager run; None asks the
            environment variable `MAGWELD_CHECK`.
        annotations: What `annotate` has returned for callables that the front end
            cannot look into.
        tune: Whether the "magweld" backend chooses plans by measuring: True, a number
            of seconds for each graph, or `magweld.TuneOptions`; None asks the
            environment variable `MAGWELD_TUNE`.
        memory_budget: Bytes, e.g. "2GiB", that a compiled call may take beside its
            arguments and results; what does not fit is made tile by tile. The call
            that is monitored is an ordinary run and takes what that takes.
        compile: When the "magweld" backend compiles a graph: "background", behind the
            calls, which torch answers with the graph until the code is there
            (`wait()` waits for it); or "now", within the call that needs the code.
            None asks the environment variable `MAGWELD_COMPILE`.

    Returns:
        A callable of the same signature; for a module a module of the same class that
        shares all it holds with the original; for a class method or a static method
        one of these.

    Raises:
        ValueError: Unknown backend or value of `dynamic` or `compile`, or no size.
        TypeError: The target is not callable, or something is no annotation.
    """
    show_logs()
    options: dict[str, Any] = {
        "backend": backend,
        "target": target,
        "dynamic": dynamic,
        "check": check,
        "annotations": tuple(annotations),
        "tune": tune,
        "memory_budget": memory_budget,
        "compile": compile,
    }
    for wrapper in (classmethod, staticmethod):
        if isinstance(target_callable, wrapper):
            return wrapper(trace_with(target_callable.__func__, options))
    if not callable(target_callable):
        raise TypeError(f"expected a callable, got {type(target_callable).__name__}")
    if isinstance(target_callable, Traced):
        target_callable = target_callable._magweld_target
    lifting = lifting_policy(target_callable, dynamic)
    budget = parse_bytes(memory_budget)
    name = name_of(target_callable)
    backend_used = resolve_backend(backend, target, tune, budget, compile, name)
    items = in_force(options["annotations"])
    # Those of libraries are found again where the options are used again.
    options["annotations"] = items[len(of_libraries()) :]
    kind: type[Engine] = Engine
    if env.CHECK.get() if check is None else check:
        # Only this mode needs it, and it builds on the engine.
        from magweld.frontend.checked_engine import CheckedEngine

        kind = CheckedEngine
    engine = kind(target_callable, backend_used, lifting, items)
    return _holding(engine, options)


def trace_with(target_callable: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Trace a callable with options that are given as a dict, as pickles do."""
    return trace(target_callable, **options)


class Traced:
    """A traced program: calls go through records, all else reaches the original.

    `records`, `breaks`, `recompiles`, `stats()`, `explain()` and `wait()` are those of
    `Engine`, unless the original has attributes of these names.
    """

    __slots__ = ("_magweld_engine", "_magweld_options", "_magweld_target")

    _magweld_engine: Engine
    _magweld_options: dict[str, Any]
    _magweld_target: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer from a record whose guards hold; otherwise run, observed."""
        engine = self._magweld_engine
        is_eager = engine.is_eager
        try:
            # In this order: see `watched`.
            if (
                is_eager is not None
                and not _len_torch_function_stack()
                and not is_dynamo_compiling()
                and is_eager(args, kwargs)
            ):
                return engine.target(*args, **kwargs)
            if watched():
                return engine.call_watched(self, args, kwargs)
            if profiler._is_profiler_enabled:
                return engine.call_profiled(args, kwargs)
            return engine.call(args, kwargs)
        except BaseException as error:
            del args, kwargs
            empty_frames(error)
            raise

    def _magweld_run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, unobserved."""
        return self._magweld_target(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in Traced.__slots__:
            raise AttributeError(name)  # not filled yet
        target = self._magweld_target
        if name == "__wrapped__" and isinstance(self, TracedCallable):
            return target
        if name == "__signature__":
            return inspect.signature(target)
        try:
            return getattr(target, name)
        except AttributeError:
            if name in _OF_ENGINE:
                return getattr(self._magweld_engine, name)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._magweld_target, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._magweld_target, name)

    @property
    def __class__(self) -> Any:
        """The class of the original, for those who ask whether this is a function."""
        return type(self._magweld_target)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self._magweld_target.__class__ = cls

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._magweld_target), *_OF_ENGINE})

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Records stay behind: guards hold objects of this process.
        return trace_with, (self._magweld_target, self._magweld_options)

    def __copy__(self) -> Any:
        return trace_with(copy.copy(self._magweld_target), self._magweld_options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        target = copy.deepcopy(self._magweld_target, memo)
        return trace_with(target, self._magweld_options)


class TracedCallable(Traced):
    """A traced function, method or callable object."""

    __slots__ = ("__dict__", "__weakref__")

    def __repr__(self) -> str:
        target = self._magweld_target
        name = getattr(target, "__qualname__", type(target).__qualname__)
        return f"<traced {name}, {len(self._magweld_engine.records)} records>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance as the original does."""
        target = self._magweld_target
        bind = getattr(type(target), "__get__", None)
        if bind is None:
            return self
        bound = bind(target, instance, owner)
        if type(bound) is MethodType and bound.__func__ is target:
            return MethodType(self, bound.__self__)
        return self if bound is target else bound

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A decorated function is found under its name, and so is what it decorates.
        found: Any = sys.modules.get(self.__module__)
        path = getattr(self._magweld_target, "__qualname__", "")
        for name in path.split("."):
            found = getattr(found, name, None)
        return path if found is self else super().__reduce_ex__(protocol)


class TracedModule(Traced):
    """What a traced module adds to the class of its module.

    The instance dict is that of the original: parameters, buffers, children, hooks and
    flags are the same objects under the same names, so `state_dict`, optimisers and
    whatever walks over modules see the original's. Methods of the original that return
    `self` return the traced module.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the class out of what the original's class notes of its subclasses."""

    def _magweld_run(self, *args: Any, **kwargs: Any) -> Any:
        return super(Traced, self).__call__(*args, **kwargs)  # type: ignore[misc]

    @property
    def __class__(self) -> Any:
        """The class of the original, which lazy and parametrized modules change."""
        cls = type(self._magweld_target)
        if cls not in type(self).__bases__:
            _CLASS.__set__(self, _class_for(cls))
        return cls

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self._magweld_target.__class__ = cls
        _CLASS.__set__(self, _class_for(cls))

    def _get_name(self) -> str:
        return type(self).__name__

    def __prepare_scriptable__(self) -> Any:
        """Return what `torch.jit.script` compiles in place of this."""
        return self._magweld_target


_OF_ENGINE: Final = ("breaks", "explain", "recompiles", "records", "stats", "wait")
_CLASS: Final[Any] = object.__dict__["__class__"]


def _holding(engine: Engine, options: dict[str, Any]) -> Any:
    """Return what the user holds of a program that an engine answers for."""
    target = engine.target
    made, held = _empty(target)
    object.__setattr__(made, "__dict__", held)
    object.__setattr__(made, "_magweld_engine", engine)
    object.__setattr__(made, "_magweld_options", options)
    object.__setattr__(made, "_magweld_target", target)
    return made


def _empty(target: Any) -> tuple[Any, dict[str, Any]]:
    """Return an object that is to stand for another one, and its instance dict."""
    if isinstance(target, nn.Module):
        try:
            return object.__new__(_class_for(type(target))), target.__dict__
        except TypeError:
            pass  # its instances are laid out in a way of their own
    held = getattr(target, "__dict__", None)
    return object.__new__(_standing_for(target)), held if type(held) is dict else {}


def _standing_for(target: Any) -> type:
    """Return a class with the name, the text and the special methods of a callable."""
    cls = type(target)
    namespace: dict[str, Any] = {"__slots__": ()}
    for name in ("__annotations__", "__doc__", "__module__"):
        namespace[name] = getattr(target, name, None)
    for name in set(dir(cls)) - set(dir(TracedCallable)) - {"__class_getitem__"}:
        if name.startswith("__") and callable(getattr(cls, name, None)):
            namespace[name] = functools.partialmethod(_forward, name)
    return type(TracedCallable.__name__, (TracedCallable,), namespace)


def _forward(self: Traced, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(self._magweld_target, name)(*args, **kwargs)


def _class_for(cls: type[nn.Module]) -> type:
    """Return the class of traced modules of a class, each time the same."""
    for known in type.__subclasses__(cls):
        if TracedModule in known.__bases__:
            return known
    # What the metaclass of the original does with new classes is not done for this one.
    kind: Any = abc.ABCMeta if issubclass(type(cls), abc.ABCMeta) else type
    namespace = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__}
    made: type = kind.__new__(
        type(cls), f"Traced{cls.__name__}", (TracedModule, cls), namespace
    )
    return made
