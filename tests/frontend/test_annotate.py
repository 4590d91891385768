"""Annotations of users: operators, closures, inputs and outputs, scopes, errors."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
import torch

from magweld.frontend import (
    AliasOf,
    AnnotationError,
    AttributeOf,
    ElementOf,
    Input,
    Output,
    annotate,
    annotated,
    trace,
)
from magweld.frontend.annotations import user

DOCUMENT = Path(__file__).parents[2] / "docs" / "annotations.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
C_LIBRARY = ctypes.CDLL(None)
ones = torch.ones(3)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_of_the_documentation_run(example, tmp_path):
    # Functions in a file have source positions, as those of users do.
    file = tmp_path / "example.py"
    file.write_text(example)
    exec(compile(example, str(file), "exec"), {"__name__": "example"})


def opaque(x, factor=2.0):
    """Read the memory of a tensor, which a recording refuses."""
    return x * factor * (x.detach().untyped_storage().nbytes() // 4)


def uses_opaque(x):
    return opaque(x, factor=3.0) + opaque(x)


def test_without_annotation_the_call_is_a_break():
    traced = trace(uses_opaque, backend="eager")
    traced(ones)
    assert traced.stats()["records"] == 0
    assert traced.breaks


def test_operator_runs_on_hits():
    traced = trace(
        uses_opaque, backend="eager", annotations=[annotate(opaque, as_op_node=True)]
    )
    for factor in (1.0, 2.0):
        x = ones * factor
        assert torch.equal(traced(x), uses_opaque(x))
    assert traced.stats()["hits"] == 1
    names = [node.name for node in traced.records[0].graph.graph.nodes]
    assert "annotated_opaque" in names


STATE = {"scale": 2.0}


def reads_state(x):
    return x * STATE["scale"]


def test_a_backend_never_sees_the_inside_of_an_operator(monkeypatch):
    entry = annotate(reads_state, as_op_node=True)
    traced = trace(lambda x: reads_state(x) + 1.0, annotations=[entry])
    with pytest.warns(UserWarning, match="runs through torch only"):
        assert torch.equal(traced(ones), ones * 3.0)
    monkeypatch.setitem(STATE, "scale", 5.0)
    assert torch.equal(traced(ones), ones * 6.0)
    assert traced.stats()["hits"] == 1


def item(x):
    return x + 1.0, [x * 2.0, x.detach()]


def test_operator_with_several_results_and_the_name_of_a_torch_call():
    traced = trace(
        lambda x: item(x)[1][0] + item(x)[0],
        backend="eager",
        annotations=[annotate(item, as_op_node=True)],
    )
    assert torch.equal(traced(ones), ones * 4.0)
    assert torch.equal(traced(ones * 2.0), ones * 7.0)
    assert traced.stats()["hits"] == 1


class Written:
    """A buffer of the model that an annotated function writes behind torch's back."""

    def __init__(self):
        self.state = torch.zeros(3)

    def step(self, x):
        update(self.state, x)
        return self.state * 2.0


def update(state, x):
    state.numpy()[...] += x.numpy()
    return x


def test_operator_writes_in_place():
    mine, eager = Written(), Written()
    entry = annotate(update, as_op_node=True, inputs={0: Input(in_place=True)})
    traced = trace(mine.step, backend="eager", annotations=[entry])
    for factor in (1.0, 2.0, 3.0):
        assert torch.equal(traced(ones * factor), eager.step(ones * factor))
        assert torch.equal(mine.state, eager.state)
    assert traced.stats()["hits"] == 2


def test_native_function_object():
    absolute = C_LIBRARY.abs

    def program(x, k):
        return x * absolute(k)

    traced = trace(
        program, backend="eager", annotations=[annotate(absolute, pure_closure=True)]
    )
    for k in (-3, -3, 4):
        assert torch.equal(traced(ones, k), ones * abs(k))
    assert traced.stats()["hits"] == 1
    assert traced.stats()["records"] == 2


class Callback:
    """Which annotated function is called is state as well."""

    def __init__(self):
        self.function = twice

    def step(self, x):
        return x * self.function([2.0, 1.0])


def twice(values):
    return values[0] * 2.0


def thrice(values):
    return values[0] * 3.0


def test_identity_of_an_annotated_function_is_guarded():
    holder = Callback()
    entries = [annotate(f, pure_closure=True) for f in (twice, thrice)]
    traced = trace(holder.step, backend="eager", annotations=entries)
    assert torch.equal(traced(ones), ones * 4.0)
    assert torch.equal(traced(ones), ones * 4.0)
    holder.function = thrice
    assert torch.equal(traced(ones), ones * 6.0)
    assert traced.stats()["hits"] == 1


class Config:
    """Objects that annotated functions return parts of."""

    def __init__(self):
        self.scale = [2.0]
        self.parts = {"a": [3.0], "b": [4.0]}


def scale_of(config):
    return config.scale


def part_of(parts, name):
    return parts[name]


def same(config):
    return config


