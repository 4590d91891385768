"""Owns the native code that copies indices and bounds of bags, and checks or sorts."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects

_SYMBOL = "magweld_check_indices"
_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
# Words of a check: entry of what is copied, entry of the copy, how many there are, the
# number of the scan. For indices the least one in range follows, and how many are in
# range; for bounds what the last one is, and whether it is put behind the others; for
# an order of rows how many these are, what places are divided by, the index that is
# skipped, and the entry of where the places of each row begin.
WORDS: Final = 8
# Numbers of the scans, by what is copied and bits of each.
SCANS: Final = {
    ("indices", 32): 0,
    ("indices", 64): 1,
    ("bounds", 32): 2,
    ("bounds", 64): 3,
    ("rows", 32): 4,
    ("rows", 64): 5,
    ("indices", 8): 6,
}

# Copies indices and tells whether one is out of range, eight of them at a time: what
# such a one is above the least is, without a sign, no less than how many are in range.
_SCAN = """
define internal i1 @scan_{bits}(
    ptr %source, ptr %target, i64 %count, i64 %least, i64 %span) {{
entry:
  %a = insertelement <8 x i64> poison, i64 %least, i64 0
  %leasts = shufflevector <8 x i64> %a, <8 x i64> poison, <8 x i32> zeroinitializer
  %b = insertelement <8 x i64> poison, i64 %span, i64 0
  %spans = shufflevector <8 x i64> %b, <8 x i64> poison, <8 x i32> zeroinitializer
  %whole = and i64 %count, -8
  br label %eights
eights:
  %i = phi i64 [ 0, %entry ], [ %i.next, %eight ]
  %bad = phi <8 x i1> [ zeroinitializer, %entry ], [ %worse, %eight ]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %eight, label %joined
eight:
  %from = getelementptr i{bits}, ptr %source, i64 %i
  %to = getelementptr i{bits}, ptr %target, i64 %i
  %x = load <8 x i{bits}>, ptr %from, align {bytes}
  store <8 x i{bits}> %x, ptr %to, align {bytes}
  %wide = {widen} <8 x i{bits}> %x {to_eight}
  %above = sub <8 x i64> %wide, %leasts
  %out = icmp uge <8 x i64> %above, %spans
  %worse = or <8 x i1> %bad, %out
  %i.next = add i64 %i, 8
  br label %eights
joined:
  %mask = bitcast <8 x i1> %bad to i8
  %any = icmp ne i8 %mask, 0
  br label %ones
ones:
  %j = phi i64 [ %i, %joined ], [ %j.next, %one ]
  %wrong = phi i1 [ %any, %joined ], [ %wrong.next, %one ]
  %left = icmp ult i64 %j, %count
  br i1 %left, label %one, label %done
one:
  %from.j = getelementptr i{bits}, ptr %source, i64 %j
  %to.j = getelementptr i{bits}, ptr %target, i64 %j
  %y = load i{bits}, ptr %from.j, align {bytes}
  store i{bits} %y, ptr %to.j, align {bytes}
  %wide.j = {widen} i{bits} %y {to_one}
  %above.j = sub i64 %wide.j, %least
  %out.j = icmp uge i64 %above.j, %span
  %wrong.next = or i1 %wrong, %out.j
  %j.next = add i64 %j, 1
  br label %ones
done:
  ret i1 %wrong
}}
"""
# Copies bounds of bags. The first is zero, none is less than the one before, and the
# last is the limit, or no more than that where the limit is put behind them.
_BOUNDS = """
define internal i1 @bounds_{bits}(
    ptr %source, ptr %target, i64 %count, i64 %limit, i64 %behind) {{
entry:
  br label %ones
ones:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %last = phi i64 [ 0, %entry ], [ %wide, %one ]
  %wrong = phi i1 [ false, %entry ], [ %wrong.next, %one ]
  %left = icmp ult i64 %i, %count
  br i1 %left, label %one, label %all
one:
  %from = getelementptr i{bits}, ptr %source, i64 %i
  %to = getelementptr i{bits}, ptr %target, i64 %i
  %x = load i{bits}, ptr %from, align {bytes}
  store i{bits} %x, ptr %to, align {bytes}
  %wide = {widen} i{bits} %x {to_one}
  %less = icmp slt i64 %wide, %last
  %is.first = icmp eq i64 %i, 0
  %is.some = icmp ne i64 %wide, 0
  %begins = and i1 %is.first, %is.some
  %bad = or i1 %less, %begins
  %wrong.next = or i1 %wrong, %bad
  %i.next = add i64 %i, 1
  br label %ones
all:
  %is.behind = icmp ne i64 %behind, 0
  %above = icmp sgt i64 %last, %limit
  %other = icmp ne i64 %last, %limit
  %ends = select i1 %is.behind, i1 %above, i1 %other
  %found = or i1 %wrong, %ends
  br i1 %is.behind, label %add, label %done
add:
  %to.end = getelementptr i{bits}, ptr %target, i64 %count
  %end = {narrow} i64 %limit {to_narrow}
  store i{bits} %end, ptr %to.end, align {bytes}
  br label %done
done:
  ret i1 %found
}}
"""
# Writes the places of indices, over a size, in the order of the rows that they name,
# and where those of each row begin: in two passes, the first of which counts. Whatever
# another thread writes to the indices meanwhile, each place that is there was written
# in this way, now or in an earlier call, and no bound is above the number of indices.
_ROWS = """
define internal i1 @rows_{bits}(
    ptr %source, ptr %places, i64 %count, i64 %rows, i64 %size, i64 %padding,
    ptr %bounds) {{
entry:
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c.next, %clear.one ]
  %to.clear = icmp ule i64 %c, %rows
  br i1 %to.clear, label %clear.one, label %counts
clear.one:
  %cleared = getelementptr i{bits}, ptr %bounds, i64 %c
  store i{bits} 0, ptr %cleared, align {bytes}
  %c.next = add i64 %c, 1
  br label %clear
counts:
  %j = phi i64 [ 0, %clear ], [ %j.next, %count.one ]
  %to.count = icmp ult i64 %j, %count
  br i1 %to.count, label %count.row, label %sums
count.row:
  %from.j = getelementptr i{bits}, ptr %source, i64 %j
  %x = load i{bits}, ptr %from.j, align {bytes}
  %row = {widen} i{bits} %x {to_one}
  %is.row = icmp ult i64 %row, %rows
  br i1 %is.row, label %count.one, label %wrong
count.one:
  %is.kept = icmp ne i64 %row, %padding
  %one = zext i1 %is.kept to i{bits}
  %row.next = add i64 %row, 1
  %counter = getelementptr i{bits}, ptr %bounds, i64 %row.next
  %before = load i{bits}, ptr %counter, align {bytes}
  %after = add i{bits} %before, %one
  store i{bits} %after, ptr %counter, align {bytes}
  %j.next = add i64 %j, 1
  br label %counts
sums:
  %s = phi i64 [ 0, %counts ], [ %s.next, %sum ]
  %begin = phi i{bits} [ 0, %counts ], [ %end, %sum ]
  %to.sum = icmp ult i64 %s, %rows
  br i1 %to.sum, label %sum, label %fill
sum:
  %s.next = add i64 %s, 1
  %summed = getelementptr i{bits}, ptr %bounds, i64 %s.next
  %has = load i{bits}, ptr %summed, align {bytes}
  store i{bits} %begin, ptr %summed, align {bytes}
  %end = add i{bits} %begin, %has
  br label %sums
fill:
  %i = phi i64 [ 0, %sums ], [ %i.next, %filled ]
  %place = phi i64 [ 0, %sums ], [ %place.next, %filled ]
  %within = phi i64 [ 0, %sums ], [ %within.next, %filled ]
  %to.fill = icmp ult i64 %i, %count
  br i1 %to.fill, label %fill.one, label %done
fill.one:
  %from.i = getelementptr i{bits}, ptr %source, i64 %i
  %y = load i{bits}, ptr %from.i, align {bytes}
  %row.y = {widen} i{bits} %y {to_one}
  %is.row.y = icmp ult i64 %row.y, %rows
  br i1 %is.row.y, label %find, label %wrong
find:
  %is.skipped = icmp eq i64 %row.y, %padding
  br i1 %is.skipped, label %filled, label %place.one
place.one:
  %row.behind = add i64 %row.y, 1
  %cursor = getelementptr i{bits}, ptr %bounds, i64 %row.behind
  %at = load i{bits}, ptr %cursor, align {bytes}
  %at.wide = {widen} i{bits} %at {to_one}
  %has.room = icmp ult i64 %at.wide, %count
  br i1 %has.room, label %write, label %wrong
write:
  %to = getelementptr i{bits}, ptr %places, i64 %at.wide
  %narrow = {narrow} i64 %place {to_narrow}
  store i{bits} %narrow, ptr %to, align {bytes}
  %at.next = add i{bits} %at, 1
  store i{bits} %at.next, ptr %cursor, align {bytes}
  br label %filled
filled:
  %i.next = add i64 %i, 1
  %more = add i64 %within, 1
  %is.whole = icmp eq i64 %more, %size
  %within.next = select i1 %is.whole, i64 0, i64 %more
  %place.more = add i64 %place, 1
  %place.next = select i1 %is.whole, i64 %place.more, i64 %place
  br label %fill
done:
  ret i1 false
wrong:
  ret i1 true
}}
"""
_NARROW = {
    "bits": 32,
    "bytes": 4,
    "widen": "sext",
    "to_eight": "to <8 x i64>",
    "to_one": "to i64",
    "narrow": "trunc",
    "to_narrow": "to i32",
}
# Truths.
_BYTES = _NARROW | {"bits": 8, "bytes": 1, "widen": "zext"}
_WIDE = {
    "bits": 64,
    "bytes": 8,
    "widen": "freeze",
    "to_eight": "",
    "to_one": "",
    "narrow": "freeze",
    "to_narrow": "",
}
_SCANS = (
    _SCAN.format(**_BYTES),
    *(
        scan.format(**words)
        for scan in (_SCAN, _BOUNDS, _ROWS)
        for words in (_NARROW, _WIDE)
    ),
)
_CHECK = f"""
define i64 @{_SYMBOL}(ptr %checks, i64 %count, ptr %table) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %checked ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %check, label %done
check:
  %words = getelementptr [{WORDS} x i64], ptr %checks, i64 %k
  %word.1 = getelementptr i64, ptr %words, i64 1
  %word.2 = getelementptr i64, ptr %words, i64 2
  %word.3 = getelementptr i64, ptr %words, i64 3
  %word.4 = getelementptr i64, ptr %words, i64 4
  %word.5 = getelementptr i64, ptr %words, i64 5
  %word.6 = getelementptr i64, ptr %words, i64 6
  %word.7 = getelementptr i64, ptr %words, i64 7
  %from = load i64, ptr %words
  %to = load i64, ptr %word.1
  %length = load i64, ptr %word.2
  %scan = load i64, ptr %word.3
  %least = load i64, ptr %word.4
  %span = load i64, ptr %word.5
  %skip = load i64, ptr %word.6
  %other = load i64, ptr %word.7
  %from.entry = getelementptr ptr, ptr %table, i64 %from
  %to.entry = getelementptr ptr, ptr %table, i64 %to
  %source = load ptr, ptr %from.entry
  %target = load ptr, ptr %to.entry
  %other.entry = getelementptr ptr, ptr %table, i64 %other
  switch i64 %scan, label %scan.0 [
    i64 1, label %scan.1
    i64 2, label %scan.2
    i64 3, label %scan.3
    i64 4, label %scan.4
    i64 5, label %scan.5
    i64 6, label %scan.6
  ]
