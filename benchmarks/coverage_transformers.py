"""The transformers suite of the coverage table: small random models by architecture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
import transformers.generation
import transformers.masking_utils
import transformers.modeling_utils
from coverage_check import Arguments, Case, Inputs
from transformers.models.auto import modeling_auto as auto

VOCABULARY = 128
LENGTH = 12
LARGEST = 30_000_000  # parameters
# Names of sizes in configurations with the value that makes a small model.
_SMALL: dict[int, str] = {
    VOCABULARY: "vocab_size decoder_vocab_size text_vocab_size",
    64: (
        "intermediate_size d_ff dim_feedforward n_inner ffn_dim hidden_dim"
        " encoder_ffn_dim decoder_ffn_dim moe_intermediate_size"
        " shared_expert_intermediate_size max_position_embeddings n_positions"
        " max_source_positions max_target_positions max_seq_len image_size"
        " mamba_d_state dff ffn_hidden_size attention_window"
    ),
    32: (
        "hidden_size d_model n_embd dim embedding_size emb_dim encoder_embed_dim"
        " word_embed_proj_dim num_mel_bins conv_dim true_hidden_size"
        " intra_bottleneck_size q_lora_rank kv_lora_rank decoder_hidden_size"
        " embed_dim decoder_attention_dim"
    ),
    16: "head_dim patch_size",
    8: (
        "d_kv qk_rope_head_dim qk_nope_head_dim v_head_dim attention_head_size"
        " mamba_n_heads num_conv_pos_embeddings"
    ),
    4: (
        "num_attention_heads n_head n_heads num_heads encoder_attention_heads"
        " decoder_attention_heads num_key_value_heads num_conv_pos_embedding_groups"
        " num_experts num_local_experts n_routed_experts"
    ),
    2: (
        "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers"
        " num_decoder_layers num_encoder_layers num_experts_per_tok"
    ),
    1: (
        "pad_token_id bos_token_id eos_token_id decoder_start_token_id n_group"
        " topk_group"
    ),
}


@dataclass(frozen=True)
class Shape:
    """How models of a kind are built and called.

    Attributes:
        mapping: Table of transformers that names the class by model type.
        draw: Draws keyword arguments.
        settings: Settings of the configuration beside the small sizes.
        cached: Whether a cache with earlier tokens is passed.
    """

    mapping: dict[str, Any]
    draw: Callable[[Any], dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    cached: bool = False


def _tokens(length: int = LENGTH) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (2, length))


def _text(config: Any) -> dict[str, Any]:
    return {"input_ids": _tokens(), "attention_mask": torch.ones(2, LENGTH).long()}


def _pair(config: Any) -> dict[str, Any]:
    return {**_text(config), "decoder_input_ids": _tokens(7)}


def _image(config: Any) -> dict[str, Any]:
    size = getattr(config, "image_size", 64) or 64
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    channels = getattr(config, "num_channels", 3) or 3
    return {"pixel_values": torch.randn(1, channels, height, width)}


def _sound(config: Any) -> dict[str, Any]:
    return {"input_values": torch.randn(1, 3200)}


def _next_token(config: Any) -> dict[str, Any]:
    return {"input_ids": _tokens(1)}


_KINDS: dict[str, Shape] = {
    "masked": Shape(auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, _text),
    "causal": Shape(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, _text),
    "causal-no-cache": Shape(
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, _text, {"use_cache": False}
    ),
    "step": Shape(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, _next_token, cached=True),
    "seq2seq": Shape(auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, _pair),
    "image": Shape(auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, _image),
    "audio": Shape(auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES, _sound),
}
_FEW = ("bloom", "gemma2", "gpt2", "gpt_neox", "llama", "mistral", "opt", "qwen3")


def _settings(kind: type) -> dict[str, Any]:
    """Return small sizes for a configuration and for those that it consists of."""
    default = kind()
    known = vars(default)
    wanted = {name: n for n, names in _SMALL.items() for name in names.split()}
    found: dict[str, Any] = {
        name: value
        for name, value in wanted.items()
        if isinstance(known.get(name), int) or name in kind.attribute_map
    }
    for name in kind.sub_configs:
        part = getattr(default, name, None)
        if part is not None:
            found[name] = {"model_type": part.model_type, **_settings(type(part))}
    return found


def _build(model_type: str, shape: Shape) -> tuple[torch.nn.Module, Inputs]:
    kind = type(transformers.AutoConfig.for_model(model_type))
    config = kind(**{**_settings(kind), **shape.settings})
    name = shape.mapping[model_type]
    name = name if isinstance(name, str) else name[0]
    with torch.device("meta"):
        size = sum(p.numel() for p in getattr(transformers, name)(config).parameters())
    if size > LARGEST:
        raise ValueError(f"{size} parameters in spite of the small sizes")
    model = getattr(transformers, name)(config)
    model.eval()

    def inputs() -> Arguments:
        drawn = shape.draw(config)
        if shape.cached:
            with torch.no_grad():
                earlier = model(input_ids=_tokens(), use_cache=True)
            drawn["past_key_values"] = copy.deepcopy(earlier.past_key_values)
        return (), drawn

    return model, inputs


def cases() -> Iterator[Case]:
    """Yield the cases; architectures that need more than small sizes fail eagerly."""
    for label, shape in _KINDS.items():
        for model_type in shape.mapping:
            if label in ("causal-no-cache", "step") and model_type not in _FEW:
                continue

            def build(
                model_type: str = model_type, shape: Shape = shape
            ) -> tuple[torch.nn.Module, Inputs]:
                return _build(model_type, shape)

            yield Case(model_type, f"{label}:{model_type}", build)
