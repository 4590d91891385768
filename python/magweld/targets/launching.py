"""Owns the measuring of what it takes to start all threads of this machine."""

from __future__ import annotations

import ctypes
import time

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects

_RUNTIME = "libgomp.so.1"
_REGIONS = 2000
# Starts threads on nothing, so often.
_CODE = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
define internal void @nothing(ptr %table) {
  ret void
}
define void @start(i64 %times) {
entry:
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %n, %times
  br i1 %more, label %body, label %done
body:
  call void @GOMP_parallel(ptr @nothing, ptr null, i32 0, i32 0)
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}
"""


def measured_launch_seconds(samples: int) -> float | None:
    """Return how long a parallel region of no work takes, threads awake.

    None where there is no OpenMP runtime. That of the system stands for the one of
    programs, which comes with torch: what is measured imports none.

    Args:
        samples: The least of so many measurements is taken.
    """
    try:
        ctypes.CDLL(_RUNTIME)
    except OSError:
        return None
    code = LoadedObjects([emit_object([_CODE], HostTarget.detect())], ["start"])
    if not code.parallel:
        return None
    start = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("start"))
    start(_REGIONS)
    taken = []
    for _ in range(samples):
        begin = time.perf_counter()
        start(_REGIONS)
        taken.append(time.perf_counter() - begin)
    return min(taken) / _REGIONS
