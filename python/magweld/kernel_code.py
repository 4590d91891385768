"""Owns the way from tiled kernels to object code, in one process or in several."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from magweld import env
from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.joint_launch import JointLaunch
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.codegen.llvm_text import kernel_signatures
from magweld.forked_work import run_forked
from magweld.host_function import HostCall, HostFunction
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.infrastructure.execution import RunOptions, run_pipeline
from magweld.passes.pipelines.cpu import cpu_pipeline
from magweld.passes.plan.launch_costs import PARALLEL_BYTES
from magweld.runtime.container import decode_parts, encode_parts
from magweld.targets import device


@dataclass(frozen=True)
class PlannedLaunch:
    """A launch of a kernel that is not compiled yet.

    Attributes:
        symbol: Name of the launch function.
        kernel: Name of the kernel.
        entries: For each pointer of the kernel, its index in the table; those of one
            member after another.
        parallel: Whether the tiles are worth sharing out among threads.
        members: How many times the kernel runs.
        words: Index in the table of the words of a kernel with an extent that a call
            tells, -1 for others.
        shifts: For each entry at which byte of it the kernel begins; none for zeros.
        share: Of a part of a joint launch, as of `Launch`; 0 for others.
    """

    symbol: str
    kernel: str
    entries: tuple[int, ...]
    parallel: bool
    members: int = 1
    words: int = -1
    shifts: tuple[int, ...] = ()
    share: int = 0


@dataclass(frozen=True)
class PlannedLaunches:
    """The launches of a program.

    Attributes:
        kernels: Those of one kernel, and the parts of the others.
        joint: Those of several.
    """

    kernels: tuple[PlannedLaunch, ...] = ()
    joint: tuple[JointLaunch, ...] = ()


@dataclass(frozen=True)
class KernelCode:
    """Object code, and the most bytes that a launch of it allocates."""

    objects: tuple[bytes, ...] = ()
    scratch: int = 0


# For each thread that may run a launch at one time, the bytes that it allocates.
_Scratch = dict[str, list[int]]


def launches_of(hosts: Mapping[str, HostFunction]) -> PlannedLaunches:
    """Return the launches of host functions, by their names."""
    numbers: Counter[str] = Counter()
    kernels: list[PlannedLaunch] = []
    joint: list[JointLaunch] = []
    for name, host in hosts.items():
        for call in (call for call in host.calls if call.kind == "kernel"):
            symbol = launch_symbol(name, numbers[name])
            numbers[name] += 1
            if call.parts:
                parts = list(_parts_of(call, symbol))
                kernels += parts
                named = tuple((part.symbol, part.share) for part in parts)
                joint.append(JointLaunch(symbol, named))
                continue
            moved = sum(host.bytes_of(value) for value in set(call.entries()))
            kernels.append(_launch(call, symbol, moved >= PARALLEL_BYTES))
    return PlannedLaunches(tuple(kernels), tuple(joint))


def _parts_of(call: HostCall, symbol: str) -> Iterator[PlannedLaunch]:
    """Yield what runs the parts of a joint launch."""
    for number, (part, share) in enumerate(zip(call.parts, call.shares, strict=True)):
        yield _launch(part, f"{symbol}_part_{number}", True, share)


def _launch(
    call: HostCall, symbol: str, parallel: bool, share: int = 0
) -> PlannedLaunch:
    return PlannedLaunch(
        *(symbol, call.callee, call.entries(), parallel, call.members),
        words=call.words,
        shifts=call.entry_shifts(),
        share=share,
    )


def launch_symbol(function: str, number: int) -> str:
    """Return the name of a launch function, by the host function that calls it."""
    prefix = "" if function == "main" else f"{function}_"
    return f"{prefix}launch_{number}"


def compile_launches(
    module: Any, launches: PlannedLaunches, level: str = "", most: int = 1
) -> KernelCode:
    """Compile the kernels of a module for CPUs of a level; the module is changed.

    Args:
        module: The tiled kernels.
        launches: What starts them.
        level: As of `CompileOptions`.
        most: How many processes may do so, this one and forks of it; each makes an
            object of its own. Those of joint launches are in the first one.

    Raises:
        MagweldError: They cannot be compiled.
    """
    parts, units = _split(module, launches.kernels, most), device("cpu").units
    if len(parts) < 2:
        objects, scratch = _compile_here(module, launches, level)
        return KernelCode(objects, most_scratch(scratch, launches.joint, units))
    text = module.operation.get_asm(enable_debug_info=False)

    def compile_part(names: set[str]) -> bytes:
        wanted = tuple(one for one in launches.kernels if one.kernel in names)
        joint = launches.joint if names is parts[0] else ()
        own = PlannedLaunches(wanted, joint)
        objects, scratch = _compile_here(ir.Module.parse(text), own, level)
        return encode_parts([json.dumps(scratch).encode(), *objects])

    made = run_forked([partial(compile_part, names) for names in parts])
    answers = [decode_parts(answer) for answer in made]
    found: _Scratch = {}
    for told, *_ in answers:
        found.update(json.loads(told))
    return KernelCode(
        objects=tuple(code for _, *objects in answers for code in objects),
        scratch=most_scratch(found, launches.joint, units),
    )


def lower_kernels(
    module: Any, target: HostTarget, options: RunOptions
) -> dict[str, KernelSignature]:
    """Lower tiled kernels to the LLVM dialect, in place, and return what they take.

    Args:
        module: The tiled kernels; what else is in it, such as what calls them, is
            erased.
        target: The CPU whose registers they use.
        options: How the passes are run.
    """
    unit = VectorUnit(
        target.vector_bits, target.vector_registers, target.multiplies_pairs
    )
    run_pipeline(cpu_pipeline(unit), module, options)
    return {found.symbol: found for found in kernel_signatures(module)}


def _split(module: Any, launches: Sequence[PlannedLaunch], most: int) -> list[set[str]]:
    """Return the names of kernels, in parts that take about as long as each other."""
    used = {launch.kernel for launch in launches}
    sizes = {
        name: len(str(op)) for name, op in _functions(module).items() if name in used
    }
    parts: list[set[str]] = [set() for _ in range(min(most, len(sizes)))]
    taken = [0] * len(parts)
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        least = taken.index(min(taken))
        parts[least].add(name)
        taken[least] += sizes[name]
    return parts


def dump_options(part: str) -> RunOptions:
    """Return what `MAGWELD_DUMP_DIR` asks of a pipeline.

    Args:
        part: Name of the pipeline; each run of it gets a folder of its own.
    """
    folder = env.DUMP_DIR.get()
    if folder is None:
        # Verifiers in Python take a third of the time where each pass is followed by
        # them: only who looks at passes one by one wants to know which was wrong.
        return RunOptions(verify_each=False, verify_last=True)
    folder.mkdir(parents=True, exist_ok=True)
    dump = Path(tempfile.mkdtemp(prefix=f"{part}-", dir=folder))
    return RunOptions(dump_directory=dump, reproducer_directory=folder)


def _compile_here(
    module: Any, launches: PlannedLaunches, level: str
) -> tuple[tuple[bytes, ...], _Scratch]:
    """Compile the kernels of a module to one object; the module is changed.

    Returns:
        The object, if there is any, and what the launches allocate.
    """
    if not launches.kernels:
        return (), {}
    _keep(module, {launch.kernel for launch in launches.kernels})
    target = HostTarget.of(level)
    signatures = lower_kernels(module, target, dump_options("cpu"))
    made = [
        Launch(
            one.symbol,
            signatures[one.kernel],
            one.entries,
            one.parallel,
            one.members,
            one.words,
            one.shifts,
            one.share,
        )
        for one in launches.kernels
    ]
    scratch = {launch.symbol: _scratch_of(launch) for launch in made}
    return (compile_kernels(module, made, target, launches.joint),), scratch


def _keep(module: Any, names: set[str]) -> None:
    """Erase everything but some functions."""
    kept = {op.operation for name, op in _functions(module).items() if name in names}
    for op in list(module.body.operations):
        if op.operation not in kept:
            op.erase()


def _functions(module: Any) -> dict[str, Any]:
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if "tile_graph.kernel" in op.attributes
    }


def _scratch_of(launch: Launch) -> list[int]:
    """Return the bytes that a launch allocates in each thread, if it allocates any."""
    if not launch.kernel.scratch:
        return []
    threads = min(device("cpu").units, launch.tiles) if launch.parallel else 1
    return [launch.kernel.scratch] * threads


def most_scratch(
    scratch: Mapping[str, Sequence[int]], joint: Sequence[JointLaunch], units: int
) -> int:
    """Return the bytes that threads allocate at one time, at most.

    Threads of a joint launch may run different parts at one time.

    Args:
        scratch: For each launch, or part of one, the bytes of each thread that may run
            it at one time.
        joint: Launches of several parts.
        units: How many threads there are.
    """
    alone = [sum(each) for each in scratch.values()]
    together = [
        sorted(size for name, _ in launch.parts for size in scratch[name])
        for launch in joint
    ]
    return max([0, *alone, *(sum(sizes[-units:]) for sizes in together)])
