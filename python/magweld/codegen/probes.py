"""Owns the kernels that measure a machine: streams of reads, of writes, of FMAs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm

from magweld.codegen.host import HostTarget, emit_object

# Vectors that one turn of a loop moves: enough to hide the loop itself.
UNROLLED = 8
# FMAs in flight: two pipes, four to five clocks each, and sixteen registers at least.
CHAINS = 12
_BITS = {"float": 32, "double": 64}


class Probes:
    """Kernels for the CPU of this process; they release the interpreter's lock.

    Attributes:
        block: Bytes that one turn of `read` and `write` moves.
        chains: Elements that one turn of an FMA kernel computes, by element type.
    """

    def __init__(self) -> None:
        """Compile the kernels."""
        target = HostTarget.detect()
        bits = target.vector_bits
        self.block = UNROLLED * bits // 8
        self.chains = {name: CHAINS * bits // size for name, size in _BITS.items()}
        texts = [_stream_text(bits), *(_fma_text(name, bits) for name in _BITS)]
        library = llvm.JITLibraryBuilder()
        library.add_object_img(emit_object(texts, target))
        for symbol in ("read", "write", *(f"fma_{name}" for name in _BITS)):
            library.export_symbol(symbol)
        # The compiler must outlive what it linked.
        self._compiler = llvm.create_lljit_compiler(target.machine())
        self._code = library.link(self._compiler, "probes")

    def stream(self, kind: str) -> Callable[[int, int, int], int]:
        """Return "read" or "write" as (address, blocks, repeats) -> a word of it."""
        words = (ctypes.c_int64,) * 3
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *words)
        return function(int(self._code[kind]))

    def fma(self, element: str) -> Callable[[int, float, float], float]:
        """Return the kernel of "float" or "double": (turns, a, b) -> a sum.

        Each turn replaces every x of its accumulators, zero at first, by x * a + b.
        """
        plain = {"float": ctypes.c_float, "double": ctypes.c_double}[element]
        function = ctypes.CFUNCTYPE(plain, ctypes.c_int64, plain, plain)
        return function(int(self._code[f"fma_{element}"]))


def _stream_text(bits: int) -> str:
    vector = f"<{bits // 64} x i64>"
    addresses = "\n".join(
        f"  %p{i} = getelementptr {vector}, ptr %p, i64 {i}" for i in range(UNROLLED)
    )
    # Volatile: what is read twice is not read once, what is overwritten is written.
    reads = "\n".join(
        f"  %v{i} = load volatile {vector}, ptr %p{i}, align {bits // 8}"
        for i in range(UNROLLED)
    )
    writes = "\n".join(
        f"  store volatile {vector} %new, ptr %p{i}, align {bits // 8}"
        for i in range(UNROLLED)
    )
    last = f"%v{UNROLLED - 1}"
    return _loop("read", vector, f"{addresses}\n{reads}", last) + _loop(
        "write",
        vector,
        f"{addresses}\n  %new = add {vector} %old, splat (i64 1)\n{writes}",
        "%new",
    )


def _loop(name: str, vector: str, body: str, kept: str) -> str:
    return f"""
define i64 @{name}(i64 %data, i64 %blocks, i64 %repeats) {{
entry:
  %base = inttoptr i64 %data to ptr
  br label %outer
outer:
  %turn = phi i64 [ 0, %entry ], [ %next_turn, %end ]
  %first = phi {vector} [ zeroinitializer, %entry ], [ {kept}, %end ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %next, %inner ]
  %old = phi {vector} [ %first, %outer ], [ {kept}, %inner ]
  %offset = mul i64 %i, {UNROLLED}
  %p = getelementptr {vector}, ptr %base, i64 %offset
{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %blocks
  br i1 %more, label %inner, label %end
end:
  %next_turn = add i64 %turn, 1
  %again = icmp ult i64 %next_turn, %repeats
  br i1 %again, label %outer, label %done
done:
  %word = extractelement {vector} {kept}, i64 0
  ret i64 %word
}}
"""


def _fma_text(element: str, bits: int) -> str:
    lanes = bits // _BITS[element]
    vector = f"<{lanes} x {element}>"
    name = f"llvm.fma.v{lanes}f{_BITS[element]}"
    chains = range(CHAINS)
    states = "\n".join(
        f"  %x{c} = phi {vector} [ zeroinitializer, %entry ], [ %y{c}, %loop ]"
        for c in chains
    )
    steps = "\n".join(
        f"  %y{c} = call {vector} @{name}({vector} %x{c}, {vector} %a, {vector} %b)"
        for c in chains
    )
    sums = ["  %s0 = fadd " + f"{vector} %y0, %y1"]
    sums += [f"  %s{c} = fadd {vector} %s{c - 1}, %y{c + 1}" for c in chains[1:-1]]
    added = "\n".join(sums)
    return f"""
declare {vector} @{name}({vector}, {vector}, {vector})
define {element} @fma_{element}(i64 %turns, {element} %factor, {element} %term) {{
entry:
  %a0 = insertelement {vector} poison, {element} %factor, i64 0
  %a = shufflevector {vector} %a0, {vector} poison, <{lanes} x i32> zeroinitializer
  %b0 = insertelement {vector} poison, {element} %term, i64 0
  %b = shufflevector {vector} %b0, {vector} poison, <{lanes} x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{states}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
{added}
  %sum = extractelement {vector} %s{CHAINS - 2}, i64 0
  ret {element} %sum
}}
"""
