"""A plan whose code kills its process costs a worker, and the contest goes on."""

from __future__ import annotations

import pytest
from llvmlite import binding

from magweld.artifact import KernelStep, LibraryStep, Place, Program, Step, Value
from magweld.runtime.worker_pool import WorkerPool
from magweld.tuning.contest import Contest, Contestant

DEADLY = """
define void @boom(i64* %table) {
  call void @llvm.trap()
  unreachable
}
declare void @llvm.trap()
"""
VALUES = (
    Value((64, 64), "f32", Place.INPUT, 0),
    Value((64, 64), "f32", Place.INPUT, 1),
    Value((64, 64), "f32", Place.OUTPUT),
)


def program(step: Step, *objects: bytes) -> Program:
    return Program(VALUES, (step,), (2,), arena_bytes=0, objects=objects)


@pytest.fixture
def deadly() -> Contestant:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(reloc="pic", codemodel="default")
    code: bytes = machine.emit_object(binding.parse_assembly(DEADLY))
    return Contestant("deadly", "", program(KernelStep("boom", (0, 1), (2,)), code))


@pytest.fixture
def usual() -> Contestant:
    return Contestant("usual", "", program(LibraryStep("matmul", (0, 1), (2,))))


def test_the_others_are_measured(usual: Contestant, deadly: Contestant) -> None:
    pool = WorkerPool(1)
    try:
        plan = Contest(pool, 1).hold([usual, deadly], 0.01, "")
        assert plan is not None
        assert list(plan.measured) == ["usual"]
    finally:
        pool.close()
