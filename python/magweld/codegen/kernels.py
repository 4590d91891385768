"""Owns the compilation of kernels in the LLVM dialect to object code for a host CPU."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.joint_launch import JointLaunch, joint_module
from magweld.codegen.launch import Launch, launch_module
from magweld.codegen.llvm_text import translate_to_llvm_ir


def compile_kernels(
    module: object,
    launches: Sequence[Launch],
    target: HostTarget | None = None,
    joint: Sequence[JointLaunch] = (),
) -> bytes:
    """Compile a module in the LLVM dialect, with its launch functions.

    Args:
        module: `ir.Module` with kernels `void k(ptr..., i64 lo, i64 hi)`.
        launches: The launch functions to define beside them.
        target: What to compile for; the CPU of this process by default.
        joint: Launches of several kernels, which other objects may define.

    Returns:
        A relocatable object file.

    Raises:
        CodegenError: LLVM does not take the code.
    """
    text = translate_to_llvm_ir(module)
    target = target or HostTarget.detect()
    texts = [text, launch_module(launches, target.portable)]
    if joint:
        texts.append(joint_module(joint, target.portable))
    return emit_object(texts, target)
