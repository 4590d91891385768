"""Owns the compilation of one module in several worker processes at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from magweld.artifact import Program
from magweld.runtime.container import decode_parts, encode_parts
from magweld.runtime.service import COMPILE_SECONDS, decode_answer
from magweld.runtime.worker_pool import TaskRunner

# Modules with less text are compiled before another process would have started.
LARGE_TEXT = 40_000
# Each process takes its memory, and the time in which it starts.
MOST_PARTS = 4

_PLAN_TASK = "magweld.compiler:plan_module"
_PART_TASK = "magweld.kernel_code:compile_part"


def compile_in_parts(
    runner: TaskRunner, settings: str, text: str, most: int
) -> tuple[Program, bool]:
    """Compile a module, its kernels in several processes side by side.

    Args:
        runner: Where tasks run.
        settings: What the compilation may decide.
        text: The module.
        most: How many processes may work at a time.

    Returns:
        The program, and that caches may keep it.

    Raises:
        WorkerError: The compiler refused it or did not come back.
    """
    most = min(most, MOST_PARTS)
    runner.prestart(most)
    payload = encode_parts([settings.encode(), text.encode(), str(most).encode()])
    planned, *parts = decode_parts(runner.run(_PLAN_TASK, payload, COMPILE_SECONDS))
    program = decode_answer(planned)
    if not parts:
        return program, True
    compile_part: Callable[[bytes], bytes] = partial(
        runner.run, _PART_TASK, timeout_seconds=COMPILE_SECONDS
    )
    with ThreadPoolExecutor(len(parts)) as pool:
        answers = [decode_parts(answer) for answer in pool.map(compile_part, parts)]
    return _with_code(program, answers), True


def _with_code(program: Program, answers: list[list[bytes]]) -> Program:
    """Return a program with the scratch and objects that were made for its parts."""
    scratch = max(int(size) for size, *_ in answers)
    memory = {**program.report["memory"], "scratch_bytes": scratch}
    return replace(
        program,
        objects=tuple(code for _, *objects in answers for code in objects),
        report={**program.report, "memory": memory},
    )
