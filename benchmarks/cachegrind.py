"""Owns the counting of what a kernel moves: cachegrind simulates the caches.

It knows no 512-bit vectors. It needs `valgrind` and a C compiler.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from torch import Tensor

from magweld.targets import device

DRIVER = Path(__file__).with_name("traffic_driver.c")
NEEDED = ("valgrind", "cc")
LINE = 64
# As of the caches of most x86 processors; their sizes are those of the device. The
# first cache, which all loads of a kernel go through, is not simulated.
WAYS = {"l2": 8, "l3": 16}
# Cachegrind simulates two caches: its options for them, and its names for what they
# miss of data that is read, and written.
SIMULATED = (("--D1", ("D1mr", "D1mw")), ("--LL", ("DLmr", "DLmw")))

# Bytes of an operand, and its contents; None for zeros.
Operand = tuple[int, Tensor | None]


@dataclass(frozen=True)
class Level:
    """A memory level with the cache in front of it, whose misses are counted."""

    name: str
    capacity: int
    ways: int


def levels() -> list[Level]:
    """Return the levels behind the caches that are simulated, from inside out."""
    known = device("cpu").levels
    found = [
        Level(lvl.name, above.capacity, WAYS[above.name])
        for lvl, above in pairwise(known)
        if above.name in WAYS
    ]
    if len(found) != len(SIMULATED):
        raise SystemExit(f"expected a device with the caches {', '.join(WAYS)}")
    return found[::-1]


def require_tools() -> None:
    """End the program if what counting needs is not installed."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"not found: {', '.join(missing)}")


def counted(objects: bytes, launch: str, operands: Sequence[Operand]) -> dict[str, int]:
    """Return the bytes that a kernel moves from and to each level.

    Args:
        objects: An object file.
        launch: The function in it that runs the kernel on a table of pointers.
        operands: What these point to.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.o").write_bytes(objects)
        built = ["cc", "-O1", f"-DLAUNCH={launch}", str(DRIVER), "kernels.o"]
        subprocess.run([*built, "-lm", "-o", "driver"], cwd=folder, check=True)
        arguments = []
        for number, (size, tensor) in enumerate(operands):
            file = "-" if tensor is None else f"operand_{number}"
            if tensor is not None:
                (folder / file).write_bytes(tensor.contiguous().numpy().tobytes())
            arguments += [str(size), file]
        # The kernel may call others, memset for one: what the rest of the program
        # misses is counted alone and taken away.
        with_kernel, without = (_missed(folder, n, arguments) for n in (1, 0))
        return {name: LINE * (with_kernel[name] - without[name]) for name in without}


def _missed(folder: Path, times: int, arguments: Sequence[str]) -> dict[str, int]:
    """Return how many lines of each level the driver misses."""
    caches = [
        f"{option}={level.capacity},{level.ways},{LINE}"
        for level, (option, _) in zip(levels(), SIMULATED, strict=True)
    ]
    simulation = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches]
    swept = str(2 * max(level.capacity for level in levels()))
    command = [*simulation, "--cachegrind-out-file=counts", "./driver", str(times)]
    done = subprocess.run(
        [*command, swept, *arguments], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return misses((folder / "counts").read_text())


def misses(counts: str) -> dict[str, int]:
    """Return how many lines of each level are missed, from a file of cachegrind's."""
    rows = dict(line.split(": ", 1) for line in counts.splitlines() if ": " in line)
    columns = dict(zip(rows["events"].split(), rows["summary"].split(), strict=True))
    return {
        level.name: sum(int(columns[name]) for name in names)
        for level, (_, names) in zip(levels(), SIMULATED, strict=True)
    }
