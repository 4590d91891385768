"""Owns the refusals of ahead-of-time compilation and of artifact files."""

from __future__ import annotations

from magweld.diagnostics import NamedError, Refusal


class ArtifactError(NamedError):
    """A file that is no intact artifact, or none for this machine."""


NOT_ONE_GRAPH = Refusal(
    "artifact-no-graph",
    "the program is not one graph",
    "trace() takes it and runs the rest in Python; explain() tells where it breaks",
)
DEPENDS_ON_DATA = Refusal(
    "artifact-data-dependent",
    "what the program does depends on the elements of a tensor",
    "use torch.where, or compile the parts before and after separately",
)
CONTROL = Refusal(
    "artifact-control",
    "programs for GPUs do not branch or loop on tensor values",
    "use torch.where, or compile the parts before and after separately",
)
REPEATED_INPUT = Refusal(
    "artifact-repeated-input",
    "one tensor is passed as two inputs",
    "pass a copy for one of them",
)
CHANGES_STATE = Refusal(
    "artifact-state-change",
    "the program changes Python objects, which an artifact has not",
    "return the new values in place of storing them",
)
INPUT_KIND = Refusal(
    "artifact-input",
    "an input is no tensor, plain constant, tuple, list or dict of these",
    "pass tensors, numbers, strings, booleans or None, in tuples, lists or dicts",
)
DERIVED_INPUT = Refusal(
    "artifact-derived-input",
    "the graph reads a tensor that is reached through an input",
    "pass that tensor as an input of its own",
)
OUTPUT_KIND = Refusal(
    "artifact-output",
    "the program returns what is no tensor, plain constant, tuple, list or dict",
    "return tensors in a tuple or a dict",
)
RETURNS_ARGUMENT = Refusal(
    "artifact-returns-argument",
    "the program returns a list or dict that it was given",
    "return a new one that holds the same",
)
SHARED_STATE = Refusal(
    "artifact-shared-state",
    "the graph writes to tensors, and some of its tensors share memory",
    "make the module hold tensors of their own",
)
EXTERNAL_CALL = Refusal(
    "artifact-external",
    "an operator that runs through torch has an argument that cannot be saved",
    "keep the operator out of the compiled part",
)
EXPORT_INPUTS = Refusal(
    "export-inputs",
    "the exported program does not take these arguments",
    "pass arguments as the program was exported with; only its dynamic sizes may vary",
)
EXPORT_SIZES = Refusal(
    "export-sizes",
    "the exported program leaves sizes open and has no example inputs",
    "pass inputs of the sizes that the artifact is for",
)
EXPORT_CONDITION = Refusal(
    "export-condition",
    "the exported program runs a part of itself with autocast, as a function of its "
    "own, or in a loop that carries numbers",
    "export the parts before and after, or pass the module itself",
)
MODULE_DAMAGED = Refusal(
    "module-damaged",
    "the file holds no intact module of MLIR",
    "pass what torch-mlir wrote, as text or bytecode",
)
MODULE_FUNCTION = Refusal(
    "module-function",
    "the module has no function that can be taken for the program",
    "pass a module with one function, or with one that is called main",
)
WRITES_VALUE = Refusal(
    "module-write",
    "an operator of the module writes to its operands in torch, which here are values",
    "export it in evaluation mode: in training batch_norm writes running statistics",
)
MODULE_OPERATION = Refusal(
    "module-operation",
    "the module holds what is no operator of torch on value tensors",
    "let torch-mlir make it with output_type='torch'",
)
ONNX_PACKAGE = Refusal(
    "onnx-package",
    "models of ONNX are read by the package onnx, which cannot be imported",
    "pip install 'magweld[onnx]'",
)
ONNX_DAMAGED = Refusal(
    "onnx-damaged",
    "the file holds no intact model of ONNX",
    "onnx.checker.check_model tells what is wrong with it",
)
ONNX_OPERATOR = Refusal(
    "onnx-operator",
    "an operator of the model has no conversion into operators of torch",
    "write the model with another opset, or export it by torch.export",
)
NO_INPUTS = Refusal(
    "artifact-no-inputs",
    "there are no example inputs",
    "pass the arguments of a call; exported programs alone have theirs",
)
