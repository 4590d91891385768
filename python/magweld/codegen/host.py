"""Owns the compilation of LLVM IR text to object code for a host CPU."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from magweld import env
from magweld.diagnostics import MagweldError

# With these LLVM 22 takes vectors of bfloat for legal and then aborts on some of
# their rearrangements ("Unexpected illegal type!"); without them they are widened.
_BROKEN = frozenset({"avx512bf16", "avxneconvert"})
# Families of instructions beyond AVX2: what starts so is off where that is the limit.
_BEYOND_AVX2 = ("amx", "avx10", "avx512", "evex512")


# LLVM compares each store with many before it, which takes a third of the optimiser's
# time where register tiles are written out; kernels have no stores in vain.
_SEARCH_LIMITS = (
    "-dse-memoryssa-scanlimit=20",
    "-dse-memoryssa-walklimit=10",
    "-dse-memoryssa-partial-store-limit=1",
)

# What the code generator calls to round to bfloat: round to nearest, ties to even.
# The C library has it only where it comes from a recent compiler. It must not use
# arithmetic on bfloat itself.
_SUPPORT = """
define weak hidden bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %bits, %bias
  %rounded = lshr i32 %sum, 16
  %nan = fcmp uno float %x, %x
  %quiet = or i32 %high, 64
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %narrow = trunc i32 %chosen to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
"""


_FLOAT_BITS = 32

# Levels of x86-64 that portable code is made for, each with what it adds to the one
# before; https://gitlab.com/x86-psABIs/x86-64-ABI has the list.
_LEVELS = {
    "x86-64-v3": (
        *("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
        *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    ),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
LEVELS = tuple(_LEVELS)


class CodegenError(MagweldError):
    """LLVM refused code that it was given."""


@dataclass(frozen=True)
class HostTarget:
    """What object code is made for.

    Attributes:
        triple: Target triple.
        cpu: LLVM's name of the CPU.
        features: LLVM's feature string, e.g. "+avx2,-avx512f".
        portable: Whether the code is for other processes: it can be placed anywhere,
            and the threads are those of what loads it.
    """

    triple: str
    cpu: str
    features: str
    portable: bool = False

    @staticmethod
    def of(level: str) -> HostTarget:
        """Describe all CPUs of a level, or the CPU of this process for "".

        Raises:
            CodegenError: There is no such level, or this is no x86-64.
        """
        if not level:
            return HostTarget.detect()
        _initialize()
        triple = llvm.get_process_triple()
        if level not in LEVELS or not triple.startswith("x86_64"):
            raise CodegenError(
                f"no code is made for CPUs of level '{level}' here ({triple}), "
                f"only for {', '.join(LEVELS)} on x86-64"
            )
        known = LEVELS[: LEVELS.index(level) + 1]
        features = [f"+{name}" for one in known for name in _LEVELS[one]]
        return HostTarget(triple, level, ",".join(features), portable=True)

    @staticmethod
    def detect() -> HostTarget:
        """Describe the CPU of this process, as far as `env.CPU_CAPABILITY` lets it."""
        _initialize()
        return HostTarget(
            llvm.get_process_triple(),
            llvm.get_host_cpu_name(),
            _listed(llvm.get_host_cpu_features()),
        )

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector registers that are worth using."""
        enabled = set(self.features.split(","))
        for feature, bits in (("+avx512f", 512), ("+avx", 256)):
            if feature in enabled:
                return bits
        return 128

    @property
    def float_lanes(self) -> int:
        """Floats of such a register."""
        return self.vector_bits // _FLOAT_BITS

    @property
    def vector_registers(self) -> int:
        """Number of vector registers."""
        return 32 if self.vector_bits == 512 else 16

    @property
    def multiplies_pairs(self) -> bool:
        """Whether one instruction multiplies pairs of bf16 and adds them to f32."""
        enabled = set(self.features.split(","))
        return {"+avx512bf16", "+avx512vl"} <= enabled and self.vector_bits == 512

    def machine(self) -> llvm.TargetMachine:
        """Return a new target machine."""
        _initialize()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu,
            features=_reliable(self.features),
            opt=3,
            reloc="pic",
            codemodel="small" if self.portable else "jitdefault",
            jit=not self.portable,
        )


def emit_object(texts: Sequence[str], target: HostTarget) -> bytes:
    """Link, optimise and assemble LLVM IR texts to one object file.

    Raises:
        CodegenError: LLVM does not take the code.
    """
    machine = target.machine()
    module = _link(texts, target, machine)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # Vectors are made by the passes before. LLVM 22's loop vectoriser gives wrong
    # results for reductions with maxnum (tests/cpu/test_random_operations.py).
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _link(
    texts: Sequence[str], target: HostTarget, machine: llvm.TargetMachine
) -> llvm.ModuleRef:
    linked = None
    for text in (*texts, _SUPPORT) if texts else ():
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CodegenError(
                f"LLVM does not take the generated code: {error}"
            ) from error
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        if linked is None:
            linked = module
        else:
            linked.link_in(module)
    if linked is None:
        raise CodegenError("there is no code to compile")
    return linked


def _listed(features: Mapping[str, bool]) -> str:
    limited = env.CPU_CAPABILITY.get() == "avx2"
    enabled = {
        name: present and not (limited and name.startswith(_BEYOND_AVX2))
        for name, present in features.items()
    }
    return ",".join(
        ("+" if present else "-") + name for name, present in sorted(enabled.items())
    )


def _reliable(features: str) -> str:
    """Return features without those that LLVM generates wrong code for."""
    return ",".join(
        f"-{name[1:]}" if name[1:] in _BROKEN else name for name in features.split(",")
    )


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # instructions that kernels have as text
    for option in _SEARCH_LIMITS:
        llvm.set_option("magweld", option)  # a second time would be an error
