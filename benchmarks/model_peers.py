"""The peers of the whole-model benchmark: each makes a call of a model and inputs.

A peer that is not installed or cannot take a model raises; the benchmark then prints
its reason. onnxruntime, onnxscript and iree-base-{compiler,runtime} are the optional
extra `peers`.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

Inputs = tuple[Tensor, ...]
Call = Callable[[], Any]


def eager(model: nn.Module, inputs: Inputs) -> Call:
    """The model as it is."""
    return lambda: model(*inputs)


def inductor(mode: str | None, model: nn.Module, inputs: Inputs) -> Call:
    """torch.compile."""
    compiled = torch.compile(model, dynamic=False, mode=mode)
    return lambda: compiled(*inputs)


def magweld(options: CompileOptions, model: nn.Module, inputs: Inputs) -> Call:
    """The model, traced."""
    traced = frontend.trace(model, backend=partial(compile_graph, options=options))
    return lambda: traced(*inputs)


def onnxruntime(model: nn.Module, inputs: Inputs) -> Call:
    """ONNX Runtime on what torch.onnx exports, all its optimisations on."""
    import onnxruntime as ort

    exported = torch.onnx.export(model, inputs, dynamo=True, verbose=False)
    assert exported is not None
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Its threads spin for tens of milliseconds behind a call by default, on the cores
    # of the peer whose turn is next: its own calls take as long without.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = ort.InferenceSession(
        exported.model_proto.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    names = [argument.name for argument in session.get_inputs()]
    feed = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def iree(model: nn.Module, inputs: Inputs) -> Call:
    """IREE for this CPU on the torch dialect of torch-mlir, weights as constants."""
    import iree.compiler
    import iree.runtime
    from torch_mlir.fx import export_and_import

    twin = copy.deepcopy(model)
    for module in twin.modules():
        # torch-mlir looks for all buffers among the persistent ones.
        module._non_persistent_buffers_set.clear()
    imported = export_and_import(twin, *inputs, output_type="torch")
    text = io.BytesIO()
    imported.operation.write_bytecode(text)
    binary = iree.compiler.compile_str(
        text.getvalue(),
        input_type="torch",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    threads = torch.get_num_threads()
    iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = iree.runtime.Config("local-task")
    loaded = iree.runtime.VmModule.copy_buffer(config.vm_instance, binary)
    context = iree.runtime.SystemContext(vm_modules=[loaded], config=config)
    function = context.modules.module["main"]
    arrays = [
        iree.runtime.asdevicearray(config.device, value.numpy()) for value in inputs
    ]
    return lambda: _tensors(function(*arrays))


def _tensors(made: Any) -> Any:
    """Return what an IREE function has made as tensors."""
    if isinstance(made, list | tuple):
        return [_tensors(one) for one in made]
    return torch.from_numpy(made.to_host())


PEERS: dict[str, Callable[[nn.Module, Inputs], Call]] = {
    "eager": eager,
    "torch.compile": partial(inductor, None),
    "max-autotune": partial(inductor, "max-autotune-no-cudagraphs"),
    "onnxruntime": onnxruntime,
    "iree": iree,
    "magweld": partial(magweld, CompileOptions()),
    "registers": partial(magweld, CompileOptions(fusion="registers")),
    "unfused": partial(magweld, CompileOptions(fusion="none")),
}
