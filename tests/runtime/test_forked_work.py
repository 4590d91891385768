"""Functions that run side by side in forks of a process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HEAD = "import os, signal, sys, time\nfrom magweld.forked_work import run_forked\n"


def run(body: str) -> subprocess.CompletedProcess[str]:
    """Run a program without threads, which a process with torch is not."""
    return subprocess.run(
        [sys.executable, "-c", HEAD + body], capture_output=True, text=True, timeout=60
    )


def test_answers_come_in_order_from_processes_of_their_own() -> None:
    ran = run(
        "who = lambda: str(os.getpid()).encode()\n"
        "found = [*map(int, run_forked([who] * 3))]\n"
        "assert found[0] == os.getpid() and len(set(found)) == 3, found\n"
        "assert run_forked([lambda: b'x' * 1_000_000] * 2)[1] == b'x' * 1_000_000\n"
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("end", ["raise KeyError(1)", "os._exit(3)", "os.abort()"])
def test_a_child_without_answer_is_made_up_for(end: str) -> None:
    ran = run(
        "here = os.getpid()\n"
        "def work():\n"
        f"    if os.getpid() != here: {end}\n"
        "    return b'here'\n"
        "assert run_forked([lambda: b'first', work]) == [b'first', b'here']\n"
    )
    assert ran.returncode == 0, ran.stderr


def test_what_a_function_raises_is_raised_and_children_end() -> None:
    ran = run(
        "def fails(): raise KeyError('this')\n"
        "def sleeps(): time.sleep(1000)\n"
        "try:\n"
        "    run_forked([fails, sleeps])\n"
        "except KeyError:\n"
        "    try:\n"
        "        os.waitpid(-1, 0)\n"
        "    except ChildProcessError:\n"
        "        print('no children')\n"
    )
    assert ran.stdout == "no children\n", ran.stderr
    assert run("run_forked([lambda: b'', lambda: 1 / 0])").returncode == 1


def test_children_end_with_their_parent() -> None:
    ran = run(
        "def shows():\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(1000)\n"
        "def dies():\n"
        "    time.sleep(0.5)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "run_forked([dies, shows])\n"
    )
    # It was read to the end of the pipe that the child had as well: that has ended.
    assert ran.returncode == -signal.SIGKILL
    assert int(ran.stdout) > 0
