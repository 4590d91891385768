"""Completeness of guards: every kind of state that a program reads, then changed."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch import nn

from magweld.frontend.guards.guard import Category
from magweld.frontend.guards.listing import _code_of
from magweld.frontend.traced import trace

SCALE = 2.0
TABLE = {"a": 1.0, "b": 2.0}


class Box:
    kind = 1.0

    def __init__(self, value=3.0):
        self.value = value
        self.inner = None

    def factor(self):
        return self.kind * 2.0

    @property
    def double(self):
        return self.value * 2.0


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


@pytest.fixture
def x():
    return torch.tensor([1.0, -2.0, 3.0])


def records_again(check, change, *args):
    """Whether a call after the change is recorded anew, and equal to eager."""
    assert check(*args) == "record", check.traced.explain()
    assert check(*args) == "hit", check.traced.explain()
    change()
    return check(*args) == "record"


def test_global(checker, monkeypatch, x):
    check = checker(lambda x: x * SCALE)
    change = lambda: monkeypatch.setitem(globals(), "SCALE", 3.0)  # noqa: E731
    assert records_again(check, change, x)


def test_global_that_hides_a_builtin(checker, monkeypatch, x):
    check = checker(lambda x: x * len([1, 2]))
    change = lambda: monkeypatch.setitem(globals(), "len", lambda _: 7)  # noqa: E731
    assert records_again(check, change, x)


def test_dict_entry_of_a_global(checker, monkeypatch, x):
    check = checker(lambda x: x * TABLE["a"])
    assert records_again(check, lambda: monkeypatch.setitem(TABLE, "a", 5.0), x)


def test_keys_of_a_dict(checker, monkeypatch, x):
    check = checker(lambda x: x * sum(TABLE.values()))
    assert records_again(check, lambda: monkeypatch.setitem(TABLE, "c", 5.0), x)


def test_absent_key(checker, x):
    table = {}
    check = checker(lambda x: x * table.get("k", 2.0))
    assert records_again(check, lambda: table.update(k=3.0), x)


def test_closure_variable(checker, x):
    factor = 2.0

    def set_factor():
        nonlocal factor
        factor = 5.0

    assert records_again(checker(lambda x: x * factor), set_factor, x)


def test_nested_attribute(checker, x):
    box = Box()
    box.inner = Box(4.0)
    check = checker(lambda x: x * box.inner.value)
    assert records_again(check, lambda: setattr(box.inner, "value", 5.0), x)


def test_replaced_nested_object(checker, x):
    box = Box()
    box.inner = Box(4.0)
    check = checker(lambda x: x * box.inner.value)
    assert records_again(check, lambda: setattr(box, "inner", Box(9.0)), x)


def test_list_length_and_elements(checker, x):
    factors = [2.0, 3.0]

    def scaled(x):
        for factor in factors:
            x = x * factor
        return x

    check = checker(scaled)
    assert records_again(check, lambda: factors.append(4.0), x)
    factors[0] = 8.0
    assert check(x) == "record"


def test_truth_of_a_container(checker, x):
    hooks = []
    check = checker(lambda x: x * 2.0 if hooks else x)
    assert records_again(check, lambda: hooks.append(1), x)


def test_class_attribute(checker, monkeypatch, x):
    box = Box()
    check = checker(lambda x: x * box.factor())
    assert records_again(check, lambda: monkeypatch.setattr(Box, "kind", 4.0), x)


def test_patched_method(checker, monkeypatch, x):
    box = Box()
    check = checker(lambda x: x * box.factor())
    change = lambda: monkeypatch.setattr(Box, "factor", lambda self: 9.0)  # noqa: E731
    assert records_again(check, change, x)


def test_instance_attribute_that_hides_a_method(checker, x):
    box = Box()
    check = checker(lambda x: x * box.factor())
    assert records_again(check, lambda: setattr(box, "factor", lambda: 7.0), x)


def test_property(checker, x):
    box = Box()
    check = checker(lambda x: x * box.double)
    assert records_again(check, lambda: setattr(box, "value", 8.0), x)


def test_changed_class_of_an_object(checker, x):
    class Other(Box):
        def factor(self):
            return 11.0

    box = Box()
    check = checker(lambda x: x * box.factor())
    assert records_again(check, lambda: setattr(box, "__class__", Other), x)


def test_slot(checker, x):
    slotted = Slotted(2.0)
    check = checker(lambda x: x * slotted.value)
    assert records_again(check, lambda: setattr(slotted, "value", 3.0), x)


def scale_by_default(x, factor=2.0, *, offset=1.0):
    return x * factor + offset


def test_replaced_code(checker, monkeypatch, x):
    check = checker(lambda x: scale_by_default(x))
    other = (lambda x, factor, *, offset: x - factor).__code__
    change = lambda: monkeypatch.setattr(scale_by_default, "__code__", other)  # noqa: E731
    assert records_again(check, change, x)


def test_replaced_defaults(checker, monkeypatch, x):
    check = checker(lambda x: scale_by_default(x))
    change = lambda: monkeypatch.setattr(scale_by_default, "__defaults__", (5.0,))  # noqa: E731
    assert records_again(check, change, x)


def test_replaced_keyword_defaults(checker, monkeypatch, x):
    check = checker(lambda x: scale_by_default(x))
    assert check(x) == "record"
    assert check(x) == "hit"
    monkeypatch.setitem(scale_by_default.__kwdefaults__, "offset", 9.0)
    assert check(x) == "record"


def test_scalar_arguments_by_type_and_value(checker, x):
    check = checker(lambda x, k: x * k)
    for value in (1, True, 1.0, 0.0, -0.0, 2):
        assert check(x, value) == "record"
        assert check(x, value) == "hit"


def test_form_of_the_call(checker, x):
    check = checker(lambda x, k=1.0: x * k)
    assert check(x) == "record"
    assert check(x, 1.0) == "record"
    assert check(x, k=1.0) == "record"
    assert check(x=x) == "record"
    assert check(x, k=1.0) == "hit"


def test_lambda_argument_is_known_by_its_code(checker, x):
    check = checker(lambda x, f: f(x))
    factor = 2.0
    functions = [lambda t: t * factor for _ in range(2)]
    assert check(x, functions[0]) == "record"
    assert check(x, functions[1]) == "hit"
    assert check(x, lambda t: t * factor) == "record"


def test_partial_argument(checker, x):
    check = checker(lambda x, f: f(x))
    assert check(x, functools.partial(torch.mul, other=2.0)) == "record"
    assert check(x, functools.partial(torch.mul, other=2.0)) == "hit"
    assert check(x, functools.partial(torch.mul, other=3.0)) == "record"


def test_alias_of_two_inputs(checker, x):
    check = checker(lambda x, y: x if x is y else x + y)
    y = x.clone()
    assert check(x, y) == "record"
    assert check(x, x) == "record"
    assert check(y, x) == "hit"
    assert check(y, y) == "hit"


def test_two_lists_that_become_one(x):
    def grow(a, b):
        a.append(1.0)
        return len(b)

    traced = trace(grow, backend="eager")
    assert traced([], []) == 0
    assert traced([], []) == 0
    both = []
    assert traced(both, both) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.double(),
        lambda x: x[:2].clone(),
        lambda x: torch.stack([x, x], 1)[:, 0],
        lambda x: x.clone().requires_grad_(),
        lambda x: x.view(1, 3),
        lambda x: nn.Parameter(x.clone()),
    ],
    ids=["dtype", "shape", "stride", "requires_grad", "rank", "class"],
)
def test_tensor_properties(checker, x, change):
    check = checker(lambda x: x * 2.0)
    assert check(x) == "record"
    assert check(x + 1.0) == "hit"
    assert check(change(x)) == "record"


def test_conjugate_bit(checker):
    check = checker(lambda x: x * 2.0)
    x = torch.tensor([1 + 2j])
    assert check(x) == "record"
    assert check(x.conj()) == "record"


def test_grad_mode(checker, x):
    check = checker(lambda x: x * 2.0)
    assert check(x) == "record"
    with torch.no_grad():
        assert check(x) == "record"
        assert check(x) == "hit"


def test_default_dtype(checker):
    check = checker(lambda n: torch.ones(n))
    assert check(2) == "record"
    try:
        torch.set_default_dtype(torch.float64)
        assert check(2) == "record"
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast(checker):
    check = checker(lambda a: a @ a)
    a = torch.ones(2, 2)
    assert check(a) == "record"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert check(a) == "record"
    assert check(a) == "hit"


def test_inference_mode(checker, x):
    check = checker(lambda x: x * 2.0)
    assert check(x) == "record"
    with torch.inference_mode():
        assert check(x) == "record"


@pytest.mark.parametrize(
    ("switch", "back"),
    [
        (torch.set_default_dtype, (torch.float64, torch.float32)),
        (torch.use_deterministic_algorithms, (True, False)),
        (torch.set_anomaly_enabled, (True, False)),
        (torch.set_grad_enabled, (False, True)),
        (functools.partial(torch.set_autocast_enabled, "cpu"), (True, False)),
        (functools.partial(torch.set_autocast_enabled, "cuda"), (True, False)),
        (
            functools.partial(torch.set_autocast_dtype, "cpu"),
            (torch.float16, torch.get_autocast_dtype("cpu")),
        ),
        (
            functools.partial(torch.set_autocast_dtype, "cuda"),
            (torch.bfloat16, torch.get_autocast_dtype("cuda")),
        ),
    ],
)
def test_modes_of_torch_after_hits(checker, x, switch, back):
    check = checker(lambda x: x * 2.0)
    assert [check(x) for _ in range(4)] == ["record", "hit", "hit", "hit"]
    on, off = back
    try:
        switch(on)
        assert check(x) == "record"
        assert check(x) == "hit"
    finally:
        switch(off)
    assert check(x) == "hit"


def test_a_number_of_threads_is_no_mode(checker, x):
    check = checker(lambda x: x * 2.0)
    assert [check(x) for _ in range(3)] == ["record", "hit", "hit"]
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert [check(x), check(x)] == ["hit", "hit"]
    finally:
        torch.set_num_threads(threads)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).eval()


def test_train_and_eval(checker, x):
    model = network()
    check = checker(model)
    assert check(x) == "record"
    assert check(x) == "hit"
    model.train()
    traced = check.traced
    torch.manual_seed(1)
    mine = traced(x)
    torch.manual_seed(1)
    assert torch.equal(mine, model(x))
    torch.manual_seed(2)
    mine = traced(x)
    assert traced.stats()["hits"] == 2
    torch.manual_seed(2)
    assert torch.equal(mine, model(x))
    model.eval()
    assert check(x) == "hit"


def test_added_hook(checker, x):
    model = network()
    check = checker(model)
    hook = lambda module, args, result: result * 2.0  # noqa: E731
    change = lambda: model[0].register_forward_hook(hook)  # noqa: E731
    assert records_again(check, change, x)


def test_added_global_hook(checker, x):
    model = network()
    check = checker(model)
    hook = lambda module, args, result: result * 2.0  # noqa: E731
    assert check(x) == "record"
    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        assert check(x) == "record"
    finally:
        handle.remove()
    assert check(x) == "hit"


def test_replaced_parameter_is_read_anew(checker, x):
    model = network()
    check = checker(model)
    assert check(x) == "record"
    model[0].weight = nn.Parameter(torch.ones(4, 3))
    assert check(x) == "hit"
    model[0].weight = nn.Parameter(torch.ones(4, 3), requires_grad=False)
    assert check(x) == "record"


def test_parameter_updated_in_place(checker, x):
    model = network()
    check = checker(model)
    assert check(x) == "record"
    with torch.no_grad():
        model[0].weight.mul_(3.0)
    assert check(x) == "hit"
    model[0].weight.data = torch.ones(4, 3)
    assert check(x) == "hit"


def test_replaced_module(checker, x):
    model = network()
    check = checker(model)
    assert check(x) == "record"
    model[1] = nn.ReLU()
    assert check(x) == "record"
    model[1] = nn.Dropout(0.5).eval()
    assert check(x) == "hit"


def test_patched_forward_of_an_instance(checker, x):
    model = network()
    check = checker(model)
    original = model[0].forward
    change = lambda: setattr(model[0], "forward", lambda t: original(t) + 1.0)  # noqa: E731
    assert records_again(check, change, x)


def test_attribute_of_a_tensor(checker, x):
    check = checker(lambda x: x * x.scale)
    x.scale = 3.0
    assert check(x) == "record"
    assert check(x) == "hit"
    x.scale = 5.0
    assert check(x) == "record"


def test_identity_of_arguments(checker, x):
    check = checker(lambda a, b: 1.0 if a is b else 2.0)
    box = Box()
    assert check(box, Box()) == "record"
    assert check(box, box) == "record"
    assert check(Box(), Box()) == "hit"


def test_predicate_on_an_input(checker):
    def branch(x, mask):
        return x * 2.0 if mask.all() else x * mask

    check = checker(branch)
    x = torch.tensor([1.0, 2.0])
    full, half = torch.tensor([True, True]), torch.tensor([True, False])
    assert check(x, full) == "record"
    assert check(x + 1.0, full) == "hit"
    assert check(x, half) == "record"
    assert check(x, ~half) == "hit"
    assert check(x, full) == "hit"
    kinds = [g.category for r in check.traced.records for g in r.guards]
    assert "predicate" in kinds


def test_overlap_of_a_written_input():
    def write(a, b):
        a.mul_(2.0)
        return b + 0.0

    traced = trace(write, backend="eager")
    a, b = torch.ones(2), torch.ones(2)
    traced(a, b)
    assert traced.stats()["graphs"] == 1
    base = torch.ones(2)
    assert torch.equal(traced(base, base[:]), torch.tensor([2.0, 2.0]))
    assert traced.stats() == {**traced.stats(), "hits": 0, "graphs": 2}


def test_numpy_state_is_read_at_every_call(checker):
    values = np.array([1.0, 2.0])
    check = checker(lambda x: x * torch.from_numpy(values))
    x = torch.ones(2, dtype=torch.float64)
    assert check(x) == "record"
    for value in (7.0, 8.0, 9.0):
        assert check(x) == "hit"
        values[0] = value


def test_explain_names_the_class_lookup_that_failed(monkeypatch, x):
    box = Box()
    traced = trace(lambda x: x * box.factor(), backend="eager")
    traced(x)
    monkeypatch.setattr(Box, "kind", 4.0)
    traced(x)
    assert "last miss: Box.kind: expected is 1.0" in traced.explain()


def test_explain_names_the_tensor_that_failed(x):
    traced = trace(lambda x, y: x * y, backend="eager")
    traced(x, x + 1.0)
    traced(x, torch.ones(3, dtype=torch.float64))
    assert "args[1]" in traced.explain().partition("last miss")[2]
    assert "dtype" in traced.explain().partition("last miss")[2]


def test_records_with_one_text_have_guards_of_their_own(x):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    traced = trace(lambda x: model(x) * SCALE, backend="eager", dynamic=False)
    compiled = _code_of.cache_info().misses
    for rows in (2, 3, 4):
        traced(torch.ones(rows, 3))
    programs = [record.program for record in traced.records]
    assert len({program.text for program in programs}) == 1
    # One function for what is read, and one for the rest.
    assert _code_of.cache_info().misses == compiled + 2
    # The interpreter keeps what it learns of a function in its code object.
    parts = [cell.cell_contents for p in programs for cell in p.run.__closure__]
    assert len({id(part.__code__) for part in parts}) == 6
    assert len({id(part.__globals__) for part in parts}) == 3
    for rows in (4, 2, 3, 2):
        y = torch.randn(rows, 3)
        for _ in range(3):
            assert torch.equal(traced(y), model(y) * SCALE)
    assert traced.stats()["misses"] == 3
    failures = [program.check((torch.ones(5, 3),), {}) for program in programs]
    assert len({failure.number for failure in failures}) == 1
    (number,) = {failure.number for failure in failures}
    assert programs[0].guards[number].category is Category.TENSOR


def test_explain_tells_calls_that_no_record_was_made_of(x):
    def program(x, end):
        if end:
            raise KeyError("end")
        return x * 2

    traced = trace(program, backend="eager")
    traced(x, False)
    with pytest.raises(KeyError, match="end"):
        traced(x, True)
    text = traced.explain(recompiles=True)
    assert "call 2 ran without a record" in text
    assert "recorded anew" not in text


def test_explain_names_the_guard_that_failed(x):
    box = Box()
    traced = trace(lambda x: x * box.value, backend="eager")
    traced(x)
    box.value = 9.0
    traced(x)
    text = traced.explain()
    assert "last miss" in text
    assert "value: expected == 3.0, found 9.0" in text
    assert __file__ in text


def test_explain_lists_every_recompile(x):
    box = Box()
    traced = trace(lambda x: x * box.value, backend="eager")
    for value in (1.0, 2.0, 5.0):
        box.value = value
        traced(x)
    text = traced.explain(recompiles=True)
    assert "call 2 was recorded anew, as record 1" in text
    assert "call 3 was recorded anew, as record 2" in text
    for record, old in ((0, 1.0), (1, 2.0)):
        assert f"  record {record}: " in text
        assert f".value: expected == {old}, found 5.0" in text
    where = text.partition("found 5.0")[2].splitlines()[0]
    assert f"{__file__}:" in where


def test_explain_asks_no_object_for_its_name(x):
    class Nameless:
        def __getattr__(self, name):
            raise RuntimeError("asked")

    box = Box(Nameless())
    traced = trace(lambda x: x * (1.0 if box.value is None else 2.0), backend="eager")
    traced(x)
    box.value = Box()
    traced(x)
    assert "found an object of Box" in traced.explain(recompiles=True)


PROGRAMS_OF_FLAGS = {  # the name of a native setter, and a program that asks
    "_set_mkldnn_enabled": lambda x: x * 2 if torch._C._get_mkldnn_enabled() else x,
    "_set_cudnn_enabled": lambda x: x * 2 if torch._C._get_cudnn_enabled() else x,
}


@pytest.mark.parametrize("name", PROGRAMS_OF_FLAGS)
def test_process_wide_flags_are_guarded(name, x):
    program = PROGRAMS_OF_FLAGS[name]
    setter = getattr(torch._C, name)
    traced = trace(program, backend="eager")
    traced(x)
    assert torch.equal(traced(x), x * 2)
    setter(False)
    try:
        assert torch.equal(traced(x), x)
    finally:
        setter(True)
    assert torch.equal(traced(x), x * 2)
    assert traced.stats() == {**traced.stats(), "hits": 2, "records": 2}


def captures() -> bool:
    """Ask as transformers does: a build with CUDA raises where there is no driver."""
    try:
        return torch.cuda.is_current_stream_capturing()
    except RuntimeError:
        return False


QUESTIONS = {  # a program on a build with CUDA asks these natively as well
    "device": lambda x: x.to("cuda" if torch.cuda.is_available() else "cpu") * 2,
    "accelerator": lambda x: x * 2 if torch.accelerator.current_accelerator() else x,
    "capture": lambda x: x if captures() else x * 2,
    "threads": lambda x: x * torch.get_num_threads(),
    "precision": lambda x: x * len(torch.get_float32_matmul_precision()),
    "capability": lambda x: x * len(torch.backends.cpu.get_cpu_capability()),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_the_process_are_part_of_a_graph(name, x):
    program = QUESTIONS[name]
    traced = trace(program, backend="eager")
    for _ in range(2):
        assert torch.equal(traced(x), program(x))
    assert traced.stats() == {**traced.stats(), "hits": 1, "breaks": 0}


def test_answers_about_the_process_may_change(x):
    traced = trace(QUESTIONS["precision"], backend="eager")
    assert torch.equal(traced(x), x * len("highest"))
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.equal(traced(x), x * len("high"))
    finally:
        torch.set_float32_matmul_precision("highest")
    assert torch.equal(traced(x), x * len("highest"))


def test_an_operator_that_torch_looks_up_first(x):
    # Before it shows it to a mode, which has to be there still.
    vars(torch.ops.aten).pop("is_vulkan_available", None)
    traced = trace(lambda x: x if torch.is_vulkan_available() else x * 2)
    assert torch.equal(traced(x), x * 2)


def test_classes_of_a_handler(checker, x):
    handled = {"errors": (ValueError, KeyError)}

    def program(x):
        try:
            raise KeyError("k")
        except handled["errors"]:
            return x * 2.0
        except LookupError:
            return x * 3.0

    change = lambda: handled.update(errors=(ValueError, TypeError))  # noqa: E731
    assert records_again(checker(program), change, x)


class Tower(torch.nn.Module):
    """Modules in modules, a buffer, and an attribute that looks like theirs."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3)])
        self.heads = torch.nn.ModuleDict({"a b": torch.nn.Linear(3, 3)})
        self.register_buffer("scale", torch.ones(()))
        self.box = Registry()

    def forward(self, x):
        y = self.heads["a b"](self.layers[0](x)) * self.scale
        return y * self.box._modules["factor"]


