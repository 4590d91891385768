"""The rules that annotations of users stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import torch

from magweld.frontend.annotations.user import (
    AliasOf,
    AttributeOf,
    ElementOf,
    Input,
    Output,
    UserAnnotation,
)
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.attributes import namespace_of
from magweld.frontend.state.contents import (
    CONTAINERS,
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_item,
)
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.natives import check_buffer_write, is_buffer
from magweld.frontend.state.values import is_identity, is_scalar

_PASSED_ON: Final = Input()
_READ: Final = Input(value_read=True)


def user_entries(
    annotations: Iterable[UserAnnotation],
) -> Entries:
    """Return annotations of users as entries of an annotation table."""
    return tuple((item.function, UserRule(item)) for item in annotations)


class UserOperator:
    """An annotated callable as the target of a node; its name is no torch function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        name = getattr(function, "__name__", type(function).__name__)
        self.__name__ = "annotated_" + "".join(c if c.isalnum() else "_" for c in name)
        self.__qualname__ = self.__name__
        self.__module__ = __name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the callable.

        Raises:
            RuntimeError: It is being traced: what it does must not become a part of
                compiled code, nobody guards what it reads.
        """
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError(f"{self.__name__} runs through torch only")
        return self.function(*args, **kwargs)


@dataclass(frozen=True)
class UserRule:
    """Records one call as an annotation tells it.

    Attributes:
        annotation: The annotation.
    """

    annotation: UserAnnotation

    def __call__(self, observer: Observer, call: NativeCall) -> None:
        note = self.annotation
        if note.as_op_node:
            self._record_operator(observer, call)
            return
        for argument, use in self._uses(call):
            self._use(observer, argument, use)
        # What it calls in Python is not part of the program.
        observer.session.opaque_caller = observer
        observer.after = self._result_rule(call)

    def _uses(self, call: NativeCall) -> list[tuple[Any, Input]]:
        inputs = self.annotation.inputs
        strict = self.annotation.pure_closure or self.annotation.as_op_node
        default = _READ if strict else _PASSED_ON
        given: list[tuple[int | str, Any]]
        given = [*enumerate(call.args), *call.kwargs.items()]
        uses = [(value, inputs.get(key, default)) for key, value in given]
        if len(call.args) > 0 and any(type(key) is str for key in inputs):
            named = zip(_parameters(self.annotation.function), call.args, strict=False)
            for index, (name, value) in enumerate(named):
                if name in inputs:
                    uses[index] = (value, inputs[name])
        return uses

    def _use(self, observer: Observer, argument: Any, use: Input) -> None:
        graph = observer.session.graph
        tensor = observer.session.operators.is_tensor(type(argument))
        if tensor and (use.in_place or use.value_read):
            # Only an operator of the graph sees the tensors of a hit.
            raise StopRecordingError("tensor-value", "argument of an annotated call")
        if use.value_read:
            read_value(observer, argument)
        if not use.in_place or is_scalar(argument):
            return
        if is_buffer(argument):
            check_buffer_write(graph, argument)
        elif builtin_base(argument) is not None:
            before_write(graph, argument, Extent.WHOLE)
        else:
            namespace = namespace_of(graph, argument)
            if namespace is None:
                kind = type(argument).__qualname__
                raise StopRecordingError("native-call", f"a change of {kind}")
            before_write(graph, namespace.obj, Extent.WHOLE)

    def _record_operator(self, observer: Observer, call: NativeCall) -> None:
        layer = observer.session.operators
        written = []
        for argument, use in self._uses(call):
            _check_tensors(observer, argument)
            if use.in_place:
                if not layer.is_tensor(type(argument)):
                    raise StopRecordingError("native-call", f"{call.name}: no tensor")
                written.append(argument)
        operator = UserOperator(self.annotation.function)
        record_operator(observer, call.name, operator, call.args, call.kwargs)
        layer.note_written(written)

    def _result_rule(self, call: NativeCall) -> Callable[[Observer, list[Any]], None]:
        output = self.annotation.output
        pure = self.annotation.pure_closure

        def check(observer: Observer, stack: list[Any]) -> None:
            if output is not None:
                _relate(observer, output, self._argument(call, output), stack[-1])
            elif pure or observer.session.graph.find(stack[-1]) is None:
                _adopt_result(observer, stack[-1])

        return check

    def _argument(self, call: NativeCall, output: Output) -> Any:
        key = output.relation.argument
        if key in call.kwargs:
            return call.kwargs[str(key)]
        names = _parameters(self.annotation.function)
        index = names.index(key) if key in names else key
        if type(index) is not int or index >= len(call.args):
            raise StopRecordingError("native-call", f"{call.name}: no argument {key}")
        return call.args[index]


def _parameters(function: Any) -> list[str]:
    code = getattr(function, "__code__", None)
    return [] if code is None else list(code.co_varnames[: code.co_argcount])


def _check_tensors(observer: Observer, argument: Any) -> None:
    """Refuse what a graph cannot hold; containers hold tensors and values only."""
    if type(argument) in CONTAINERS:
        for item in elements(argument):
            _check_tensors(observer, item)
    elif not observer.session.operators.is_tensor(type(argument)):
        read_value(observer, argument)


def _relate(observer: Observer, output: Output, argument: Any, result: Any) -> None:
    found = _RELATIONS[type(output.relation)](observer, output.relation, argument)
    if not is_scalar(result) and not any(item is result for item in found):
        raise StopRecordingError("native-call", "its result has another origin")
    if output.in_place:
        if builtin_base(result) is None:
            raise StopRecordingError("native-call", "a change of its result")
        before_write(observer.session.graph, result, Extent.WHOLE)


def _argument_itself(observer: Observer, relation: Any, argument: Any) -> list[Any]:
    return [argument]


def _elements(observer: Observer, relation: Any, argument: Any) -> list[Any]:
    if builtin_base(argument) is None:
        raise StopRecordingError("native-call", "the argument is no container")
    read_all(observer.session.graph, argument)
    return elements(argument)


def _attribute(observer: Observer, relation: AttributeOf, argument: Any) -> list[Any]:
    namespace = namespace_of(observer.session.graph, argument)
    if namespace is None:
        raise StopRecordingError("native-call", "the argument has no instance dict")
    read_item(observer.session.graph, namespace.obj, relation.name)
    return [namespace.obj.get(relation.name, ABSENT)]


_RELATIONS: Final[dict[type, Callable[[Observer, Any, Any], list[Any]]]] = {
    AliasOf: _argument_itself,
    ElementOf: _elements,
    AttributeOf: _attribute,
}


def _adopt_result(observer: Observer, result: Any) -> None:
    """Take a result for new; it must be a value that a record can hold."""
    if observer.session.operators.is_tensor(type(result)):
        raise StopRecordingError("tensor-value", "result of an annotated call")
    observer.session.graph.adopt(result)
    if type(result) in CONTAINERS:
        for item in elements(result):
            if not is_scalar(item) and not is_identity(item):
                _adopt_result(observer, item)
