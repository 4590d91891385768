"""Pages that the compiler writes about itself: they are as it would write them now."""

from __future__ import annotations

import re
from pathlib import Path

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.infrastructure.phases import PHASES
from magweld.passes.infrastructure.registry import PASSES
from magweld.tools.dialect_page import dialect_page
from magweld.tools.gen_docs import NOTICE, passes_in_order
from magweld.tools.pipeline_page import pipeline_page

ROOT = Path(__file__).parents[2]
REGENERATE = "run `python -m magweld.tools.gen_docs`"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_pipeline_page_is_up_to_date() -> None:
    assert page("pipeline.md") == pipeline_page(ROOT, NOTICE), REGENERATE


def test_the_pipeline_page_has_every_phase_of_a_cpu_and_of_an_nvidia_gpu() -> None:
    titles = re.findall(r"^## `(.+)`$", page("pipeline.md"), re.MULTILINE)
    assert titles == list(dict.fromkeys([*PHASES["cpu"], *PHASES["nvvm"]]))


def test_the_dialect_page_is_up_to_date() -> None:
    assert page("tile_graph.md") == dialect_page(ROOT, NOTICE), REGENERATE


def test_the_example_of_an_attribute_can_be_read_alone() -> None:
    examples = re.findall(r"```mlir\n(#tile_graph.+?)\n```", page("tile_graph.md"))
    assert len(examples) == 7
    with make_context():
        for text in examples:
            assert str(ir.Attribute.parse(text)) == text


def test_the_passes_page_has_every_pass_once() -> None:
    names = [name for names in passes_in_order().values() for name in names]
    assert sorted(names) == list(PASSES.names())
