"""Small vision models: one graph each, one record, then hits."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from topic_checks import HIT, MISS, agree, run_and_check, traced
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    """A basic block; the sum is made in place."""

    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            conv = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(outside))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    """Eighteen layers, narrow."""

    def __init__(self, width=4, classes=5):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for number in range(4):
            inside, outside = width << max(number - 1, 0), width << number
            first = Residual(inside, outside, 1 if number == 0 else 2)
            layer = nn.Sequential(first, Residual(outside, outside))
            setattr(self, f"layer{number + 1}", layer)
        self.fc = nn.Linear(width << 3, classes)

    def features(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        maps = []
        for name in ("layer1", "layer2", "layer3", "layer4"):
            x = getattr(self, name)(x)
            maps.append(x)
        return maps

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x)[-1], 1)
        return self.fc(torch.flatten(x, 1))


def concatenating(norm, relu, conv):
    """Make the closure that a dense layer runs over all features before it."""

    def bottleneck(*inputs):
        return conv(relu(norm(torch.cat(inputs, 1))))

    return bottleneck


class DenseLayer(nn.Module):
    """Runs a closure from a factory, over a growing list of features."""

    def __init__(self, inside, growth):
        super().__init__()
        self.add_module("norm1", nn.BatchNorm2d(inside))
        self.add_module("relu1", nn.ReLU(inplace=True))
        self.add_module("conv1", nn.Conv2d(inside, growth, 1, bias=False))
        self.add_module("norm2", nn.BatchNorm2d(growth))
        self.add_module("conv2", nn.Conv2d(growth, growth, 3, 1, 1, bias=False))
        self.drop_rate = 0.0

    def forward(self, *features):
        function = concatenating(self.norm1, self.relu1, self.conv1)
        new = self.conv2(F.relu(self.norm2(function(*features))))
        if self.drop_rate > 0:
            new = F.dropout(new, self.drop_rate, self.training)
        return new


class DenseNet(nn.Module):
    """Two dense blocks with a transition."""

    def __init__(self, growth=4, layers=(2, 2)):
        super().__init__()
        self.stem = nn.Conv2d(3, growth, 3, 1, 1)
        width = growth
        self.blocks = nn.ModuleList()
        for count in layers:
            block = nn.ModuleDict()
            for number in range(count):
                layer = DenseLayer(width + number * growth, growth)
                block[f"layer{number}"] = layer
            self.blocks.append(block)
            width += count * growth
        self.classifier = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            features = [x]
            for _, layer in block.items():
                features.append(layer(*features))
            x = torch.cat(features, 1)
        x = F.adaptive_avg_pool2d(F.relu(x, inplace=True), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class Disparity(nn.Module):
    """An encoder and decoder that keeps its outputs as attributes."""

    def __init__(self):
        super().__init__()
        self.encoder = ResNet18()
        self.up = nn.ModuleList(nn.Conv2d(w, 4, 3, 1, 1) for w in (32, 16, 8, 4))
        self.heads = nn.ModuleList(nn.Conv2d(4, 2, 3) for _ in range(4))
        self.merge = nn.ModuleList(nn.Conv2d(6, 4, 1) for _ in range(4))

    def pad(self, x, kernel):
        side = int(np.floor((kernel - 1) / 2))
        return F.pad(x, (side, side, side, side))

    def forward(self, x):
        maps = self.encoder.features(x)[::-1]
        for number, features in enumerate(maps):
            y = F.elu(self.up[number](features))
            if number:
                size = y.shape[-2:]
                last = F.interpolate(self.disparity(number - 1), size=size)
                y = self.merge[number](torch.cat((y, last), 1))
            disparity = 0.3 * torch.sigmoid(self.heads[number](self.pad(y, 3)))
            setattr(self, f"disp{4 - number}", disparity)
        return self.disp1, self.disp2, self.disp3, self.disp4

    def disparity(self, number):
        return getattr(self, f"disp{4 - number}")


class Quantise(torch.autograd.Function):
    """Rounds to a grid; attributes of the context are kept for the gradient."""

    @staticmethod
    def forward(ctx, x, bits, low, high):
        scale = (high - low) / (2**bits - 1)
        ctx.scale = torch.clamp(scale, min=1e-8)
        out = x.clone()
        out.sub_(low).div_(ctx.scale).round_().mul_(ctx.scale).add_(low)
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None, None


class QuantisedConv(nn.Conv2d):
    """A grouped convolution of quantised weights and inputs."""

    def forward(self, x):
        x = Quantise.apply(x, 8, x.detach().min(), x.detach().max())
        low, high = self.weight.detach().min(), self.weight.detach().max()
        weight = Quantise.apply(self.weight, 8, low, high)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, 1, self.groups)


class QuantisedResNeXt(nn.Module):
    """Two aggregated blocks."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = QuantisedConv(3, width, 3, 1, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                QuantisedConv(width, width, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                QuantisedConv(width, width, 3, 1, 1, groups=4, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(2)
        )
        self.fc = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            residual = x
            x = block(x)
            x += residual
            x = F.relu(x)
        return self.fc(x.mean((2, 3)))


