"""Modules whose kernels are compiled by forks of a worker, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from magweld import api
from magweld.api import CompiledGraph
from magweld.artifact import Program
from magweld.compiler_options import CompileOptions
from magweld.importer.importer import import_graph
from magweld.runtime.container import encode_parts, encode_request
from magweld.runtime.program import LoadedProgram
from magweld.runtime.service import decode_answer
from magweld.runtime.worker_pool import WorkerPool

OPTIONS = CompileOptions(library="never")


def chain(x: Tensor, weights: Tensor) -> Tensor:
    """Three kernels: what one sums over rows the next needs whole."""
    product = (x @ weights).tanh()
    return (product.t() @ product).softmax(0).sum(0)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(1, preload=("magweld.compiler",))
    yield made
    made.close()


def side_by_side(pool: WorkerPool, text: str) -> Program:
    parts = (OPTIONS.text(), text, "2")
    payload = encode_parts([part.encode() for part in parts])
    task = "magweld.compiler:compile_side_by_side"
    return decode_answer(pool.run(task, payload, 600.0))


def test_parts_make_the_program_of_the_whole(pool: WorkerPool) -> None:
    inputs = [torch.randn(96, 64), torch.randn(64, 48)]
    imported = import_graph(make_fx(chain)(*inputs), inputs)
    settings, text = OPTIONS.text(), imported.text
    answer = pool.run(
        "magweld.compiler:compile_module", encode_request(settings, text), 600.0
    )
    whole = decode_answer(answer)
    program = side_by_side(pool, text)
    assert len(whole.objects) == 1
    assert len(program.objects) == 2
    assert replace(program, objects=whole.objects) == whole
    loaded = LoadedProgram(program, imported.run_external)
    compiled = CompiledGraph(imported, program, loaded, OPTIONS, None)
    torch.testing.assert_close(compiled(*inputs), chain(*inputs))


def test_one_kernel_is_no_parts(pool: WorkerPool) -> None:
    x = torch.randn(32)
    text = import_graph(make_fx(torch.sin)(x), [x]).text
    program = side_by_side(pool, text)
    assert len(program.objects) == 1


def test_no_lowering_is_told(pool: WorkerPool) -> None:
    text = """
    func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
      %0 = torch.operator "torch.no.such"(%x)
          : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> loc("made")
      return %0 : !torch.vtensor<[4],f32>
    }
    """
    program = side_by_side(pool, text)
    assert program.unlowered
    assert not program.objects


def test_large_modules_are_compiled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LARGE_TEXT", 0)
    monkeypatch.setenv("MAGWELD_WORKERS", "2")
    api.compile_service.cache_clear()
    inputs = [torch.randn(80, 64), torch.randn(64, 56)]
    compiled = api.compile_graph(make_fx(chain)(*inputs), inputs, options=OPTIONS)
    api.compile_service.cache_clear()
    assert len(compiled.program.objects) == 2
    torch.testing.assert_close(compiled(*inputs), chain(*inputs))
