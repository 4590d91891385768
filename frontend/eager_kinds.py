"""Owns code that tells whether a call is of a kind that runs eagerly for now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import torch
from torch import Tensor
from torch._C import _is_tracing, _len_torch_dispatch_stack
from torch.autograd import profiler
from torch.fx import _symbolic_trace

from magweld.frontend.guards.emit import Names
from magweld.frontend.guards.guard import FILENAME

Kind = tuple[Any, ...]
# Whether a call runs eagerly; if so, it is counted down.
IsEager = Callable[[tuple[Any, ...], dict[str, Any]], bool]
# Kinds of calls that are told apart by more than the sizes of their tensors: of many,
# each call would be compared with most.
_FEW: Final = 4
_GLOBALS: Final[dict[str, Any]] = {
    "Tensor": Tensor,
    "dispatch_modes": _len_torch_dispatch_stack,
    "fx": _symbolic_trace,
    "is_tracing": _is_tracing,
    "profiler": profiler,
}
# Classes of a metaclass that are no program's own.
TENSORS: Final = (Tensor, torch.nn.Parameter)
# Whoever calls has asked for modes of functions, and for Dynamo. To other modes and
# tracers an eager run shows the program, but not the place of a module among others.
_PROFILED: Final = "profiler._is_profiler_enabled"
_FOLLOWED: Final = (
    f"{_PROFILED} or dispatch_modes() or is_tracing() or fx._is_fx_tracing_flag"
)


class Left(Protocol):
    """What counts the calls of a kind.

    Attributes:
        left: How many calls of it still run eagerly.
    """

    left: int


def eager_kinds(kinds: Mapping[Kind, Left], is_module: bool) -> IsEager | None:
    """Return what tells whether a call is of one of some kinds.

    It does what a search by `kind_of` does, as code that makes no objects but the sizes
    of tensors: such calls wait for it, and a run of a small program takes little more.
    It only decides who runs the program: a kind that it does not know costs time.

    Args:
        kinds: As `kind_of` gives them, each with what counts its calls.
        is_module: Whether the program is a module.

    Returns:
        None if there are too many kinds, or none that code can tell.
    """
    alike: dict[Kind, dict[Kind, Left]] = {}
    for kind, left in kinds.items():
        alike.setdefault(_without_sizes(kind), {})[kind] = left
    if len(alike) > _FEW:
        return None
    names, lines = Names(), ["def is_eager(args, kwargs):"]
    names.values.update(_GLOBALS)
    lines.append(f"    if {_FOLLOWED if is_module else _PROFILED}: return False")
    tests = [_Test(names, group) for group in alike.values()]
    lines.append("    try:")
    for test in tests:
        found = test.lines() if test.is_complete else ()
        lines += [f"    {line}" for line in found]
    # Nested tensors have no sizes.
    lines += [
        "        return False",
        "    except RuntimeError:",
        "        return False",
    ]
    exec(compile("\n".join(lines), FILENAME, "exec"), names.values)
    made: IsEager = names.values["is_eager"]
    return made if any(test.is_complete for test in tests) else None


class _Test:
    """The test for kinds of calls that differ in nothing but sizes of tensors.

    Args:
        names: Gets its constants.
        kinds: As `kind_of` gives them, each with what counts its calls.

    Attributes:
        is_complete: Whether code can tell them.
    """

    def __init__(self, names: Names, kinds: Mapping[Kind, Left]) -> None:
        self.is_complete = True
        self._names = names
        self._count = 0
        self._named: list[str] = []
        self._conditions: list[str] = []
        self._sized: list[str] = []
        self._lefts = {_sizes_in(kind): left for kind, left in kinds.items()}
        for part in next(iter(kinds)):
            if type(part) is tuple and type(part[0]) is str:
                name, (of_value,) = part
                self._named.append(name)
                value = f"kwargs[{name!r}]"
            else:
                of_value, value = part, f"a{self._count}"
                self._count += 1
            conditions = list(self._of_value(value, of_value))
            self.is_complete &= bool(conditions)
            self._conditions += conditions

    def _of_value(self, value: str, kind: Any) -> Iterator[str]:
        """Yield the conditions of one value; none if code cannot tell them."""
        if type(kind) is type or any(kind is cls for cls in TENSORS):
            yield f"type({value}) is {self._names.constant(kind)}"
        elif type(kind) is tuple and type(kind[0]) is torch.Size:
            shape, dtype = map(self._names.constant, kind)
            yield f"type({value}) is Tensor"
            if len(self._lefts) == 1:
                yield f"{value}.shape == {shape}"
            yield f"{value}.dtype is {dtype}"
            self._sized.append(value)
        elif type(kind) is tuple and type(kind[0]) is type:
            cls, scalar = map(self._names.constant, kind)
            yield f"type({value}) is {cls}"
            yield f"{value} == {scalar}"

    def lines(self) -> Iterator[str]:
        """Yield the statements that answer a call of these kinds."""
        about = [f"len(args) == {self._count}"]
        left = ""
        if len(self._lefts) == 1:
            left = self._names.constant(next(iter(self._lefts.values())))
            about.insert(0, f"{left}.left > 0")
        if self._named:
            about.append(f"(*kwargs,) == {self._names.constant(tuple(self._named))}")
        else:
            about.append("not kwargs")
        yield f"    if {' and '.join(about)}:"
        if self._count:
            yield f"        {''.join(f'a{n}, ' for n in range(self._count))}= args"
        yield f"        if {' and '.join(self._conditions) or 'True'}:"
        if left:
            yield f"            {left}.left -= 1"
            yield "            return True"
            return
        sizes = "".join(f"{value}.shape, " for value in self._sized)
        yield f"            left = {self._names.constant(self._lefts)}.get(({sizes}))"
        yield "            if left is not None and left.left > 0:"
        yield "                left.left -= 1"
        yield "                return True"


def _without_sizes(kind: Kind) -> Kind:
    """Return a kind of calls without the sizes of its tensors."""
    found: list[Any] = []
    for part in kind:
        if type(part) is tuple and type(part[0]) is torch.Size:
            found.append((torch.Size, part[1]))
        elif type(part) is tuple and type(part[0]) is str:
            found.append((part[0], _without_sizes(part[1])))
        else:
            found.append(part)
    return tuple(found)


def _sizes_in(kind: Kind) -> tuple[torch.Size, ...]:
    """Return the sizes of the tensors of calls of a kind, in order."""
    found: list[torch.Size] = []
    for part in kind:
        if type(part) is tuple and type(part[0]) is torch.Size:
            found.append(part[0])
        elif type(part) is tuple and type(part[0]) is str:
            found += _sizes_in(part[1])
    return tuple(found)