class TridentBlock(nn.Module):
    """One weight, three dilations; layers by name, work in an inner function."""

    def __init__(self, width, dilations=(1, 2, 3)):
        super().__init__()
        self.dilations = dilations
        self.norm_name = "bn1"
        self.add_module(self.norm_name, nn.BatchNorm2d(width))
        self.weight = nn.Parameter(torch.rand(width, width, 3, 3) * 0.1)
        self.relu = nn.ReLU(inplace=True)
        self.attention = np.array([0, 1, 0])

    @property
    def norm1(self):
        return getattr(self, self.norm_name)

    def forward(self, x):
        if not isinstance(x, (list, tuple)):
            x = [x for _ in self.dilations]

        def inner(y, dilation):
            out = F.conv2d(y, self.weight, None, 1, dilation, dilation)
            out = self.norm1(out)
            if int(self.attention[dilation - 1]):
                out = out * torch.sigmoid(out.mean((2, 3), keepdim=True))
            return self.relu(out + y)

        return [inner(y, d) for y, d in zip(x, self.dilations, strict=True)]


class Trident(nn.Module):
    """Two blocks over three branches."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, 2, 1)
        self.layers = ["block1", "block2"]
        for name in self.layers:
            self.add_module(name, TridentBlock(4))

    def forward(self, x):
        x = self.stem(x)
        for name in self.layers:
            x = getattr(self, name)(x)
        return tuple(torch.cat(x, 0).chunk(3, 0))


class FlatResNet(nn.Module):
    """Blocks that a policy switches on and off."""

    def __init__(self, width=4, blocks=4):
        super().__init__()
        self.seed = nn.Conv2d(3, width, 3, 1, 1)
        self.segments = {
            "all": nn.ModuleList(Residual(width, width) for _ in range(blocks))
        }
        self.fc = nn.Linear(width, 3)

    def forward(self, x, policy):
        x = F.relu(self.seed(x))
        for index, block in enumerate(self.segments["all"]):
            if policy[index]:
                x = F.relu(block(x))
            else:
                x = torch.cat([x] + [x.mul(0)] * 0, 1)
        return self.fc(F.avg_pool2d(x, 8).flatten(1))


VISION = [ResNet18, DenseNet, Disparity, QuantisedResNeXt, Trident]


@pytest.mark.parametrize("kind", VISION, ids=lambda kind: kind.__name__)
def test_one_graph_and_hits(kind):
    torch.manual_seed(0)
    model = kind().eval()
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT, HIT):
            x = torch.rand(2, 3, 32, 32)
            run_and_check(target, [outcome], 1, model(x), x)
    assert target.stats()["graphs"] == 1


def test_attributes_are_written_on_hits():
    torch.manual_seed(0)
    model = Disparity().eval()
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT):
            x = torch.rand(1, 3, 32, 32)
            expected = model(x)
            result = run_and_check(target, [outcome], 1, expected, x)
            kept = (model.disp1, model.disp2, model.disp3, model.disp4)
            assert all(a is b for a, b in zip(kept, result, strict=True))


@pytest.mark.parametrize("kind", [ResNet18, DenseNet])
def test_batch_size_is_lifted(kind):
    torch.manual_seed(0)
    model = kind().eval()
    target = traced(model, dynamic={"x": (0,)})
    with torch.no_grad():
        for outcome, batch in ((MISS, 4), (HIT, 8), (HIT, 3)):
            x = torch.rand(batch, 3, 32, 32)
            run_and_check(target, [outcome], 1, model(x), x)


def test_statistics_of_a_training_batch_norm():
    torch.manual_seed(0)
    model, eager = DenseNet().train(), DenseNet().train()
    eager.load_state_dict(model.state_dict())
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT):
            x = torch.rand(2, 3, 8, 8)
            run_and_check(target, [outcome], 1, eager(x), x)
            assert agree(dict(model.named_buffers()), dict(eager.named_buffers()))


def test_the_closure_of_the_factory_is_returned():
    layer = DenseLayer(4, 4).eval()
    target = traced(functools.partial(concatenating, layer.norm1, layer.relu1))
    for _ in range(2):
        function = target(layer.conv1)
        x = torch.rand(1, 2, 4, 4)
        expected = concatenating(layer.norm1, layer.relu1, layer.conv1)(x, x)
        assert agree(function(x, x), expected)


def test_static_policies_of_blocks():
    torch.manual_seed(0)
    model = FlatResNet().eval()
    target = traced(model)
    with torch.no_grad():
        for number, policy in enumerate(([1, 0, 1, 1], [0, 0, 1, 1])):
            x = torch.rand(1, 3, 8, 8)
            run_and_check(target, [MISS, HIT], number + 1, model(x, policy), x, policy)
