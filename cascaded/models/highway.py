"""A Highway network (Srivastava, Greff and Schmidhuber 2015): every layer mixes its transform with its input.

z = T(z) H(z) + (1 - T(z)) z        H(z) = relu(W z + b)        T(z) = sigmoid(V z + c)
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from cascaded.errors import at_least

Features = Float[Tensor, "batch width"]


class Highway(nn.Module):
    """A fully connected network with gated skip connections.

    Args:
        num_classes: Number of classes.
        inputs: Values per item, 64 for an image of 8 x 8 pixels with one channel; all axes behind the batch are
            flattened.
        depth: Number of gated layers.
        width: Features of a layer.
        gate_bias: Initial bias of the gates; below 0, layers first carry their input on.
    """

    def __init__(
        self, num_classes: int = 10, inputs: int = 64, depth: int = 8, width: int = 64, gate_bias: float = -1.0
    ):
        super().__init__()
        at_least(1, inputs=inputs, depth=depth, width=width)
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.ReLU())
        self.layers = nn.Sequential(*(Layer(width, gate_bias) for _ in range(depth)))
        self.head = nn.Linear(width, num_classes)

    def forward(self, items: Float[Tensor, "batch *values"]) -> Float[Tensor, "batch classes"]:
        """Logits of a batch of items."""
        return self.head(self.layers(self.stem(items)))


class Layer(nn.Module):
    """A gated layer; arguments as for `Highway`."""

    def __init__(self, width: int, gate_bias: float):
        super().__init__()
        self.transform, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, gate_bias)

    def forward(self, z: Features) -> Features:
        """`T H + (1 - T) z`."""
        H, T = self.transform(z).relu(), self.gate(z).sigmoid()
        return T * H + (1 - T) * z
