"""Sentence embeddings by a C program, compared with torch: no Python where it runs.

It compiles MiniLM to a portable artifact, builds `sentences.c` with the C compiler `cc`
and runs it on the sentences of the demo. What it makes stays in the folder that the
command line names, if it names one.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import models
import numpy as np
import torch
from torch import Tensor, nn

import magweld
from magweld.codegen.host import LEVELS

TOKENS = 48


class Encoder(nn.Module):
    """The sentence model with a mask that is the same program for all masks.

    transformers looks into a mask of two dimensions to see whether it is needed; one of
    four it takes as it is.
    """

    def __init__(self, encoder: models.SentenceEncoder) -> None:
        super().__init__()
        self.model = encoder.model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return one unit vector a sentence, [batch, 384] f32."""
        batch, tokens = input_ids.shape
        kept = (attention_mask != 0)[:, None, None, :]
        kept = kept.expand(batch, 1, tokens, tokens)
        states = self.model(input_ids=input_ids, attention_mask=kept)
        weights = attention_mask.unsqueeze(-1).to(torch.float32)
        summed = (states.last_hidden_state * weights).sum(1)
        mean = summed / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def main(
    folder: Path, layers: int | None = None, levels: Sequence[str] = LEVELS
) -> None:
    """Compile, build, run and compare.

    Args:
        folder: Where the files go.
        layers: How many layers the model keeps; None is all.
        levels: CPUs that code is made for.

    Raises:
        AssertionError: The C program gives other results.
    """
    loaded = models.load_sentence_model()
    stack = loaded.encoder.model.encoder
    stack.layer = stack.layer[:layers]
    tokens = loaded.tokens(models.SENTENCES, TOKENS)
    artifact = magweld.compile_portable(Encoder(loaded.encoder), tokens, levels=levels)
    artifact.save(folder / "minilm.mwp")
    arrays = {name: tensor.numpy() for name, tensor in tokens.items()}
    (folder / "tokens.bin").write_bytes(
        b"".join(array.tobytes() for array in arrays.values())
    )
    here, runtime = Path(__file__).parent, resources.files("magweld.deploy")
    sources = (here / "sentences.c", f"{runtime}/magweld.c", f"-I{runtime}")
    program = folder / "sentences"
    build = ["cc", "-std=c11", "-O2", *sources, "-o", program, "-lm", "-pthread"]
    subprocess.run(build, check=True)
    files = [folder / name for name in ("minilm.mwp", "tokens.bin", "embeddings.bin")]
    subprocess.run([program, *files], check=True)
    found = np.fromfile(files[-1], np.float32).reshape(len(models.SENTENCES), -1)
    with torch.no_grad():
        expected = loaded.encoder(**tokens).numpy()
    difference = np.abs(found - expected).max()
    same = np.array_equal(found, artifact(**arrays))
    print(f"largest difference from torch {difference:.1e}, as from Python: {same}")
    assert difference < 1e-5
    assert same


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MiniLM in C, compared with torch.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the files go")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as name:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        main(folder or Path(name))
