import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import cascaded
from tests.drawn import images, kernels, networks
from tests.refused import refused

some_holds = st.lists(st.booleans(), min_size=1, max_size=9)


def stream(net, frames, state=None, **how):
    logits = []
    for frame in frames:
        out, state = net.step(frame, state, **how)
        logits.append(out)
    return torch.stack(logits), state


def small(**options):
    return cascaded.resnet((1, 1), width=4, **options).double().eval()


@settings(max_examples=15)
@given(networks(), kernels, st.lists(st.booleans(), min_size=3, max_size=3))
def test_items_that_stay_do_not_notice_those_that_leave(net, kernel, stay):
    net.eval()
    film, mask = images(net, time=4), torch.tensor(stay)
    whole, _ = stream(net, film, kernel=kernel)
    _, state = stream(net, film[:2], kernel=kernel)
    if not mask.any():
        assert state.select(mask).batch == 0
        return
    rest, _ = stream(net, film[2:, mask], state.select(mask), kernel=kernel)
    torch.testing.assert_close(rest, whole[2:, mask], rtol=1e-9, atol=1e-10)


def test_items_can_be_chosen_by_index_and_by_slice():
    net = small()
    _, state = stream(net, images(net, time=2), kernel=cascaded.TappedDelay([0, 0.5, 0.5]))
    for chosen in (torch.tensor([2, 0]), slice(1, 3)):
        kept = state.select(chosen)
        assert kept.batch == 2
        torch.testing.assert_close(kept.trail[0], state.trail[0][:, chosen])
        torch.testing.assert_close(kept.seen[1], state.seen[1][chosen])


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
@pytest.mark.parametrize("kernel", [cascaded.OneStepDelay(), cascaded.ExponentialSmoothing(0.5)])
def test_a_state_survives_a_file_that_is_never_unpickled(tmp_path, kernel, schedule):
    net = small()
    film = images(net).expand(4, -1, -1, -1, -1)
    whole, _ = stream(net, film, kernel=kernel, schedule=schedule)
    _, state = stream(net, film[:2], kernel=kernel, schedule=schedule)
    torch.save(tuple(state.detach()), tmp_path / "state.pt")
    loaded = cascaded.State(*torch.load(tmp_path / "state.pt", weights_only=True))
    rest, _ = stream(net, film[2:], loaded, kernel=kernel, schedule=schedule)
    torch.testing.assert_close(rest, whole[2:])


def test_a_state_moves_to_another_device_and_a_detached_one_has_no_history():
    net = small()
    _, state = net.step(images(net))
    moved = state.to("meta")
    assert {x.device.type for x in (moved.frame, moved.features, *moved.seen)} == {"meta"}
    assert state.features.requires_grad
    assert not state.detach().features.requires_grad
    refused(r"mask has shape \(2,\), state has 3 items", state.select, torch.tensor([True, False]))


# --- a frame that holds


@settings(max_examples=15)
@given(networks(), kernels, some_holds, st.booleans(), st.none() | st.integers(1, 6))
def test_holding_a_frame_is_handing_it_in_again(net, kernel, holds, training, trained_time):
    net(images(net, time=trained_time, seed=5), steps=trained_time or 4)
    net.train(training)
    frames = images(net, time=len(holds) + 1)
    stored, current = [frames[0]], frames[0]
    for hold, frame in zip(holds, frames[1:], strict=True):
        current = current if hold else frame
        stored.append(current)
    held = [frames[0], *(None if hold else frame for hold, frame in zip(holds, frames[1:], strict=True))]
    with torch.no_grad():
        ours, _ = stream(net, held, kernel=kernel)
        expected, _ = stream(net, stored, kernel=kernel)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
def test_holding_a_frame_costs_the_cycles_that_are_due(schedule):
    net = cascaded.resnet((2, 2), width=4)
    net(images(net))
    net.eval()
    updates = []
    for block in net.blocks:
        block.branch.register_forward_hook(lambda *_: updates.append(1))
    state, counted = None, []
    for step in range(8):
        updates.clear()
        _, state = net.step(None if step else images(net), state, schedule=schedule)
        counted.append(len(updates))
    # the first step of a cascade also computes every block at rest, on one item
    assert counted[0] == (4 if schedule == "cascaded" else 0)
    assert counted[1:] == net.cycles(schedule, steps=8)[1:]


@pytest.mark.parametrize(
    ("made", "used"),
    [
        ({"kernel": cascaded.ExponentialSmoothing(0.9)}, {}),
        ({}, {"kernel": cascaded.ExponentialSmoothing(0.9)}),
        ({"kernel": cascaded.TappedDelay([0, 1, 1])}, {"kernel": cascaded.TappedDelay([0, 1, 1, 1])}),
        ({"schedule": "serial"}, {}),
        ({}, {"schedule": "serial"}),
    ],
)
def test_a_state_of_another_kernel_or_schedule_is_refused(made, used):
    net = small()
    refused("the first step has no frame to repeat", net.step, None)
    _, state = net.step(images(net), **made)
    refused("the same kernel and schedule at every step", net.step, images(net), state, **used)
