import pytest
import torch
from torch import nn

import cascaded
from tests.drawn import disturb, images


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
def test_the_plain_network_is_made_of_torchs_own_layers(family):
    kinds = {type(m) for m in FAMILIES[family]().serial().modules() if not list(m.children())}
    ordinary = {nn.ZeroPad2d, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d}
    assert kinds <= ordinary | {nn.AdaptiveAvgPool2d, nn.Flatten, nn.Linear, nn.Identity}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("training", [True, False])
def test_it_is_a_copy_in_the_same_mode(family, training):
    net = FAMILIES[family]().train(training)
    plain = net.serial()
    assert plain.training == training
    before = {name: x.clone() for name, x in net.state_dict().items()}
    plain.train()
    plain(images(net))
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
    torch.testing.assert_close(exported(x), last)
    torch.testing.assert_close(exported(x[:1]), last[:1])
    more = torch.cat([x, x, x])
    torch.testing.assert_close(exported(more), torch.cat([last, last, last]))
