"""Eligibility traces: the same gradient, one step at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import cascaded
from cascaded.errors import InputError
from tests.drawn import images, networks


def online(net, frames, labels, lam):
    """The gradient gathered step by step; logits of all steps for comparison."""
    net.zero_grad()
    td, state = cascaded.EligibilityTraces(net.parameters(), lam), None
    for frame in frames:
        logits, state = net.step(frame, state)
        td.step(logits)
    td.finish(labels)
    return [p.grad for p in net.parameters()]


@settings(max_examples=15)
@given(networks(), st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), st.booleans(), st.integers(1, 6))
def test_gradients_equal_those_of_the_summed_form(net, lam, training, steps):
    net.train(training)
    film = images(net, batch=2, time=steps)
    labels = torch.arange(2) % net.num_classes
    cascaded.td_loss(net(film), labels, lam).backward()
    summed = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in net.parameters()]
    for found, expected in zip(online(net, film, labels, lam), summed, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_soft_labels_and_several_sequences_add_up():
    net = cascaded.resnet((1, 1), width=2, num_classes=3).double().eval()
    film, soft = images(net, time=4), torch.tensor([[0.5, 0.5, 0], [0, 0, 1], [0.1, 0.2, 0.7]]).double()
    once = online(net, film, soft, 0.7)
    td = cascaded.EligibilityTraces(net.parameters(), 0.7)
    net.zero_grad()
    for _ in range(2):
        state = None
        for frame in film:
            logits, state = net.step(frame, state)
            td.step(logits)
        td.finish(soft)
    for p, expected in zip(net.parameters(), once, strict=True):
        torch.testing.assert_close(p.grad, 2 * expected)


def graph_size(logits):
    """Nodes of the autograd graph that logits keep alive."""
    seen, queue = set(), [logits.grad_fn]
    while queue:
        node = queue.pop()
        if node is not None and node not in seen:
            seen.add(node)
            queue += [parent for parent, _ in node.next_functions]
    return len(seen)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_what_is_remembered_does_not_grow_with_the_number_of_steps(lam):
    net = cascaded.resnet((1, 1), width=2, num_classes=2).eval()
    td, state, graphs, held = cascaded.EligibilityTraces(net.parameters(), lam), None, [], []
    for _ in range(12):
        logits, state = net.step(torch.randn(2, 3, 8, 8), state)
        td.step(logits)
        graphs.append(graph_size(logits))
        held.append(sum(trace.numel() for trace in td.traces or []))
    assert len(set(held)) == 1
    assert graphs[0] < graphs[-1]  # as many steps back as there are blocks
    assert len(set(graphs[net.settle_steps :])) == 1  # and no further


def test_wrong_use_is_refused():
    net = cascaded.resnet((1,), width=2, num_classes=2)
    with pytest.raises(InputError, match="none of the parameters needs a gradient"):
        cascaded.EligibilityTraces([torch.nn.Parameter(torch.zeros(1), requires_grad=False)], 0.5)
    td = cascaded.EligibilityTraces(net.parameters(), 0.5)
    with pytest.raises(InputError, match=r"finish\(\) before any step"):
        td.finish(torch.tensor([0]))
    with pytest.raises(InputError, match="requires_grad=False"):
        td.step(torch.zeros(2, 2))
    td.step(net.step(torch.randn(2, 3, 8, 8))[0])
    with pytest.raises(InputError, match=r"\(3, 2\), at the step before \(2, 2\)"):
        td.step(net.step(torch.randn(3, 3, 8, 8))[0])
    with pytest.raises(InputError, match="labels have shape"):
        td.finish(torch.tensor([0]))
