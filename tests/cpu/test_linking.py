"""Images are linked from object files, and what has no place in one is refused."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from magweld.codegen.host import CodegenError, HostTarget, emit_object
from magweld.codegen.linking import link

CALLER = """
@squares = private constant [4 x i64] [i64 0, i64 1, i64 4, i64 9]
declare i64 @twice(i64)
declare double @pow(double, double)
define i64 @f(i64 %i) {
  %at = getelementptr i64, ptr @squares, i64 %i
  %square = load i64, ptr %at
  %doubled = call i64 @twice(i64 %square)
  ret i64 %doubled
}
define double @power(double %x) {
  %y = call double @pow(double %x, double 2.5)
  ret double %y
}
"""
TWICE = "define i64 @twice(i64 %x) { %y = shl i64 %x, 1 \n ret i64 %y }"


def objects(*texts: str) -> list[bytes]:
    return [emit_object([text], HostTarget.of("x86-64-v3")) for text in texts]


def test_an_image_runs_where_it_is_copied() -> None:
    image = link(objects(CALLER, TWICE))
    assert [name for _, name in image.imports] == ["pow"]
    assert image.text_bytes % mmap.PAGESIZE == 0
    memory = mmap.mmap(
        -1, len(image.data), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    )
    memory[:] = image.data
    ((slot, _),) = image.imports
    address = ctypes.cast(ctypes.CDLL("libm.so.6").pow, ctypes.c_void_p).value
    ctypes.c_void_p.from_buffer(memory, slot).value = address
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    function = kind(base + image.symbols["f"])
    assert [function(i) for i in range(4)] == [0, 2, 8, 18]
    power = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert power(base + image.symbols["power"])(4.0) == 32.0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["declare void @puts()\ndefine void @f() { call void @puts()\n ret void }"],
            "puts",
        ),
        (["@x = global i64 1\ndefine ptr @f() { ret ptr @x }"], "is written"),
        ([TWICE, TWICE], "two functions 'twice'"),
        (["@p = constant ptr @f\ndefine ptr @f() { ret ptr @p }"], "cannot link"),
    ],
)
def test_what_no_image_can_hold_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        link(objects(*texts))


def test_levels_that_no_code_is_made_for_are_refused() -> None:
    with pytest.raises(CodegenError, match="x86-64-v3, x86-64-v4"):
        HostTarget.of("x86-64-v2")
