"""The generated code of records as text: guards, effects, and going on at breaks."""

from __future__ import annotations

import os
import random
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace

NAMES = ("guards", "side_effects", "resume")


class Counting(nn.Module):
    """Writes to an attribute, a list and a class, prints, and returns new objects."""

    total = 0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0
        self.log: list[Any] = []

    def forward(self, x: Tensor, factor: float = 2.0) -> dict[str, Any]:
        self.calls += 1  # the attribute
        hidden = self.linear(x) * factor  # the product
        self.log.append(hidden)  # the list
        Counting.total = 5  # the class
        print("seen", end="!")  # the text
        return {"hidden": [hidden], "sum": hidden.sum()}  # the sum


def source(program: Any, name: str, *inputs: Any) -> str:
    """Return a source of the first record of a program."""
    fast = trace(program, backend="eager")
    with torch.no_grad():
        fast(*inputs)
    text = fast.records[-1].source(name)
    assert isinstance(text, str)
    return text


def behind(text: str, comment: str) -> str:
    """Return the line that follows the user's line with a comment."""
    lines = [line.strip() for line in text.splitlines()]
    (number,) = (n for n, line in enumerate(lines) if line.endswith(f"# {comment}"))
    return lines[number + 1]


def test_effects_stand_behind_the_lines_that_had_them() -> None:
    text = source(Counting(), "side_effects", torch.ones(2, 4))
    assert behind(text, "the attribute") == (
        "dict.__setitem__(self.__dict__, 'calls', 1)"
    )
    assert behind(text, "the list") == "list.extend(self.log, [outputs[0]])"
    assert behind(text, "the class") == ("set_class_attribute(Counting, 'total', 5)")
    assert behind(text, "the text") == "print_text('seen', '!')"
    assert "# outputs[0] is mul" in text
    assert behind(text, "the product") == "# outputs[1] is sum_1"
    assert re.search(r"made_\d = list\(", text)
    assert re.search(r"extend_dict\(made_\d, \['hidden', made_\d, 'sum', out", text)
    assert re.search(r"\n    return made_\d$", text)
    assert re.search(rf"# {re.escape(__file__)}:\d+: self\.calls \+= 1", text)


def test_each_guard_is_there_with_its_condition_and_line() -> None:
    fast = trace(Counting(), backend="eager")
    with torch.no_grad():
        fast(torch.ones(2, 4), 3.0)
    (record,) = fast.records
    text = record.source("guards")
    for guard in record.guards:
        assert f"# {guard.category}: {guard.path} {guard.expected}\n" in text
    line = next(n for n in text.splitlines() if n.endswith("# the product"))
    assert re.match(rf"    # {re.escape(__file__)}:\d+: hidden = self", line)
    # Conditions are statements, with the names of constants.
    assert "if not type(v0) is Tensor:" in text
    assert re.search(r"assert .*Linear", text)


def test_an_effect_of_a_lifted_number_shows_its_expression() -> None:
    module = Counting()
    fast = trace(module, backend="eager")
    with torch.no_grad():
        for _ in range(4):
            fast(torch.ones(2, 4))
    text = fast.records[0].source("side_effects")
    call = behind(text, "the attribute")
    assert call.startswith("dict.__setitem__(self.__dict__, 'calls', ")
    assert "calls + 1" in call or "self.calls" in call


class Slotted:
    """An object whose attribute is a slot."""

    __slots__ = ("value",)


def test_writes_to_slots_name_the_slot() -> None:
    obj = Slotted()
    obj.value = 1

    def program(x: Tensor) -> Tensor:
        obj.value = 7  # the slot
        return x + 1

    text = source(program, "side_effects", torch.ones(2))
    assert behind(text, "the slot").startswith("Slotted.value.__set__(")


def test_numbers_that_are_drawn_again_are_guards_without_code() -> None:
    def program(x: Tensor) -> Tensor:
        return x * random.randint(1, 3)

    text = source(program, "guards", torch.ones(2))
    assert "random number gives" in text


def looped(x: Tensor) -> Tensor:
    with torch.no_grad():
        x = x * 2
    for _ in range(2):
        x = x - 1
        os.getpid()  # the break
        x = x + 1  # behind
    return x.sin()


def test_what_resumes_a_program_shows_the_instruction_and_the_stop() -> None:
    fast = trace(looped, backend="eager")
    fast(torch.ones(3))
    ends = [r for r in fast.records if r.ends is not None]
    assert len(ends) == 2
    for record in ends:
        text = record.source("resume")
        where = record.ends.where
        assert text.startswith(f"# The program is left before {where}.")
        assert "os.getpid()  # the break" in text
        assert "CALL" in text
        assert "(stops here)" in text
        assert text.index("put in place") < text.index("the break")
        assert text.index("(stops here)") < text.index("is packed")
        assert "x = x - 1" not in text


def outer(x: Tensor, log: list[Tensor]) -> Tensor:
    log.append(inner(x))  # the call
    return x + 1


def inner(x: Tensor) -> Tensor:
    x = x * 3
    os.getpid()  # the break
    return x


def test_all_frames_are_shown_the_outermost_first() -> None:
    fast = trace(outer, backend="eager")
    fast(torch.ones(2), [])
    first = next(r for r in fast.records if r.ends is not None)
    text = first.source("resume")
    assert text.index("def outer(") < text.index("def inner(")
    assert text.index("# the call") < text.index("# the break")
    assert " is the frame inside" in text


def test_the_end_of_a_program_is_not_resumed() -> None:
    text = source(Counting(), "resume", torch.ones(2, 4))
    assert text == ("# The record leads to the end of the program: nothing is resumed.")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'guard'; known: guards, side_eff.*, resume"):
        source(Counting(), "guard", torch.ones(2, 4))


def test_texts_change_nothing() -> None:
    fast = trace(Counting(), backend="eager", dynamic=False)
    with torch.no_grad():
        fast(torch.ones(2, 4))
        (record,) = fast.records
        before = [record.source(name) for name in NAMES]
        fast(torch.ones(2, 4))
        assert [record.source(name) for name in NAMES] == before


@pytest.mark.parametrize("name", NAMES)
def test_every_record_of_a_program_with_many_parts_has_every_source(name: str) -> None:
    fast = trace(looped, backend="eager")
    for size in (2, 3, 4, 5):
        fast(torch.ones(size))
    assert len(fast.records) > 3
    for record in fast.records:
        assert record.source(name)
