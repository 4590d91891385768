"""Declares the operators that torchvision's wheel defines in CUDA-only native code.

timm and transformers import torchvision; beside a CPU build of torch its native
library cannot be loaded, and its Python part fails on operators that do not exist.
None of the models here calls them: a schema is enough.
"""

import torch

_BOX = "Tensor input, Tensor rois, float spatial_scale, SymInt h, SymInt w"
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({_BOX}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward({_BOX}) -> Tensor",
    f"ps_roi_align({_BOX}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_BOX}) -> Tensor",
    f"roi_pool({_BOX}) -> (Tensor, Tensor)",
    f"_roi_pool_backward({_BOX}) -> Tensor",
    f"ps_roi_pool({_BOX}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_BOX}) -> Tensor",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset) -> Tensor",
    "_deform_conv2d_backward(Tensor grad, Tensor input) -> Tensor",
)


def declare() -> torch.library.Library | None:
    """Declare the schemas if torchvision's native library is not usable.

    Returns:
        The library that holds the declarations, to be kept alive by the caller; None
        if torchvision has its operators.
    """
    try:
        import torchvision  # noqa: F401

        return None
    except (ImportError, RuntimeError):
        pass
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    return library
