import pytest
import torch

import cascaded
from tests.drawn import images


def test_the_cifar_form():
    net = cascaded.densenet()
    assert net.settle_steps == 59
    assert len(net.blocks) == 58
    assert net.serial()[0](torch.zeros(1, 3, 32, 32)).shape == (1, 32, 32, 32)


def test_densenet121():
    net = cascaded.densenet121(stem="large", num_classes=1000)
    plain = net.serial().eval()
    assert plain[0](torch.zeros(1, 3, 64, 64)).shape == (1, 64, 16, 16)
    assert sum(p.numel() for p in plain.parameters()) == 7_978_856  # as published for DenseNet-121


@pytest.mark.parametrize("growth", [2, 3])
def test_a_block_adds_its_growth_and_a_transition_halves(growth):
    net = cascaded.densenet((2, 1), growth=growth, width=4)
    assert [block.channels for block in net.blocks] == [
        4 + growth,
        (4 + 2 * growth) // 2,
        (4 + 2 * growth) // 2 + growth,
    ]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_small_images_do_not_vanish(size):
    net = cascaded.densenet((1, 1, 1, 1), growth=2)
    assert net(images(net, size=size)).isfinite().all()


def test_a_growth_of_nothing_is_refused():
    with pytest.raises(ValueError, match="growth is 0: give at least 1"):
        cascaded.densenet((1,), growth=0)
