"""Owns the packing of `gpu.py`: cases compiled to artifacts, on any machine."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Literal

import torch
from gpu_cases import MODELS, work
from gpu_outcomes import MANIFEST, Packed, one_of, read_pack
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.aot.compile import compile_call
from magweld.aot.sources import captured
from magweld.api import options_for
from magweld.artifact import LibraryStep
from magweld.compiler_options import CompileOptions
from magweld.diagnostics import MagweldError

LibraryUse = Literal["auto", "never", "always"]


def pack_case(
    name: str, dtype: str, target: str, folder: Path, library: LibraryUse = "auto"
) -> Packed:
    """Compile a case to an artifact in a folder."""
    begin = time.process_time()
    try:
        case = work(name, dtype, "cpu")
        function = case.function
        if name in MODELS:
            with torch.no_grad():
                trace = make_fx(function, tracing_mode="fake", pre_dispatch=True)
                function = trace(*case.tensors)
        options = options_for(target, CompileOptions(library=library), None)
        artifact = compile_call(captured(function, case.tensors), target, options, None)
    except MagweldError as error:
        problem = str(error).splitlines()[0]
        return Packed(name, dtype, target, problem=problem, library=library)
    suffix = "" if library == "auto" else f"-{library}"
    file = f"{name}-{dtype}-{target.partition(':')[2]}{suffix}.mw"
    artifact.save(folder / file)
    report = artifact.report()
    groups = report["groups"]
    return Packed(
        name,
        dtype,
        target,
        file,
        len(artifact.program.launches),
        tuple(report["externals"]),
        sum(group.get("predicted_seconds", 0.0) for group in groups),
        sum(group.get("traffic_after", 0) for group in groups),
        time.process_time() - begin,
        library=library,
        calls=tuple(
            step.op for step in artifact.program.steps if isinstance(step, LibraryStep)
        ),
    )


def pack(options: argparse.Namespace) -> int:
    """Compile the chosen cases; what the folder has of others stays."""
    options.folder.mkdir(parents=True, exist_ok=True)
    packed = {}
    if (options.folder / MANIFEST).exists():
        packed = {one_of(one): one for one in read_pack(options.folder)[1]}
    for target, dtype, name in product(options.targets, options.dtypes, options.cases):
        for one in variants(name, dtype, target, options):
            packed[one_of(one)] = one
            print(packed_row(one), flush=True)
            listed = [asdict(one) for one in packed.values()]
            manifest = {"commit": commit(), "artifacts": listed}
            text = json.dumps(manifest, indent=1)
            (options.folder / MANIFEST).write_text(text + "\n")
    total = sum(path.stat().st_size for path in options.folder.iterdir())
    print(f"{len(packed)} artifacts, {total / 2**20:.1f} MiB in {options.folder}")
    return 0


def variants(
    name: str, dtype: str, target: str, options: argparse.Namespace
) -> Iterator[Packed]:
    """Yield a case as predicted, and as it is where libraries do less or more of it.

    Which of them is fastest is measured where there is a GPU, and no MLIR.
    """
    known: set[tuple[str, ...]] = set()
    for library in options.libraries:
        one = pack_case(name, dtype, target, options.folder, library)
        if one.file and one.calls in known:
            (options.folder / one.file).unlink()
            continue
        if one.file:
            known.add(one.calls)
        yield one


def packed_row(one: Packed) -> str:
    """Return a line for an artifact of a pack."""
    calls = f", calls {' '.join(one.calls)}" if one.calls else ""
    state = one.problem or f"{one.kernels} kernels, {len(one.externals)}{calls}"
    return f"{one.target} {one.dtype} {one.case} {one.library}: {state}"


def commit() -> str:
    """Return the commit of this tree, "" if it is none of git's."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
