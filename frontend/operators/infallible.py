"""Owns which operators of ATen raise for no values of their tensors.

Shapes, types and numbers are guarded, so what is asked is only whether elements decide.
An operator that is not listed may raise: then a graph keeps copies of what it writes
in front of it, and the program runs again when it does.
"""

from __future__ import annotations

from typing import Any, Final

import torch

_NAMESPACE: Final = "aten::"

# Element-wise operators on integers: no division, remainder or shift.
_ON_INTEGERS: Final = frozenset(
    (
        "abs add addcmul bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp"
        " clamp_max clamp_min clip clone copysign eq equal floor fmax fmin ge gt"
        " isfinite isinf isnan isneginf isposinf le logical_and logical_not logical_or"
        " logical_xor lt masked_fill max maximum min minimum mul nan_to_num ne neg"
        " positive relu relu6 round rsub sgn sign signbit square sub threshold"
        " true_divide trunc where __xor __ixor hardtanh"
    ).split()
)

# Operators that are not element-wise.
_OTHERS: Final = frozenset(
    (
        # A number that is read: what takes it may refuse it, and is noted for that.
        "_local_scalar_dense"
        # Views.
        " _reshape_alias _unsafe_view alias as_strided chunk detach diagonal expand"
        " expand_as flatten lift lift_fresh movedim narrow numpy_T permute real imag"
        " reshape reshape_as select slice split split_with_sizes squeeze swapaxes"
        " swapdims t transpose unbind unfold unsafe_chunk unsafe_split"
        " unsafe_split_with_sizes unsqueeze view view_as view_as_complex view_as_real"
        " unflatten adjoint mT resolve_conj resolve_neg _conj _neg_view"
        # Copies and new tensors.
        " _to_copy clone contiguous copy to type_as empty empty_like empty_permuted"
        " empty_strided eye arange linspace logspace full full_like new_empty"
        " new_empty_strided new_full new_ones new_zeros ones ones_like scalar_tensor"
        " zero zeros zeros_like fill rand rand_like randint randint_like randn"
        " randn_like randperm normal_functional uniform dropout native_dropout"
        " _fused_dropout alpha_dropout feature_dropout exponential resize set"
        # Sums and other reductions.
        " all amax amin aminmax any argmax argmin argsort count_nonzero cummax cummin"
        " cumprod cumsum logcumsumexp logsumexp mean median mode nanmean nanmedian"
        " nansum norm prod sort std std_mean sum topk trace var var_mean"
        " linalg_vector_norm _softmax _log_softmax softmax log_softmax _safe_softmax"
        " kthvalue sum_to_size"
        # Products and convolutions.
        " addbmm addmm addmv addr baddbmm bmm _convolution convolution"
        " convolution_overrideable mkldnn_convolution _mkldnn_transpose dot linear"
        " mkldnn_linear matmul mm mv outer ger vdot inner tensordot einsum kron"
        " _slow_conv2d_forward slow_conv3d_forward _nnpack_spatial_convolution"
        " mkldnn_rnn_layer _addmm_activation _scaled_dot_product_attention_math"
        " _scaled_dot_product_flash_attention_for_cpu _fused_sdp_choice"
        " _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention"
        " _scaled_dot_product_cudnn_attention scaled_dot_product_attention"
        # Normalisation.
        " native_batch_norm _native_batch_norm_legit native_group_norm"
        " _native_batch_norm_legit_no_training _batch_norm_with_update"
        " native_layer_norm"
        " cudnn_batch_norm miopen_batch_norm batch_norm_stats rms_norm _fused_rms_norm"
        " _weight_norm_interface _weight_norm"
        # Windows, sampling by position, padding.
        " _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d"
        " adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool3d avg_pool1d"
        " avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool2d_with_indices"
        " max_pool3d_with_indices mkldnn_max_pool2d im2col col2im constant_pad_nd"
        " reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d"
        " replication_pad2d replication_pad3d upsample_bicubic2d upsample_bilinear2d"
        " upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d"
        " upsample_trilinear3d _upsample_nearest_exact1d _upsample_nearest_exact2d"
        " _upsample_bilinear2d_aa _upsample_bicubic2d_aa pixel_shuffle pixel_unshuffle"
        " channel_shuffle native_channel_shuffle"
        # Arrangement.
        " cat concat concatenate diag_embed diff flip fliplr flipud hstack meshgrid"
        " repeat roll rot90 stack tile tril tril_indices triu triu_indices vstack"
        " slice_scatter select_scatter diagonal_scatter as_strided_scatter block_diag"
        " glu cartesian_prod _cdist_forward cdist _euclidean_dist"
        " cosine_similarity pairwise_distance"
        # Losses without indices or logarithms of what must be a probability.
        " huber_loss kl_div l1_loss mse_loss poisson_nll_loss smooth_l1_loss"
        " soft_margin_loss binary_cross_entropy_with_logits hinge_embedding_loss"
        # Gradients of the above.
        " _adaptive_avg_pool2d_backward _log_softmax_backward_data"
        " _softmax_backward_data avg_pool2d_backward convolution_backward elu_backward"
        " glu_backward hardsigmoid_backward hardswish_backward hardtanh_backward"
        " huber_loss_backward leaky_relu_backward log_sigmoid_backward"
        " max_pool2d_with_indices_backward mish_backward mse_loss_backward"
        " native_batch_norm_backward native_group_norm_backward"
        " native_layer_norm_backward select_backward slice_backward"
        " smooth_l1_loss_backward softplus_backward upsample_bilinear2d_backward"
        " upsample_nearest2d_backward log_sigmoid_forward hardswish log_sigmoid"
        " mkldnn_rnn_layer_backward reflection_pad2d_backward"
        " _scaled_dot_product_flash_attention_for_cpu_backward prelu _prelu_kernel"
        " _prelu_kernel_backward rrelu_with_noise cross dist renorm cov corrcoef"
        " fft_fft fft_ifft fft_rfft fft_irfft _fft_c2c _fft_r2c _fft_c2r complex polar"
        " stft hann_window hamming_window"
        # In several tensors at a time: of those above.
        " _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_copy _foreach_lerp"
        " _foreach_maximum _foreach_mul _foreach_neg _foreach_norm _foreach_sqrt"
        " _foreach_sub _foreach_zero _foreach_div _foreach_pow _foreach_exp"
        " _fused_adam _fused_adamw _fused_sgd"
    ).split()
)


# Probabilities and deviations are numbers here, tensors in other overloads.
_OF_NUMBERS: Final = frozenset(
    {
        torch.ops.aten.bernoulli.p,
        torch.ops.aten.bernoulli_.float,
        torch.ops.aten.normal_.default,
    }
)


def raises_for_no_values(func: Any) -> tuple[bool, bool]:
    """Return whether an operator raises for no values, and whether only with floats."""
    plain: str = func._schema.name.removesuffix("_")
    if not plain.startswith(_NAMESPACE):
        # Somebody's own: it may raise for any reason.
        return False, False
    name = plain.removeprefix(_NAMESPACE)
    if name in _OTHERS or name in _ON_INTEGERS or func in _OF_NUMBERS:
        return True, False
    if torch.Tag.nondeterministic_seeded in func.tags:
        return False, False
    pointwise = torch.Tag.pointwise in func.tags
    return pointwise, pointwise
