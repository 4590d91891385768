"""Owns small real kernels and programs for the tests of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from llvmlite import binding, ir
from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    KernelStep,
    LibraryStep,
    Place,
    Program,
    Step,
    Value,
)
from magweld.runtime.frame import RunExternal
from magweld.runtime.worker_pool import WorkerPool


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


@pytest.fixture(scope="session")
def no_externals() -> RunExternal:
    """Runs the external steps of a program that has none."""

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        raise AssertionError(f"no external in this program: {node}")

    return run


@pytest.fixture(scope="session")
def external_program() -> Callable[..., Program]:
    """x [4, 8] -> external "f" -> value 1; returned, or copied by external "g"."""

    def make(
        place: Place, result_shape: tuple[int, ...] = (4, 8), *, returns: bool = True
    ) -> Program:
        values = [Value((4, 8), "f32", Place.INPUT), Value(result_shape, "f32", place)]
        steps: list[Step] = [ExternalStep("f", (0,), (1,))]
        if not returns:
            values.append(Value(result_shape, "f32", Place.OUTPUT))
            steps.append(ExternalStep("g", (1,), (2,)))
        results = (len(values) - 1,)
        return Program(tuple(values), tuple(steps), results, arena_bytes=128)

    return make


@pytest.fixture(scope="session")
def matmul_program() -> Program:
    """x [4, 4] -> x @ x by the library (arena) -> external "mm" with x (output)."""
    shape = (4, 4)
    return Program(
        values=(
            Value(shape, "f32", Place.INPUT),
            Value(shape, "f32", Place.ARENA),
            Value(shape, "f32", Place.OUTPUT),
        ),
        steps=(
            LibraryStep("matmul", (0, 0), (1,)),
            ExternalStep("mm", (1, 0), (2,)),
        ),
        results=(2,),
        arena_bytes=64,
    )


@pytest.fixture(scope="session")
def make_program() -> Callable[..., Program]:
    """A program with a step and a value of each kind, for storing only."""

    def make(constant: bytes = b"\x00\xff" * 8) -> Program:
        return Program(
            values=(
                Value((2, 3), "f32", Place.INPUT),
                Value((2, 3), "f32", Place.ARENA, offset=64),
                Value((len(constant),), "ui8", Place.CONSTANT, index=0),
                Value((2, 3), "f32", Place.ADOPTED),
            ),
            steps=(
                KernelStep("kernel_0_launch", (0,), (1,)),
                LibraryStep("convolution", (0, 1), (3,), {"strides": [1, 2]}),
                ExternalStep("node", (1,), (3,)),
            ),
            results=(3, 2),
            arena_bytes=128,
            objects=(b"\x7fELF object", b""),
            constants=(constant,),
            report={"groups": [{"name": "a", "bytes": 10}]},
            scheduled="eJwDAAAAAAE=",
        )

    return make


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the module of worker tasks, importable in workers started now."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return "worker_tasks"


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    """A pool of two workers, ended with the test."""
    pool = WorkerPool(size=2)
    yield pool
    pool.close()