class Registry:
    """No module, but it has a dict of the same name."""

    def __init__(self):
        self._modules = {"factor": 2.0}


def test_parts_of_modules_are_named_as_programs_write_them():
    traced = trace(Tower(), backend="eager")
    traced(torch.ones(3))
    (record,) = traced.records
    assert {
        "self.layers[0].weight",
        "self.layers[0].bias",
        "self.heads['a b'].weight",
        "self.scale",
    } < set(record.input_paths)
    paths = {(guard.path, guard.expected) for guard in record.guards}
    assert ("self.box._modules['factor']", "== 2.0") in paths
    # What its own dict does not have is not what the module has.
    assert ("self.__dict__['scale']", "absent") in paths
    names = [node.name for node in record.graph.graph.nodes]
    assert "self_layers_0_weight" in names


def test_a_number_of_an_inner_module_is_lifted_by_that_name():
    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 3

        def forward(self, x):
            return x * self.step

    module = torch.nn.Sequential(Inner())
    traced = trace(module, backend="eager", dynamic={"self[0].step": True})
    assert torch.equal(traced(torch.ones(2)), torch.full((2,), 3.0))
    module[0].step = 5
    assert torch.equal(traced(torch.ones(2)), torch.full((2,), 5.0))
    assert traced.stats()["records"] == 1


def test_a_record_for_all_sizes_has_the_code_of_the_first_for_its_reads():
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(4))).eval()
    traced = trace(model, backend="eager")
    with torch.no_grad():
        traced(torch.ones(2, 3))
        compiled = _code_of.cache_info().misses
        for rows in range(3, 9):
            traced(torch.ones(rows, 3))
            traced.wait()
        first, last = (record.program for record in traced.records[::-1])
        assert first.text != last.text
        reads = [p.run.__closure__[0].cell_contents.__code__ for p in (first, last)]
        assert reads[0].co_code == reads[1].co_code
        model[2].weight = nn.Parameter(torch.ones(3, 3, dtype=torch.float64))
        failure = last.check_all((torch.ones(3, 3),), {})
        model[2] = nn.ReLU()
        other = last.check_all((torch.ones(3, 3),), {})
    assert last.guards[failure.number].category is Category.TENSOR
    assert last.guards[other.number].category is Category.TYPE
    assert _code_of.cache_info().misses <= compiled + 3
