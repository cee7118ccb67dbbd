import pytest
import torch
from torch import nn

import cascaded
from cascaded.errors import InputError
from tests.drawn import images


@pytest.mark.parametrize(("make", "blocks"), [(cascaded.resnet18, 8), (cascaded.resnet34, 16), (cascaded.resnet50, 16)])
def test_the_usual_sizes(make, blocks):
    net = make(width=2)
    assert len(net.blocks) == blocks
    assert net(images(net, size=32)).shape == (blocks + 1, 3, 10)


def test_resnet18_has_the_weights_of_the_papers():
    """The widely used CIFAR ResNet-18 has 11,173,962, of which 1,792 are norms on its three skip convolutions."""
    net = cascaded.resnet18(num_classes=10)
    assert sum(p.numel() for p in net.parameters()) == 11_173_962 - 2 * (128 + 256 + 512)
    assert [block.channels for block in net.blocks] == [64, 64, 128, 128, 256, 256, 512, 512]
    skips = [block.skip for block in net.blocks]
    assert [type(skip) is nn.Identity for skip in skips] == [True, True] + [False, True] * 3


@pytest.mark.parametrize(
    ("options", "size", "shape"),
    [
        ({"stem": "small", "pool": True}, 32, (8, 16, 16)),
        ({"stem": "small", "pool": False}, 32, (8, 32, 32)),
        ({"stem": "large", "pool": True}, 224, (8, 56, 56)),
        ({"stem": "large", "pool": False}, 64, (8, 32, 32)),
    ],
)
def test_stems(options, size, shape):
    net = cascaded.resnet((1,), width=8, **options)
    assert net.serial()[0](images(net, size=size)).shape[1:] == shape


def test_convolutions_start_kaiming_fan_out():
    net = cascaded.resnet18(width=32, generator=torch.Generator().manual_seed(0))
    for conv in (m for m in net.modules() if isinstance(m, nn.Conv2d)):
        fan_out = conv.out_channels * conv.kernel_size[0] ** 2
        expected = (2 / fan_out) ** 0.5
        assert conv.weight.std().item() == pytest.approx(expected, rel=5 / conv.weight.numel() ** 0.5)


def test_the_same_seed_makes_the_same_network():
    one, two = (cascaded.resnet18(width=4, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    torch.testing.assert_close(one.state_dict(), two.state_dict(), rtol=0, atol=0)
    other = cascaded.resnet18(width=4, generator=torch.Generator().manual_seed(4))
    assert not torch.equal(one.readout.linear.weight, other.readout.linear.weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width is 0: give at least 1"),
        ({"in_channels": 0}, "in_channels is 0: give at least 1"),
        ({"num_classes": 0}, "num_classes is 0: give at least 1"),
        ({"blocks": (1, 0)}, r"blocks\[1\] is 0: give at least 1"),
        ({"blocks": ()}, "at least one block"),
        ({"kind": "wide"}, "kind is 'wide': give 'basic' or 'bottleneck'"),
        ({"stem": "huge"}, "stem is 'huge': give 'small'"),
        ({"heads": "many"}, "heads is 'many': give 'shared', 'per_step' or 'shallow_deep'"),
    ],
)
def test_impossible_networks_are_refused_in_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        cascaded.resnet(**{"blocks": (1,), "width": 4} | options)
