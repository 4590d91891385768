"""Owns paths: how a record reaches an external object again, in readable form."""

from __future__ import annotations

import re
import types
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.nodes import ATTRIBUTES, Edge, Kind, Node
from magweld.frontend.state.values import text_of_key

_FORMS = {
    Kind.INSTANCE_DICT: "{}.__dict__",
    Kind.CELL: "{}.cell_contents",
    Kind.CONTEXT: "{}.get()",
    Kind.LENGTH: "len({})",
    Kind.NONEMPTY: "bool({})",
    Kind.KEYS: "list({})",
    Kind.MEMBERS: "set({})",
    Kind.SELF: "{}",
    Kind.BASE: "value of {}",
    Kind.CONTENT: "content of {}",
    Kind.FORM: "form of {}",
    Kind.DATA: "tensor of {}",
    Kind.REFERENT: "referent of {}",
}

_ITERATOR_FORMS = {
    Kind.NEXT: "item {1} of {0}",
    Kind.MORE: "bool(item {1} of {0})",
    Kind.PART: "part {1} of {0}",
}

# Dicts in which a module has its parts, which programs reach as attributes.
_PARTS_OF_MODULES = ("_buffers", "_modules", "_parameters")
_MODULE = ("torch.nn.modules.module", "Module")


def identifier_of(path: str) -> str:
    """Return a path in the form of a name."""
    name = re.sub(r"\W+", "_", path).strip("_")
    return name if name and not name[0].isdigit() else f"input_{name}"


class Paths:
    """Paths of the objects of one run; the path of a container is made once."""

    def __init__(self) -> None:
        self._known: dict[Node, str] = {}
        # By id: a metaclass may hash its classes by code of the user's.
        self._modules: dict[int, bool] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._modules.clear()

    def of(self, node: Node) -> str:
        """Return the path of an external object as an expression."""
        known = self._known.get(node)
        if known is None:
            if node.edge is not None:
                known = self.describe(node.edge)
            else:
                known = node.name or _constant_name(node.obj)
            self._known[node] = known
        return known

    def describe(self, edge: Edge) -> str:
        """Return what an edge reads, as an expression."""
        container = edge.container
        owner = container.edge
        if edge.kind is Kind.ITEM and owner is not None:
            if owner.kind is Kind.INSTANCE_DICT:
                # What is not there may be found elsewhere under the same name.
                inside = (
                    f".__dict__[{text_of_key(edge.key)}]"
                    if edge.value is ABSENT
                    else ""
                )
                return f"{self.of(owner.container)}{inside or f'.{edge.key}'}"
            module = self._module_of(owner)
            if module is not None and type(edge.key) is str:
                return _member(self.of(module), edge.key)
        base = self.of(container)
        form = _FORMS.get(edge.kind)
        if form is not None:
            return form.format(base)
        if edge.kind in (Kind.ITEM, Kind.INDEX):
            names = type(container.obj) is dict and "__name__" in container.obj
            if names and not owner:
                return f"{base}.{edge.key}"
            return f"{base}[{text_of_key(edge.key)}]"
        return _describe_rare(edge, base)

    def _module_of(self, edge: Edge) -> Node | None:
        """Return the module of torch whose parts are in what a read gave, if any."""
        namespace = edge.container.edge
        if namespace is None or namespace.kind is not Kind.INSTANCE_DICT:
            return None
        if edge.key not in _PARTS_OF_MODULES:
            return None
        return namespace.container if self._is_module(namespace.container) else None

    def _is_module(self, node: Node) -> bool:
        kind = type(node.obj)
        known = self._modules.get(id(kind))
        if known is None:
            names = ((cls.__module__, cls.__qualname__) for cls in kind.__mro__)
            known = self._modules[id(kind)] = _MODULE in names
        return known


def _member(path: str, key: str) -> str:
    """Return how a program writes a part of a module: `x.weight`, `x[0]`."""
    if key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{key if key.isdecimal() else repr(key)}]"


def _describe_rare(edge: Edge, base: str) -> str:
    if edge.kind is Kind.QUERY:
        return f"{base}({', '.join(map(repr, edge.key))})"
    if edge.kind is Kind.ANSWER:
        return f"{base}.{edge.key.__name__}()"
    if edge.kind in _ITERATOR_FORMS:
        return _ITERATOR_FORMS[edge.kind].format(base, edge.key)
    if edge.kind is Kind.CLOSURE:
        return f"{base}.__closure__[{edge.key}]"
    return f"{base}.{ATTRIBUTES.get(edge.kind) or _key_name(edge.key)}"


def _key_name(key: Any) -> str:
    if type(key) is tuple and key[0] is None:
        return f"__dict__[{key[1]!r}]"
    if type(key) is tuple:
        return f"super({key[0].__name__}).{key[1]}"
    return key if type(key) is str else str(getattr(key, "__name__", key))


def _constant_name(obj: Any) -> str:
    if type(obj) is dict:
        return str(obj.get("__name__", "<dict>"))
    # Nothing else may be asked for a name: it could run code of the user's.
    return str(obj.__qualname__) if type(obj) in _NAMED else text_of_key(obj)


_NAMED: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
