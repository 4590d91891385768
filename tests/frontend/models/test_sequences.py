"""Small models over sequences: one graph each, one record, then hits."""

from __future__ import annotations

import math

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced
from torch import nn
from torch.nn import functional as F


class Cell(nn.Module):
    """An LSTM cell written out; the gate number is an argument."""

    def __init__(self, width=4):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 2 * width, width) - 0.5)
        self.bias = nn.Parameter(torch.rand(4, width))

    def forward(self, x, state, gates=4):
        h, c = state
        joined = torch.cat((x, h), -1)
        parts = [joined @ self.weight[k] + self.bias[k] for k in range(gates)]
        while len(parts) < 4:
            parts.append(parts[-1])
        i, f, g, o = parts
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class CellStack(nn.Module):
    """Steps of a stack of cells, unrolled; states are kept in a tuple of buffers."""

    def __init__(self, layers=2, width=4):
        super().__init__()
        self.cells = nn.ModuleList(Cell(width) for _ in range(layers))
        self.states = tuple(torch.zeros(2, 1, width) for _ in range(layers))

    def forward(self, steps):
        for state in self.states:
            state.zero_()
        outputs = []
        for step in range(steps.shape[0]):
            x = steps[step]
            for cell, state in zip(self.cells, self.states, strict=True):
                x, c = cell(x, (state[0], state[1]))
                state[0].copy_(x)
                state[1].copy_(c)
            outputs.append(x)
        return torch.stack(outputs), self.states


class BuiltIn(nn.Module):
    """The LSTM of torch, in both directions; nested results."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 3, num_layers=2, bidirectional=True)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return F.relu(y), (h, c)


class DecoderStep(nn.Module):
    """One step of a decoder with attention over the outputs of the encoder."""

    def __init__(self, words=11, width=8, length=5):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.attn = nn.Linear(2 * width, length)
        self.combine = nn.Linear(2 * width, width)
        self.gru = nn.GRU(width, width)
        self.out = nn.Linear(width, words)

    def forward(self, token, hidden, encoded):
        embedded = self.embedding(token).view(1, 1, -1)
        weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), 1)
        applied = torch.bmm(weights.unsqueeze(0), encoded.unsqueeze(0))
        x = F.relu(self.combine(torch.cat((embedded[0], applied[0]), 1)).unsqueeze(0))
        x, hidden = self.gru(x, hidden)
        return F.log_softmax(self.out(x[0]), 1), hidden, weights


class Attention(nn.Module):
    """Heads over a sequence; a mask is optional."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def transpose_for_scores(self, x):
        shape = (*x.size()[:-1], self.heads, x.size(-1) // self.heads)
        return x.view(shape).permute(0, 2, 1, 3)

    def scores(self, query, key):
        return query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))

    def forward(self, hidden, mask=None, output_attentions=False):
        query = self.transpose_for_scores(self.query(hidden))
        key = self.transpose_for_scores(self.key(hidden))
        value = self.transpose_for_scores(self.value(hidden))
        scores = self.scores(query, key)
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, -1)
        context = (weights @ value).permute(0, 2, 1, 3).contiguous()
        context = context.view((*context.size()[:-2], -1))
        return (context, weights) if output_attentions else (context,)


class Disentangled(Attention):
    """Adds scores of relative positions to those of contents."""

    def __init__(self, width, heads, distances=4):
        super().__init__(width, heads)
        self.relative = nn.Embedding(2 * distances, width)
        self.distances = distances

    def scores(self, query, key):
        scores = super().scores(query, key)
        size = min(max(query.size(-2), 1), 512)
        index = torch.arange(size)
        relative = (index[:, None] - index[None, :] + self.distances).clamp(
            0, 2 * self.distances - 1
        )
        positions = self.relative.weight.view(2 * self.distances, self.heads, -1)
        scale = math.sqrt(query.size(-1) * 3)
        expanded = torch.einsum("bhqd,phd->bhqp", query, positions) / scale
        shape = (*scores.size()[:2], *relative.shape)
        return scores + torch.gather(expanded, -1, relative.expand(shape))


class EncoderLayer(nn.Module):
    """Attention and a feed-forward part, with tuples passed along."""

    def __init__(self, attention, width):
        super().__init__()
        self.attention = attention
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.chunk = 0

    def feed_forward(self, x):
        return self.norm2(self.down(F.gelu(self.up(x))) + x)

    def forward(self, hidden, mask=None, output_attentions=False):
        outputs = self.attention(hidden, mask, output_attentions=output_attentions)
        attended = self.norm1(outputs[0] + hidden)
        return (self.feed_forward(attended), *outputs[1:])