def program_of_parts(x, config):
    return (
        x * scale_of(config)[0]
        + part_of(config.parts, "b")[0]
        + len(same(config).parts)
    )


PARTS = (
    annotate(scale_of, output=Output(AttributeOf("config", "scale"))),
    annotate(part_of, inputs={1: Input(value_read=True)}, output=Output(ElementOf(0))),
    annotate(same, output=Output(AliasOf(0))),
)


def test_relations_lead_to_parts_that_are_guarded():
    traced = trace(program_of_parts, backend="eager", annotations=PARTS)
    config = Config()
    changes = (
        lambda: None,
        lambda: config.scale.__setitem__(0, 5.0),
        lambda: setattr(config, "scale", [6.0]),
        lambda: config.parts["b"].__setitem__(0, 7.0),
        lambda: config.parts.update(b=[8.0]),
        lambda: config.parts.update(c=[]),
    )
    for records, change in enumerate(changes):
        change()
        for _ in range(2):
            assert torch.equal(traced(ones, config), program_of_parts(ones, config))
        assert traced.stats()["hits"] >= 1
        assert records < traced.stats()["records"] + 2


def wrong(config):
    return [2.0]


def test_a_wrong_relation_is_a_break():
    entry = annotate(wrong, output=Output(AttributeOf(0, "scale")))
    traced = trace(lambda x, c: x * wrong(c)[0], backend="eager", annotations=[entry])
    assert torch.equal(traced(ones, Config()), ones * 2.0)
    assert [item.id for item in traced.breaks] == ["native-call"]


def test_tensors_have_no_value_in_a_closure():
    entry = annotate(opaque, pure_closure=True)
    traced = trace(uses_opaque, backend="eager", annotations=[entry])
    assert torch.equal(traced(ones), uses_opaque(ones))
    assert [item.id for item in traced.breaks] == ["tensor-value"]


def test_scopes():
    entry = annotate(opaque, as_op_node=True)
    with annotated(entry):
        traced = trace(uses_opaque, backend="eager")
    traced(ones)
    assert traced.stats()["records"] == 1
    other = trace(uses_opaque, backend="eager")
    other(ones)
    assert other.stats()["records"] == 0


def test_entry_points_of_libraries(tmp_path, monkeypatch):
    (tmp_path / "annotated_library.py").write_text(
        "from magweld.frontend import annotate\n"
        "def native(v):\n    return v[0] * 2.0\n"
        "ANNOTATIONS = (annotate(native, pure_closure=True),)\n"
        "BROKEN = (native,)\n"
    )
    info = tmp_path / "annotated_library-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: annotated-library\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[magweld.annotations]\n"
        "good = annotated_library:ANNOTATIONS\n"
        "bad = annotated_library:BROKEN\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    user.of_libraries.cache_clear()
    try:
        with pytest.warns(UserWarning, match="annotated_library:BROKEN"):
            found = user.of_libraries()
        assert [item.function.__name__ for item in found] == ["native"]
    finally:
        monkeypatch.undo()
        user.of_libraries.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": 3, "pure_closure": True}, "not callable"),
        ({"function": [].append, "pure_closure": True}, "bound method"),
        ({"function": Config().__init__, "pure_closure": True}, "bound method"),
        ({"function": Config, "pure_closure": True}, "class"),
        ({"as_op_node": True, "pure_closure": True}, "exclude"),
        ({"inputs": {0: "read"}}, "Input"),
        ({"inputs": {-1: Input()}}, "position"),
        ({"pure_closure": True, "inputs": {0: Input(in_place=True)}}, "nothing"),
        ({"output": "fresh"}, "Output"),
        ({"output": Output(AttributeOf(0, ""))}, "Output"),
        ({"output": Output(AliasOf(1.5))}, "position"),
        ({"as_op_node": True, "output": Output(AliasOf(0))}, "tensors"),
        ({}, "says nothing"),
    ],
)
def test_nonsense_is_one_clear_error(arguments, message):
    with pytest.raises(AnnotationError, match=message):
        annotate(**{"function": opaque, **arguments})


def test_trace_takes_annotations_only():
    with pytest.raises(TypeError, match="annotate"):
        trace(uses_opaque, annotations=[opaque])


@torch.library.custom_op("magweld_test::scale", mutates_args=())
def scale(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k


@torch.library.custom_op("magweld_test::shift", mutates_args=("x",))
def shift(x: torch.Tensor, k: float) -> None:
    x.add_(k)


LIBRARY = torch.library.Library("magweld_test", "FRAGMENT")
LIBRARY.define("both(Tensor x) -> (Tensor, Tensor)")
LIBRARY.impl("both", lambda x: (x + 1.0, x * 2.0), "CPU")
both = torch.ops.magweld_test.both


def custom(x):
    y = scale(x, 2.0)
    shift(y, 1.0)
    a, b = both(y)
    return a + b + torch.ops.aten.relu.default(x)


def test_operators_of_torch_need_no_annotation(checker):
    check = checker(custom)
    assert check(ones) == "record", check.traced.explain()
    assert check(ones * -2.0) == "hit"
