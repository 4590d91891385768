"""Owns the reasons why a graph that needs gradients is left to torch as a whole."""

from __future__ import annotations

from typing import Final

from magweld.importer.refusals import Refusal

GRAD_MODE: Final = Refusal(
    "training-grad-mode",
    "the program leaves another grad mode than it found",
    "restore the grad mode, e.g. by using torch.no_grad() as a context manager",
)
WRITTEN_INPUT: Final = Refusal(
    "training-written-input",
    "the graph writes to {detail}, which takes part in the autograd graph",
    "use the out-of-place form of the operator",
)
OUTPUT_VIEW: Final = Refusal(
    "training-output-view",
    "an output that needs gradients shares memory with {detail}",
    "return a copy of it, or only one of them",
)
INTERMEDIATE: Final = Refusal(
    "training-intermediate-output",
    "another output follows from it, {detail}",
    "return a copy of it, which no other output follows from",
)
PARTS: Final = Refusal(
    "training-backward-parts",
    "its outputs lead gradients to different inputs, {detail}",
    "return fewer outputs that need gradients from one call",
)
RESTRICTED_VIEW: Final = Refusal(
    "training-restricted-view",
    "an output that needs gradients is a view that torch does not let be written to",
    "return a copy of it",
)
RANDOM_NUMBERS: Final = Refusal(
    "training-random",
    "the forward half would draw other random numbers than eager torch: {detail}",
    "make the tensors of random operators contiguous",
)
OTHER_FORM: Final = Refusal(
    "training-output-form",
    "an output of the forward half has other strides or another type: {detail}",
    "report it with the program",
)
JOINT: Final = Refusal(
    "training-joint-graph",
    "torch cannot trace forward and backward together: {detail}",
    "wrap the call in torch.no_grad() if no gradients are needed",
)
DECOMPOSITION: Final = Refusal(
    "training-decomposition",
    "torch's decomposition of {detail} gives other values than the operator",
    "the captured graph runs through torch, gradients included",
)
WORKSPACE: Final = Refusal(
    "training-workspace",
    "gradients of a recurrent layer read a workspace that only torch makes",
    "torch runs the layer, and the rest is compiled",
)
SPARSE: Final = Refusal(
    "training-sparse-gradient",
    "the gradient of a table is sparse",
    "leave sparse=True away if the table is small",
)
AUTOCAST: Final = Refusal(
    "training-autocast",
    "autocast is on",
    "cast the model, or leave autocast for the traced call",
)
ANOMALY: Final = Refusal(
    "training-anomaly",
    "the search for anomalies is on",
    "switch it off, it looks at each operator of torch",
)
