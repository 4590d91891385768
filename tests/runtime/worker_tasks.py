"""Owns tasks that worker processes run in the tests: good, bad and deadly ones."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from magweld.artifact import Place, Program, Value
from magweld.runtime.container import decode_request, encode_program


def echo(payload: bytes) -> bytes:
    return payload


def describe(payload: bytes) -> bytes:
    """Process id and what of interest is imported."""
    modules = [name for name in ("torch", "torch_mlir") if name in sys.modules]
    return json.dumps({"pid": os.getpid(), "modules": modules}).encode()


def tell_scheduling(payload: bytes) -> bytes:
    """Return how this process is scheduled, once that is as told or no more is."""
    end = time.monotonic() + float(payload)
    while os.sched_getscheduler(0) == os.SCHED_IDLE and time.monotonic() < end:
        time.sleep(0.01)
    return str(os.sched_getscheduler(0)).encode()


def count_collections(payload: bytes) -> bytes:
    """How often cycles are looked for while so many objects are made that stay."""
    gc.collect()
    before = gc.get_stats()[0]["collections"]
    kept: list[list[int]] = [[] for _ in range(int(payload))]
    found = gc.get_stats()[0]["collections"] - before
    kept.clear()
    return str(found).encode()


def raise_error(payload: bytes) -> bytes:
    raise ArithmeticError(payload.decode())


def exit_quietly(payload: bytes) -> bytes:
    sys.exit(3)


def return_text(payload: bytes) -> bytes:
    return "text"  # type: ignore[return-value]


def kill_itself(payload: bytes) -> bytes:
    print("about to be killed", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def abort(payload: bytes) -> bytes:
    ctypes.CDLL(None).abort()
    return b""


def segfault(payload: bytes) -> bytes:
    ctypes.string_at(0)
    return b""


def exit_at_once(payload: bytes) -> bytes:
    os._exit(7)


def hang(payload: bytes) -> bytes:
    while True:
        time.sleep(1)


def hang_with_interpreter_lock(payload: bytes) -> bytes:
    # PyDLL keeps the lock, as a pass that never ends would.
    ctypes.PyDLL(None).sleep(1000)
    return b""


def announce_and_wait(payload: bytes) -> bytes:
    """Write the process id into the file named by the payload, then wait."""
    path = Path(payload.decode())
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    return hang(payload)


def print_much(payload: bytes) -> bytes:
    """Fill stdout and stderr beyond any pipe, from Python and from C."""
    for number in range(20_000):
        print(f"stdout {number}")
        print(f"stderr {number}", file=sys.stderr)
    ctypes.CDLL(None).puts(b"from native code")
    ctypes.CDLL(None).fflush(None)
    return payload


def write_garbage_to_all_files(payload: bytes) -> bytes:
    for fd in range(3, 64):
        try:
            os.write(fd, b"GARBAGE!" * 8)
        except OSError:
            continue
    return payload


def write_garbage_later(payload: bytes) -> bytes:
    threading.Timer(0.1, write_garbage_to_all_files, (payload,)).start()
    return payload


def close_all_files(payload: bytes) -> bytes:
    os.closerange(3, 256)
    return payload


def die_leaving_a_child(payload: bytes) -> bytes:
    if os.fork() == 0:
        time.sleep(float(payload))
        os._exit(0)
    os._exit(5)


def sleep_briefly(payload: bytes) -> bytes:
    time.sleep(0.05)
    return str(os.getpid()).encode()


def start_background_printing(payload: bytes) -> bytes:
    def work() -> None:
        while True:
            print("background", file=sys.stderr, flush=True)
            time.sleep(0.01)

    threading.Thread(target=work, daemon=True).start()
    return b""


def compile_constant(payload: bytes) -> bytes:
    """A compiler: the program returns the module text as a constant."""
    options, text = decode_request(payload)
    log = os.environ.get("MAGWELD_TEST_COMPILE_LOG")
    if log:
        with open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
    if text.startswith("crash"):
        os._exit(9)
    if text.startswith("refuse"):
        raise ValueError(f"cannot compile {text}")
    if text.startswith("nonsense"):
        return b"no program"
    time.sleep(0.2 if text.startswith("slow") else 0.0)
    data = text.encode()
    value = Value((len(data),), "ui8", Place.CONSTANT)
    program = Program(
        (value,), (), (0,), 0, constants=(data,), report={"options": options}
    )
    return encode_program(program)


_running: list[bytes] = []


def count_running(payload: bytes) -> bytes:
    """Return how many of these run in this process at the same time."""
    _running.append(payload)
    time.sleep(0.05)
    count = len(_running)
    _running.pop()
    return bytes([count])
