"""Small networks of ordinary torch, to be converted: one per way of writing a skip connection."""

import torch
from torch import nn


class Residual(nn.Module):
    """`x + branch(x)`."""

    def __init__(self, *branch):
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x):
        return x + self.branch(x)


class Transposed(nn.Module):
    """A module on the last axis but one."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021): MLPs over tokens and over channels in turn."""

    def __init__(self, tokens=4, width=8, depth=2, classes=5):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        layers = []
        for _ in range(depth):
            layers += [
                Residual(nn.LayerNorm(width), Transposed(mlp(tokens))),
                Residual(nn.LayerNorm(width), mlp(width)),
            ]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        return self.head(self.layers(self.patches(images).flatten(2).transpose(1, 2)).mean(dim=1))


def mlp(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class PreActivation(nn.Module):
    """A block of a pre-activation ResNet (He et al. 2016b); a new shape is projected after the first activation."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(outputs), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if (inputs, stride) != (outputs, 1) else None

    def forward(self, x):
        z = self.norm1(x).relu()
        skip = x if self.skip is None else self.skip(z)
        return skip + self.conv2(self.norm2(self.conv1(z)).relu())


class PostActivation(nn.Module):
    """A block of the original ResNet (He et al. 2016a), with the in-place operations that many write it with."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        project = (inputs, stride) != (outputs, 1)
        self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.skip = self.skip if project else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        z = self.branch(x)
        z += self.skip(x)
        return self.relu(z)


def resnet(block, width=4, classes=5):
    """A stem, two stages of two blocks, global average pooling and a head."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        block(width, width, 1),
        block(width, width, 1),
        block(width, 2 * width, 2),
        block(2 * width, 2 * width, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


class DenseNet(nn.Module):
    """A dense network (Huang et al. 2017) whose layers read a list of all features so far."""

    def __init__(self, growth=4, depth=3, classes=5):
        super().__init__()
        self.stem = nn.Conv2d(3, growth, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(k * growth), nn.ReLU(), nn.Conv2d(k * growth, growth, 3, padding=1, bias=False)
            )
            for k in range(1, depth + 1)
        )
        self.head = nn.Linear((depth + 1) * growth, classes)

    def forward(self, images):
        features = [self.stem(images)]
        for layer in self.layers:
            features.append(layer(torch.cat(features, dim=1)))
        return self.head(torch.cat(features, dim=1).mean(dim=(2, 3)))


class SkipLSTM(nn.Module):
    """Recurrent layers over tokens, each with a skip connection around it."""

    def __init__(self, vocabulary=11, width=8, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        z = self.tokens(ids)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            z = z + layer(norm(z))[0]
        return self.head(z)


class Hyena(nn.Module):
    """Gated long convolutions (Poli et al. 2023): a product of two signals inside each branch."""

    def __init__(self, vocabulary=11, width=8, depth=2, tokens=6):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.inputs = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.filters = nn.ModuleList(
            nn.Conv1d(width, width, tokens, padding=tokens - 1, groups=width) for _ in range(depth)
        )
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        z = self.tokens(ids)
        for inputs, filters, outputs in zip(self.inputs, self.filters, self.outputs, strict=True):
            gate, value = inputs(z).chunk(2, dim=-1)
            value = filters(value.transpose(1, 2))[..., : z.shape[1]].transpose(1, 2)
            z = z + outputs(gate * value)
        return self.head(z)


class ParallelBlocks(nn.Module):
    """`x + attention(x) + mlp(x)`, as in GPT-J: one join with three operands."""

    def __init__(self, width=8, depth=2, classes=5):
        super().__init__()
        self.attentions = nn.ModuleList(nn.MultiheadAttention(width, 2, batch_first=True) for _ in range(depth))
        self.mlps = nn.ModuleList(mlp(width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for attention, layer, norm in zip(self.attentions, self.mlps, self.norms, strict=True):
            z = norm(x)
            x = x + attention(z, z, z, need_weights=False)[0] + layer(z)
        return self.head(x.mean(dim=1))


class SequenceFirst(nn.Module):
    """`nn.TransformerEncoder` as torch has it by default, (tokens, batch, width): the batch is axis 1 inside."""

    def __init__(self, width=8, depth=2, classes=5):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.encoder(x.transpose(0, 1)).mean(dim=0))


class FixedBatch(nn.Module):
    """Has the batch size in its code: time cannot be folded into the batch."""

    def __init__(self, batch, width=8, depth=2, classes=5):
        super().__init__()
        self.batch = batch
        self.layers = nn.ModuleList(mlp(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for layer in self.layers:
            x = (x + layer(x)).reshape(self.batch, -1)
        return self.head(x)


class Experts(nn.Module):
    """A mixture of experts with a capacity: the items of a batch compete for each expert."""

    def __init__(self, width=8, experts=2):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        weights = self.router(x).softmax(dim=0)  # over the batch
        return x + sum(weights[:, k : k + 1] * expert(x).tanh() for k, expert in enumerate(self.experts))


# --- networks that cannot be converted


class Branching(nn.Module):
    """What is computed depends on the values."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.layer(x) if x.sum() > 0 else x - self.layer(x)


class SharedNorm(nn.Module):
    """One batch norm in two blocks: at one step it normalizes two different signals."""

    def __init__(self, width=4):
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x):
        x = x + self.first(self.norm(x)).relu()
        return x + self.second(self.norm(x)).relu()


class Stateful(nn.Module):
    """A layer that keeps a running mean of what it has seen, and adds it."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("seen", torch.zeros(width))

    def forward(self, x):
        z = self.layer(x)
        self.seen.mul_(0.5).add_(z.detach().mean(dim=0))
        return x + (z + self.seen).tanh()


class SharedMemory(nn.Module):
    """Writes into a slice of what its batch norm returned, which is read again later."""

    def __init__(self, width=4):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        z = self.norm(x)
        half = z[:, :2]
        half.relu_()
        return z + self.conv(z)


class ElementwiseSkip(nn.Module):
    """A sum around an activation: nothing is computed in the branch that could be late."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        z = self.layer(x)
        return z + z.relu()


class Noisy(nn.Module):
    """Adds noise to its branch, also in evaluation."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.layer(x) + torch.randn_like(x)


class ThroughNumpy(nn.Module):
    """Leaves torch in the middle."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.from_numpy(self.layer(x).detach().numpy())


class Unnamed(nn.Module):
    """Returns a dictionary without a field `logits`."""

    def __init__(self, width=4):
        super().__init__()
        self.layer, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.layer(x).relu()
        return {"features": x, "normed": self.norm(x)}
