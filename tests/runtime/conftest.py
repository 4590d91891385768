"""Owns small real kernels and programs for the tests of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from llvmlite import binding, ir

from magweld.artifact import KernelStep, Place, Program, Value


@dataclass(frozen=True)
class AffineKernel:
    """`out = scale * (sum of reads) + shift`, elementwise on f32."""

    symbol: str
    reads: tuple[int, ...]
    write: int
    count: int
    scale: float = 1.0
    shift: float = 0.0

    @property
    def step(self) -> KernelStep:
        return KernelStep(self.symbol, self.reads, (self.write,))


def _emit_kernel(module: ir.Module, kernel: AffineKernel) -> None:
    i64, f32 = ir.IntType(64), ir.FloatType()
    function = ir.Function(
        module, ir.FunctionType(ir.VoidType(), [i64.as_pointer()]), kernel.symbol
    )
    entry, head, body, done = map(
        function.append_basic_block, ("entry", "head", "body", "done")
    )
    b = ir.IRBuilder(entry)

    def pointer(value_id: int) -> ir.Value:
        slot = b.gep(function.args[0], [ir.Constant(i64, value_id)])
        return b.inttoptr(b.load(slot), f32.as_pointer())

    sources, target = [pointer(i) for i in kernel.reads], pointer(kernel.write)
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(i64)
    index.add_incoming(ir.Constant(i64, 0), entry)
    b.cbranch(b.icmp_signed("<", index, ir.Constant(i64, kernel.count)), body, done)
    b.position_at_end(body)
    total = ir.Constant(f32, 0.0)
    for source in sources:
        total = b.fadd(total, b.load(b.gep(source, [index])))
    scaled = b.fmul(total, ir.Constant(f32, kernel.scale))
    b.store(b.fadd(scaled, ir.Constant(f32, kernel.shift)), b.gep(target, [index]))
    index.add_incoming(b.add(index, ir.Constant(i64, 1)), body)
    b.branch(head)
    b.position_at_end(done)
    b.ret_void()


@pytest.fixture(scope="session")
def build_object() -> Callable[[Sequence[AffineKernel]], bytes]:
    """Compile kernels into one object file of the host."""

    def build(kernels: Sequence[AffineKernel]) -> bytes:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        module = ir.Module()
        module.triple = binding.get_default_triple()
        for kernel in kernels:
            _emit_kernel(module, kernel)
        target = binding.Target.from_default_triple()
        machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
        object_code: bytes = machine.emit_object(binding.parse_assembly(str(module)))
        return object_code

    return build


@pytest.fixture(scope="session")
def affine() -> type[AffineKernel]:
    return AffineKernel


@pytest.fixture(scope="session")
def chain_program(build_object: Callable[[Sequence[AffineKernel]], bytes]) -> Program:
    """x [4, 8] -> 2 * x + 1 (arena) -> 3 * that + x (output)."""
    kernels = (
        AffineKernel("first", (0,), 1, 32, 2.0, 1.0),
        AffineKernel("triple", (1,), 2, 32, 3.0),
        AffineKernel("last", (2, 0), 3, 32),
    )
    shape = (4, 8)
    return Program(
        values=(
            Value(shape, "f32", Place.INPUT),
            Value(shape, "f32", Place.ARENA, offset=0),
            Value(shape, "f32", Place.ARENA, offset=128),
            Value(shape, "f32", Place.OUTPUT),
        ),
        steps=tuple(kernel.step for kernel in kernels),
        results=(3,),
        arena_bytes=256,
        objects=(build_object(kernels),),
        report={"groups": 3},
    )


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the module of worker tasks, importable in workers started now."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return "worker_tasks"
