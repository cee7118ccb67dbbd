"""ResNet and DenseNet: the published sizes, the initial weights, and the same network without time."""

import pytest
import torch
from torch import nn

import cascaded
from tests.drawn import disturb, images
from tests.refused import refused


@pytest.mark.parametrize(("make", "blocks"), [(cascaded.resnet18, 8), (cascaded.resnet34, 16), (cascaded.resnet50, 16)])
def test_the_usual_sizes(make, blocks):
    net = make(width=2)
    assert net(images(net, size=32)).shape == (blocks + 1, 3, 10)


def test_resnet18_has_the_weights_of_the_papers():
    """The widely used CIFAR ResNet-18 has 11,173,962, of which 1,792 are norms on its three skip convolutions."""
    net = cascaded.resnet18(num_classes=10)
    assert sum(p.numel() for p in net.parameters()) == 11_173_962 - 2 * (128 + 256 + 512)
    assert [block.channels for block in net.blocks] == [64, 64, 128, 128, 256, 256, 512, 512]
    skips = [block.skip for block in net.blocks]
    assert [type(skip) is nn.Identity for skip in skips] == [True, True] + [False, True] * 3


def test_densenets_have_the_blocks_and_weights_of_the_papers():
    assert len(cascaded.densenet().blocks) == 58  # the CIFAR form
    plain = cascaded.densenet121(stem="large", num_classes=1000).serial()
    assert sum(p.numel() for p in plain.parameters()) == 7_978_856  # as published for DenseNet-121


@pytest.mark.parametrize("make", [cascaded.resnet, cascaded.densenet])
@pytest.mark.parametrize(
    ("options", "size", "side"),
    [
        ({"stem": "small", "pool": True}, 32, 16),
        ({"stem": "small", "pool": False}, 32, 32),
        ({"stem": "large", "pool": True}, 224, 56),
        ({"stem": "large", "pool": False}, 64, 32),
    ],
)
def test_stems(make, options, size, side):
    net = make((1,), width=8, **options)
    assert net.serial()[0](images(net, size=size)).shape[1:] == (8, side, side)


def test_convolutions_start_kaiming_fan_out_and_the_same_seed_makes_the_same_network():
    net, same, other = (
        cascaded.resnet18(width=32, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    for conv in (m for m in net.modules() if isinstance(m, nn.Conv2d)):
        expected = (2 / (conv.out_channels * conv.kernel_size[0] ** 2)) ** 0.5
        assert conv.weight.std().item() == pytest.approx(expected, rel=5 / conv.weight.numel() ** 0.5)
    torch.testing.assert_close(net.state_dict(), same.state_dict(), rtol=0, atol=0)
    assert not torch.equal(net.readout.linear.weight, other.readout.linear.weight)


@pytest.mark.parametrize("growth", [2, 3])
def test_a_dense_block_adds_its_growth_and_a_transition_halves(growth):
    net, half = cascaded.densenet((2, 1), growth=growth, width=4), (4 + 2 * growth) // 2
    assert [block.channels for block in net.blocks] == [4 + growth, half, half + growth]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_small_images_do_not_vanish(size):
    net = cascaded.densenet((1, 1, 1, 1), growth=2)
    assert net(images(net, size=size)).isfinite().all()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (cascaded.resnet, {"width": 0}, "width is 0: give at least 1"),
        (cascaded.resnet, {"in_channels": 0}, "in_channels is 0: give at least 1"),
        (cascaded.resnet, {"num_classes": 0}, "num_classes is 0: give at least 1"),
        (cascaded.resnet, {"blocks": (1, 0)}, r"blocks\[1\] is 0: give at least 1"),
        (cascaded.resnet, {"blocks": ()}, "at least one block"),
        (cascaded.resnet, {"kind": "wide"}, "kind is 'wide': give 'basic' or 'bottleneck'"),
        (cascaded.resnet, {"stem": "huge"}, "stem is 'huge': give 'small'"),
        (cascaded.resnet, {"heads": "many"}, "heads is 'many': give 'shared', 'per_step' or 'shallow_deep'"),
        (cascaded.densenet, {"growth": 0}, "growth is 0: give at least 1"),
    ],
)
def test_impossible_networks_are_refused_in_one_sentence(make, options, message):
    refused(message, make, **{"blocks": (1,), "width": 4} | options)


# --- the network without time


def trained(make, **options):
    net = disturb(make(generator=torch.Generator().manual_seed(0), **options), 0)
    with torch.no_grad():
        net(images(net, batch=4, size=16))
    return net.eval()


FAMILIES = {
    "basic": lambda: trained(cascaded.resnet, blocks=(1, 1), width=4),
    "bottleneck": lambda: trained(cascaded.resnet, blocks=(1, 1), kind="bottleneck", width=4),
    "dense": lambda: trained(cascaded.densenet, blocks=(1, 2), growth=4),
    "per step heads": lambda: trained(cascaded.resnet, blocks=(1, 1), width=4, heads="per_step"),
    "shallow deep": lambda: trained(cascaded.resnet, blocks=(1, 1), width=4, heads="shallow_deep"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("training", [True, False])
def test_it_is_a_copy_in_the_same_mode_of_torchs_own_layers(family, training):
    net = FAMILIES[family]().train(training)
    plain, before = net.serial(), {name: x.clone() for name, x in net.state_dict().items()}
    ordinary = {nn.ZeroPad2d, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d}
    ordinary |= {nn.AdaptiveAvgPool2d, nn.Flatten, nn.Linear, nn.Identity}
    assert {type(m) for m in plain.modules() if not list(m.children())} <= ordinary
    assert plain.training == training
    plain.train()(images(net))
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.zero_()
    torch.testing.assert_close(net.state_dict(), before)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_exports_with_a_dynamic_batch(family):
    net = FAMILIES[family]()
    x = images(net, batch=4, size=16)
    batch = torch.export.Dim("batch", min=1, max=1024)
    exported = torch.export.export(net.serial(), (x,), dynamic_shapes=({0: batch},)).module()
    last = net(x)[-1]
    for rows in ([0], range(4), [*range(4)] * 3):
        torch.testing.assert_close(exported(x[list(rows)]), last[list(rows)])
