"""Owns how long a GPU waits for what streaming tiles load, by how much is on its way.

Little's law: memory is as fast as it can be where enough bytes are on their way to each
unit. How many that are follows from what a thread loads before it uses anything, and
from how many tiles a unit holds.
"""

from __future__ import annotations

import math

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loop_nests import FUSING_KINDS
from magweld.passes.tiling.matrix_units import BLOCK_THREADS, MOST_SUMS
from magweld.passes.tiling.propagation import Tiles
from magweld.targets.device import Device

# From a load of a GPU whose memory is busy until its value is there. An order of
# magnitude.
LOAD_SECONDS = 600e-9
# Threads of a unit that can be there together, of all of its tiles.
UNIT_THREADS = 2048
# Elements of a thread that unroll-register-loops makes straight code for.
_STRAIGHT = 512
# Elements of what several loop nests read that a thread keeps, beside what it computes.
_KEPT = MOST_SUMS // 2
# Bytes that a thread loads before it uses them: of straight code, what registers hold;
# of a loop, those of two iterations.
_AHEAD, _LOOP_AHEAD = 4 * MOST_SUMS, 32
# Registers of a thread beside those of values on their way.
_OWN_REGISTERS = 32
# Those that allow-registers leaves a thread, which values take that do not fit.
_MOST_REGISTERS = 128
# Bytes that a thread should move: several wide accesses, and blocks enough that some
# compute while others wait.
MOVED = 128


def is_streamed(group: Group, device: Device) -> bool:
    """Tell whether threads share tiles that are read and written once, element-wise."""
    return device.threads > 1 and all(node.kind in FUSING_KINDS for node in group.nodes)


def waited_seconds(group: Group, tiles: Tiles, device: Device, loaded: int) -> float:
    """Return how long a device waits for the loads of streaming tiles.

    What several loop nests read is in registers if it fits; if not, each of them loads
    it again, a few bytes at a time. The first wait is a part of what a launch takes.

    Args:
        group: The operators, as `is_streamed` says.
        tiles: What each of them computes.
        device: What runs them.
        loaded: Bytes that all tiles read.
    """
    threads = min(BLOCK_THREADS, device.threads)
    own = -(-max(part.points for part in tiles.parts) // threads)
    each = loaded / (tiles.grid * threads)
    readers = _readers(group)
    is_straight = own <= (_STRAIGHT if readers == 1 else _KEPT)
    ahead = min(each, _AHEAD) if is_straight else _LOOP_AHEAD
    trips = math.ceil(each / ahead) if each else 0
    registers = _OWN_REGISTERS + ahead / 4
    if not is_straight and readers > 1:
        trips *= readers
        registers = _MOST_REGISTERS
    held = UNIT_THREADS * _OWN_REGISTERS / (registers * threads)
    rounds = -(-tiles.grid // (device.units * max(1, int(held))))
    return max(0, rounds * trips - 1) * LOAD_SECONDS


def _readers(group: Group) -> int:
    """Return how many loop nests read one tensor from outside, at most."""
    nests = group.nests()
    found: dict[int, set[int]] = {}
    for node, _, tensor in group.outer_reads:
        found.setdefault(tensor, set()).update(nests.loops[node])
    return max(map(len, found.values()), default=1)


def moved_by_thread(moved: int, grid: int, device: Device) -> float:
    """Return by how many powers of two a thread moves other than `MOVED` bytes.

    To half a power: what is read again for every tile makes no difference.

    Args:
        moved: Bytes that all tiles read and write.
        grid: How many tiles there are.
        device: What runs them.
    """
    each = moved / (grid * min(BLOCK_THREADS, device.threads))
    return round(2 * abs(math.log2(max(each, 1) / MOVED))) / 2