class Encoder(nn.Module):
    """Embeddings and layers; all hidden states are returned."""

    def __init__(self, kind=Attention, words=13, width=8, layers=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(16, width)
        self.register_buffer("ids", torch.arange(16).expand((1, -1)))
        self.layers = nn.ModuleList(
            EncoderLayer(kind(width, 2), width) for _ in range(layers)
        )

    def forward(self, tokens, mask=None, **kwargs):
        length = tokens.size(1)
        hidden = self.words(tokens) + self.positions(self.ids[:, :length])
        if mask is not None:
            mask = (1.0 - mask[:, None, None, :]) * -1e9
        states, attentions = (hidden,), ()
        for layer in self.layers:
            outputs = layer(hidden, mask, **kwargs)
            hidden = outputs[0]
            states = (*states, hidden)
            attentions = attentions + outputs[1:]
        return {"last": hidden, "states": states, "attentions": attentions}


class TwoTowers(nn.Module):
    """An image tower and a text tower, compared by cosine."""

    def __init__(self):
        super().__init__()
        self.text = Encoder()
        self.vision = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, padding=1), nn.BatchNorm2d(8), nn.SiLU()
        )
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, tokens, pixels):
        if hasattr(self, "token_type_ids"):
            tokens = tokens + self.token_type_ids
        text = self.text(tokens)["last"][:, 0, :]
        image = self.vision(pixels).mean((2, 3))
        text = text / text.norm(p=2, dim=-1, keepdim=True)
        image = image / image.norm(p=2, dim=-1, keepdim=True)
        logits = text @ image.t() / self.temperature
        return logits, logits.t()


def tokens(batch=2, length=6):
    return torch.randint(0, 11, (batch, length))


MODELS = [
    (Cell, lambda: (torch.rand(1, 4), (torch.rand(1, 4), torch.rand(1, 4)))),
    (CellStack, lambda: (torch.rand(10, 1, 4),)),
    (BuiltIn, lambda: (torch.rand(5, 2, 4),)),
    (DecoderStep, lambda: (tokens(1, 1), torch.rand(1, 1, 8), torch.rand(5, 8))),
    (Encoder, lambda: (tokens(), torch.ones(2, 6))),
    (lambda: Encoder(Disentangled), lambda: (tokens(),)),
    (TwoTowers, lambda: (tokens(), torch.rand(2, 3, 8, 8))),
]
NAMES = ["cell", "stack", "lstm", "decoder", "encoder", "disentangled", "towers"]


@pytest.mark.parametrize(("make", "inputs"), MODELS, ids=NAMES)
def test_one_graph_and_hits(make, inputs):
    torch.manual_seed(0)
    model = make().eval()
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT, HIT):
            arguments = inputs()
            run_and_check(target, [outcome], 1, model(*arguments), *arguments)
    assert target.stats()["graphs"] == 1


def test_int_arguments_make_records():
    torch.manual_seed(0)
    model = Cell().eval()
    target = traced(model)
    x, state = torch.rand(1, 4), (torch.rand(1, 4), torch.rand(1, 4))
    with torch.no_grad():
        for number, gates in enumerate((1, 2)):
            expected = model(x, state, gates)
            run_and_check(target, [MISS, HIT], number + 1, expected, x, state, gates)


def test_keyword_arguments_pass_through():
    torch.manual_seed(0)
    model = Encoder().eval()
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT):
            x = tokens()
            expected = model(x, output_attentions=True)
            run_and_check(target, [outcome], 1, expected, x, output_attentions=True)


@pytest.mark.parametrize("kind", [Attention, Disentangled])
def test_all_batches_and_lengths_share_a_record(kind):
    torch.manual_seed(0)
    model = Encoder(kind).eval()
    target = traced(model, dynamic={"tokens": (0, 1)})
    sizes = ((MISS, 4, 6), (HIT, 8, 7), (HIT, 3, 5), (HIT, 2, 9))
    with torch.no_grad():
        for outcome, batch, length in sizes:
            x = tokens(batch, length)
            run_and_check(target, [outcome], 1, model(x), x)


def test_another_length_is_another_record():
    torch.manual_seed(0)
    model = Encoder().eval()
    target = traced(model, dynamic={"tokens": (0,)})
    with torch.no_grad():
        for outcome, batch in ((MISS, 5), (HIT, 7), (HIT, 3)):
            x = tokens(batch)
            run_and_check(target, [outcome], 1, model(x), x)
        x = tokens(4, 9)
        run_and_check(target, [MISS, HIT], 2, model(x), x)
