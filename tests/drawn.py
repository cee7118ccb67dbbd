"""Drawn kernels and networks: small, of every kind."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

import cascaded
from cascaded import Cascade, Kernel
from cascaded.models.build import Norm

weights = st.floats(-1, 1).map(lambda x: round(x, 2))

kernels: st.SearchStrategy[Kernel] = st.one_of(
    st.just(cascaded.NoDelay()),
    st.just(cascaded.OneStepDelay()),
    st.floats(0, 0.95).map(cascaded.ExponentialSmoothing),
    st.lists(weights, min_size=1, max_size=4).filter(any).map(cascaded.TappedDelay),
)

ANY_HEADS = ("shared", "per_step", "shallow_deep")
ANY_AFFINE = ("shared", "per_step")


@st.composite
def networks(draw: st.DrawFn, heads: tuple[str, ...] = ANY_HEADS[:2], affine: tuple[str, ...] = ANY_AFFINE) -> Cascade:
    """A double-precision network of two to four blocks whose batch norms do something."""
    seed = draw(st.integers(0, 2**16))
    options = {
        "num_classes": draw(st.integers(1, 4)),
        "in_channels": draw(st.integers(1, 3)),
        "heads": draw(st.sampled_from(heads)),
        "pool": draw(st.booleans()),
        "stem": draw(st.sampled_from(["small", "large"])),
        "norm": Norm(
            eps=draw(st.sampled_from([1e-5, 0.1])),
            momentum=draw(st.sampled_from([0.1, 1.0, None])),
            affine=draw(st.sampled_from(affine)),
        ),
        "generator": torch.Generator().manual_seed(seed),
    }
    blocks = draw(st.sampled_from([(2,), (1, 1), (2, 1), (1, 2, 1)]))
    family = draw(st.sampled_from(["basic", "bottleneck", "dense"]))
    if family == "dense":
        net = cascaded.densenet(blocks, growth=2, **options)
    else:
        net = cascaded.resnet(blocks, family, width=4, **options)
    net = net.double().to(memory_format=draw(st.sampled_from([torch.contiguous_format, torch.channels_last])))
    return disturb(net, seed)


def disturb(net: Cascade, seed: int) -> Cascade:
    """Draw the affine parameters of the norms too: at rest a bias of zero would hide much."""
    generator = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, cascaded.TimeBatchNorm):
            torch.nn.init.normal_(module.weight, 1, 0.3, generator=generator)
            torch.nn.init.normal_(module.bias, 0, 0.3, generator=generator)
    return net


def images(net: Cascade, batch: int = 3, size: int = 8, time: int | None = None, seed: int = 1) -> torch.Tensor:
    """Still images for a network, or a film."""
    shape = (batch, net.in_channels, size, size) if time is None else (time, batch, net.in_channels, size, size)
    like = next(net.parameters()).dtype
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(like)
