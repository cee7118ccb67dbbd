import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import cascaded
from cascaded.cascade.film import still
from cascaded.cascade.named import make_kernel


def operations_of(module, x):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        out = module(x)
    return counter.get_total_flops(), out


def test_cycles_of_resnet18_add_up_to_the_designs_thirty_six_and_a_moving_input_needs_all_at_every_step():
    net = cascaded.resnet18(width=2)
    assert net.cycles() == [0, 8, 7, 6, 5, 4, 3, 2, 1]
    assert net.cycles("serial") == [0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert cascaded.resnet((3,), width=2).cycles(steps=4, moving=True) == [0, 3, 3, 3]  # every block, at every step


@pytest.mark.parametrize(
    ("kernel", "steps", "expected"),
    [
        (cascaded.OneStepDelay(), 5, [0, 3, 2, 1, 0]),
        (cascaded.NoDelay(), 3, [3, 0, 0]),
        (cascaded.TappedDelay([0.5, 0.5]), 5, [3, 3, 2, 1, 0]),
        (cascaded.TappedDelay([0, 0.5, 0.5]), 8, [0, 3, 3, 2, 2, 1, 1, 0]),
        (cascaded.ExponentialSmoothing(0.9), 4, [3, 3, 3, 3]),
    ],
)
def test_cycles_by_hand(kernel, steps, expected):
    assert cascaded.resnet((3,), width=2).cycles(kernel=kernel, steps=steps) == expected


@pytest.mark.parametrize("name", ["osd", "none", "taps:0,0.5,0.5", "taps:0.5,0.5"])
@pytest.mark.parametrize("steps", [1, 2, 3, 20])
def test_cycles_are_what_is_computed(name, steps):
    """Frames that pass through the blocks' branches, rest aside, in one unrolled call."""
    net, kernel, frames = cascaded.resnet((2, 1), width=2), make_kernel(name), []
    for block in net.blocks:
        block.branch.register_forward_hook(lambda _, args, out: frames.append(args[0].num_frames * (args[0].start > 0)))
    net(torch.zeros(2, 3, 8, 8), kernel=kernel, steps=steps)
    assert sum(frames) == sum(net.cycles(kernel=kernel, steps=steps))


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
@pytest.mark.parametrize(
    "make", [lambda: cascaded.resnet((2, 2), width=4), lambda: cascaded.densenet((2, 1), growth=4)]
)
def test_operations_agree_with_cycles(make, schedule):
    """Block by block: what an update costs times how often it is made, and the open paths and heads beside it."""
    net = make()
    x = torch.zeros(1, 3, 16, 16)
    stem, z = operations_of(net.serial()[0], x)
    branches, paths, afters = [], [], []
    for block in net.blocks:
        film = still(z, steps=1)
        cost, arrived = operations_of(block.branch, film)
        path, film = operations_of(lambda f, b=block, a=arrived: b.join(f, a), film)
        behind, film = operations_of(block.after, film)
        z = film.frames
        for costs, each in ((branches, cost), (paths, path), (afters, behind)):
            costs.append(each)
    head = 2 * z.shape[1] * net.num_classes
    blocks = len(branches)
    for t, counted in enumerate(net.operations(16, 16, schedule), start=1):
        computed = max(t - 2, 0)
        if schedule == "cascaded":  # block i, from 0, gets new input up to step i + 1, and has new output a step later
            due = sum(branches[computed:]) if t > 1 else 0
            open_ = sum(paths[t - 1 :])
        else:  # the block that fires now, and the open paths of those behind it
            due = branches[t - 2] if t > 1 else 0
            open_ = sum(paths[computed:])
        assert counted == due + open_ + sum(afters[computed:]) + head + (stem if t == 1 else 0), t
    assert sum(net.cycles(schedule)) == (blocks if schedule == "serial" else blocks * (blocks + 1) // 2)


def test_operations_of_a_convolution_by_hand():
    net = cascaded.resnet((1,), width=2, in_channels=1, num_classes=3, pool=False)
    first, second = net.operations(4, 4)
    conv, head = 2 * 9 * 16, 2 * 2 * 3  # a multiplication and an addition, nine taps, sixteen pixels
    assert first == conv * 1 * 2 + head
    assert second == 2 * conv * 2 * 2 + head


def test_operations_go_on_after_settling_and_without_ever_settling():
    net = cascaded.resnet((2,), width=2)
    assert len(net.operations(8, 8, steps=12)) == 12
    assert net.operations(8, 8, steps=12)[3:] == [0] * 9
    ews = net.operations(8, 8, kernel=cascaded.ExponentialSmoothing(0.9), steps=70)
    assert len(ews) == 70
    assert len(set(ews[1:])) == 1


def test_counting_leaves_the_network_alone():
    net = cascaded.resnet((1,), width=2).eval()
    before = {name: x.clone() for name, x in net.state_dict().items()}
    net.operations(8, 8)
    torch.testing.assert_close(net.state_dict(), before)
    assert not net.training
    assert all(isinstance(p, nn.Parameter) and p.device.type == "cpu" for p in net.parameters())


def test_what_was_counted_of_one_network_is_not_told_of_another():
    class Pool(torch.nn.Module):
        def __init__(self, side):
            super().__init__()
            self.side = side  # nothing that its text tells

        def forward(self, x):
            return torch.nn.functional.avg_pool2d(x, self.side)

    def pooled(side):
        net = cascaded.resnet18(num_classes=10, width=4)
        net.stem = cascaded.Layers(*net.stem, Pool(side))
        return net

    assert repr(pooled(1)) == repr(pooled(2))
    whole, half, again = (sum(pooled(side).operations(32, 32)) for side in (1, 2, 1))
    assert half < whole
    assert again == whole == sum(cascaded.resnet18(num_classes=10, width=4).operations(32, 32))
