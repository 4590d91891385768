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
# Kinds of calls that are told apart: of many, each call would be compared with most.
_FEW: Final = 4
_GLOBALS: Final[dict[str, Any]] = {
    "Tensor": Tensor,
    "dispatch_modes": _len_torch_dispatch_stack,
    "fx": _symbolic_trace,
    "is_tracing": _is_tracing,
    "profiler": profiler,
}
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
    if len(kinds) > _FEW:
        return None
    names, lines = Names(), ["def is_eager(args, kwargs):"]
    names.values.update(_GLOBALS)
    lines.append(f"    if {_FOLLOWED if is_module else _PROFILED}: return False")
    tests = [_Test(names, kind) for kind in kinds]
    lines.append("    try:")
    for test, left in zip(tests, kinds.values(), strict=True):
        found = test.lines(names.constant(left)) if test.is_complete else ()
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
    """The test for one kind of calls.

    Args:
        names: Gets its constants.
        kind: As `kind_of` gives it.

    Attributes:
        is_complete: Whether code can tell the kind.
    """

    def __init__(self, names: Names, kind: Kind) -> None:
        self.is_complete = True
        self._names = names
        self._count = 0
        self._named: list[str] = []
        self._conditions: list[str] = []
        for part in kind:
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
        if type(kind) is type:
            yield f"type({value}) is {self._names.constant(kind)}"
        elif type(kind) is tuple and type(kind[0]) is torch.Size:
            shape, dtype = map(self._names.constant, kind)
            yield f"type({value}) is Tensor"
            yield f"{value}.shape == {shape}"
            yield f"{value}.dtype is {dtype}"
        elif type(kind) is tuple and type(kind[0]) is type:
            cls, scalar = map(self._names.constant, kind)
            yield f"type({value}) is {cls}"
            yield f"{value} == {scalar}"

    def lines(self, left: str) -> Iterator[str]:
        """Yield the statements that answer a call of the kind.

        Args:
            left: Name of what counts its calls.
        """
        about = [f"{left}.left > 0", f"len(args) == {self._count}"]
        if self._named:
            about.append(f"(*kwargs,) == {self._names.constant(tuple(self._named))}")
        else:
            about.append("not kwargs")
        yield f"    if {' and '.join(about)}:"
        if self._count:
            yield f"        {''.join(f'a{n}, ' for n in range(self._count))}= args"
        yield f"        if {' and '.join(self._conditions) or 'True'}:"
        yield f"            {left}.left -= 1"
        yield "            return True"
