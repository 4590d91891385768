"""Pages that the compiler writes about itself: they are as it would write them now."""

from __future__ import annotations

import re
from pathlib import Path

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.phases import PHASES
from magweld.passes.infrastructure.registry import PASSES
from magweld.passes.pipelines.cpu import cpu_phase_steps
from magweld.passes.pipelines.gpu import gpu_phase_steps
from magweld.targets.target import parse_target
from magweld.tools.dialect_page import dialect_page
from magweld.tools.gen_docs import NOTICE, passes_in_order
from magweld.tools.pipeline_page import pipeline_page
from magweld.tools.refusals_page import refusals_page

ROOT = Path(__file__).parents[2]
REGENERATE = "run `python -m magweld.tools.gen_docs`"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_pipeline_page_is_up_to_date() -> None:
    assert page("pipeline.md") == pipeline_page(ROOT, NOTICE), REGENERATE


def test_the_pipeline_page_has_every_phase_of_a_cpu_and_of_an_nvidia_gpu() -> None:
    titles = re.findall(r"^## `(.+)`$", page("pipeline.md"), re.MULTILINE)
    assert titles == list(dict.fromkeys([*PHASES["cpu"], *PHASES["nvvm"]]))


def test_the_refusals_page_is_up_to_date() -> None:
    assert page("refusals.md") == refusals_page(NOTICE), REGENERATE


def test_the_pages_of_processors_name_every_pass_of_theirs() -> None:
    steps = {
        "cpu.md": cpu_phase_steps(),
        "gpu.md": gpu_phase_steps(parse_target("nvvm:sm_80")),
    }
    for name, phases in steps.items():
        steps_of = (step for way in phases.values() for step in way)
        used = {step.name for step in steps_of if isinstance(step, Pass)}
        missing = {one for one in used if f"`{one}`" not in page(name)}
        assert not missing, name


def test_the_dialect_page_is_up_to_date() -> None:
    assert page("tile_graph.md") == dialect_page(ROOT, NOTICE), REGENERATE


def test_the_example_of_an_attribute_can_be_read_alone() -> None:
    examples = re.findall(r"```mlir\n(#tile_graph.+?)\n```", page("tile_graph.md"))
    assert len(examples) == 8
    with make_context():
        for text in examples:
            assert str(ir.Attribute.parse(text)) == text


def test_the_passes_page_has_every_pass_once() -> None:
    names = [name for names in passes_in_order().values() for name in names]
    assert sorted(names) == list(PASSES.names())