scan.0:
  %a = call i1 @scan_32(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span)
  br label %checked
scan.1:
  %b = call i1 @scan_64(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span)
  br label %checked
scan.2:
  %c = call i1 @bounds_32(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span)
  br label %checked
scan.3:
  %d = call i1 @bounds_64(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span)
  br label %checked
scan.4:
  %begins.4 = load ptr, ptr %other.entry
  %e = call i1 @rows_32(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span,
                        i64 %skip, ptr %begins.4)
  br label %checked
scan.5:
  %begins.5 = load ptr, ptr %other.entry
  %f = call i1 @rows_64(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span,
                        i64 %skip, ptr %begins.5)
  br label %checked
scan.6:
  %g = call i1 @scan_8(ptr %source, ptr %target, i64 %length, i64 %least, i64 %span)
  br label %checked
checked:
  %wrong = phi i1 [ %a, %scan.0 ], [ %b, %scan.1 ], [ %c, %scan.2 ], [ %d, %scan.3 ],
                  [ %e, %scan.4 ], [ %f, %scan.5 ], [ %g, %scan.6 ]
  %k.next = add i64 %k, 1
  br i1 %wrong, label %found, label %head
found:
  ret i64 %k.next
done:
  ret i64 0
}}
"""


class Checker:
    """The native code, in memory as long as this value."""

    def __init__(self) -> None:
        code = emit_object(["".join((*_SCANS, _CHECK))], HostTarget.detect())
        self._objects = LoadedObjects([code], [_SYMBOL])
        self.address = self._objects.address(_SYMBOL)
        # (checks, count, table) -> 0, or the number from 1 of the first that fails.
        self.check = _TYPE(self.address)


@cache
def checker() -> Checker:
    """Return the code, which is made once."""
    return Checker()
