"""The TD loss against the paper's double sum, hand-worked numbers, and its two extremes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import cascaded
from cascaded.errors import InputError
from cascaded.losses import td_targets

lambdas = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@st.composite
def traces(draw, dtype=torch.float64):
    """Logits over time, confident ones among them, with labels."""
    time, batch, classes = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    scale = draw(st.sampled_from([1.0, 30.0]))
    trace = torch.randn(time, batch, classes, generator=generator, dtype=dtype) * scale
    return trace, torch.randint(classes, (batch,), generator=generator)


def literal_targets(trace, labels, lam):
    """`(1-l) sum_{i=1..T-t} l^(i-1) y[t+i] + l^(T-t) y_true`, term by term."""
    T, batch, classes = trace.shape
    y = [None, *trace.softmax(dim=-1)]  # counted from 1, as the paper does
    truth = torch.zeros(batch, classes, dtype=trace.dtype)
    truth[torch.arange(batch), labels] = 1
    targets = []
    for t in range(1, T + 1):
        target = lam ** (T - t) * truth
        for i in range(1, T - t + 1):
            target = target + (1 - lam) * lam ** (i - 1) * y[t + i]
        targets.append(target)
    return torch.stack(targets)


@given(traces(), lambdas)
def test_targets_are_the_papers_sum_term_by_term(drawn, lam):
    trace, labels = drawn
    torch.testing.assert_close(td_targets(trace, labels, lam), literal_targets(trace, labels, lam), rtol=0, atol=1e-12)


@given(traces(), lambdas)
def test_loss_is_cross_entropy_with_the_targets_summed_over_steps_averaged_over_items(drawn, lam):
    trace, labels = drawn
    targets = literal_targets(trace, labels, lam)
    steps = [F.cross_entropy(logits, target) for logits, target in zip(trace, targets, strict=True)]
    torch.testing.assert_close(cascaded.td_loss(trace, labels, lam), sum(steps), rtol=1e-9, atol=1e-9)


@given(traces())
def test_lambda_one_is_cross_entropy_at_every_step(drawn):
    trace, labels = drawn
    steps = sum(F.cross_entropy(logits, labels) for logits in trace)
    torch.testing.assert_close(cascaded.td_loss(trace, labels, 1.0), steps)


@given(traces())
def test_lambda_zero_is_the_next_steps_answer_and_the_label_at_the_last(drawn):
    trace, labels = drawn
    targets = td_targets(trace, labels, 0.0)
    assert torch.equal(targets[:-1], trace[1:].softmax(dim=-1))
    assert torch.equal(targets[-1], F.one_hot(labels, trace.shape[-1]).double())


def test_a_case_worked_by_hand():
    # two steps, one item, two classes: p_1 = (1/2, 1/2), p_2 = (3/4, 1/4), the label is the first class, lambda 1/2
    trace = torch.tensor([[[0.0, 0.0]], [[math.log(3), 0.0]]], dtype=torch.float64)
    targets = td_targets(trace, torch.tensor([0]), 0.5)
    # G_2 = (1, 0); G_1 = 1/2 (3/4, 1/4) + 1/2 (1, 0) = (7/8, 1/8)
    expected = torch.tensor([[[7 / 8, 1 / 8]], [[1.0, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(targets, expected)
    # step 1: -(7/8 + 1/8) ln 1/2 = ln 2; step 2: -ln 3/4
    loss = cascaded.td_loss(trace, torch.tensor([0]), 0.5)
    assert loss.item() == pytest.approx(math.log(2) - math.log(3 / 4))


@given(traces(), st.floats(0, 1))
def test_the_gradient_is_that_of_a_loss_whose_targets_are_held_constant(drawn, lam):
    trace, labels = drawn
    trace = (trace / trace.abs().max()).requires_grad_()
    targets = literal_targets(trace.detach(), labels, lam)

    def held(z):
        return -(targets * z.log_softmax(dim=-1)).sum() / z.shape[1]

    (gradient,) = torch.autograd.grad(cascaded.td_loss(trace, labels, lam), trace)
    numeric = torch.zeros_like(trace)
    for k in range(trace.numel()):
        small = torch.zeros(trace.numel(), dtype=trace.dtype)
        small[k] = 1e-6
        small = small.view_as(trace)
        numeric.view(-1)[k] = (held(trace.detach() + small) - held(trace.detach() - small)) / 2e-6
    torch.testing.assert_close(gradient, numeric, rtol=1e-6, atol=1e-8)
    # the paper's form: dL/dz = -(y^lambda - y), a batch's mean
    torch.testing.assert_close(gradient, (trace.softmax(dim=-1) - targets) / trace.shape[1])


@given(traces(), lambdas)
def test_reductions_agree(drawn, lam):
    trace, labels = drawn
    each = cascaded.td_loss(trace, labels, lam, reduction="none")
    assert each.shape == trace.shape[:2]
    torch.testing.assert_close(cascaded.td_loss(trace, labels, lam, reduction="sum"), each.sum())
    torch.testing.assert_close(cascaded.td_loss(trace, labels, lam), each.sum(dim=0).mean())


@given(traces(), lambdas)
def test_soft_labels_that_are_certain_are_labels(drawn, lam):
    trace, labels = drawn
    soft = F.one_hot(labels, trace.shape[-1]).double()
    torch.testing.assert_close(cascaded.td_loss(trace, soft, lam), cascaded.td_loss(trace, labels, lam))
    torch.testing.assert_close(cascaded.ce_loss(trace, soft), cascaded.ce_loss(trace, labels))


def test_targets_have_no_gradient_even_where_soft_labels_have():
    soft = torch.full((2, 4), 0.25, requires_grad=True)
    trace = torch.randn(3, 2, 4, requires_grad=True)
    assert not td_targets(trace, soft, 0.5).requires_grad


def test_soft_labels_mix():
    trace, labels = torch.randn(3, 2, 4), torch.tensor([[0.25, 0.75, 0, 0], [0, 0, 1, 0]])
    parts = [cascaded.td_loss(trace[:, :1], torch.tensor([k]), 1.0) for k in (0, 1)]
    last = cascaded.td_loss(trace[:, 1:], torch.tensor([2]), 1.0)
    expected = (0.25 * parts[0] + 0.75 * parts[1] + last) / 2
    torch.testing.assert_close(cascaded.td_loss(trace, labels, 1.0), expected)


@given(traces())
def test_cross_entropy_hears_the_last_step_alone(drawn):
    trace, labels = drawn
    trace.requires_grad_()
    loss = cascaded.ce_loss(trace, labels)
    torch.testing.assert_close(loss, F.cross_entropy(trace[-1], labels))
    loss.backward()
    assert not trace.grad[:-1].any()


@pytest.mark.parametrize("size", [1e3, 1e6, 1e30])
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_confident_logits_give_finite_losses_and_gradients(size, lam):
    trace = (torch.eye(4).expand(3, 4, 4) * size).clone().requires_grad_()
    loss = cascaded.td_loss(trace, torch.tensor([0, 1, 2, 0]), lam)
    loss.backward()
    assert loss.isfinite()
    assert trace.grad.isfinite().all()


def test_half_precision_is_computed_in_single():
    trace, labels = torch.randn(3, 5, 7).bfloat16(), torch.arange(5)
    assert cascaded.td_loss(trace, labels, 0.5).dtype == torch.float32
    torch.testing.assert_close(cascaded.td_loss(trace, labels, 0.5), cascaded.td_loss(trace.float(), labels, 0.5))


@pytest.mark.parametrize(
    ("trace", "labels", "lam", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(3).long(), 0.0, r"shape \(2, 3\).*\(time, batch, classes\)"),
        (torch.zeros(2, 3, 4).long(), torch.zeros(3).long(), 0.0, "type torch.int64"),
        (torch.zeros(2, 3, 4), torch.zeros(5).long(), 0.0, r"labels have shape \(5,\), the trace has 3 items"),
        (torch.zeros(2, 3, 4), torch.tensor([0, 1, 4]), 0.0, r"labels go from 0 to 4, the trace has 4 classes.*0\.\.3"),
        (torch.zeros(2, 3, 4), torch.tensor([0, -1, 3]), 0.0, "labels go from -1 to 3"),
        (torch.zeros(2, 3, 4), torch.tensor([0, -100, -1]), 0.0, "labels go from -1 to 0"),
        (torch.zeros(2, 3, 4), torch.tensor([0, -100, 4]), 0.0, r"labels go from 0 to 4, .*must lie in 0\.\.3"),
        ([torch.zeros(3, 4)] * 2, torch.zeros(3).long(), 0.0, r"trace is a list of 2, .*: stack them, torch\.stack\("),
        ((torch.zeros(3, 4),), torch.zeros(3).long(), 0.0, r"trace is a tuple of 1, .*: stack them, torch\.stack\("),
        (np.zeros((2, 3, 4)), torch.zeros(3).long(), 0.0, r"trace is a ndarray, .* convert with torch\.as_tensor"),
        (torch.zeros(2, 3, 4), [0, 1, 2], 0.0, r"labels is a list, .* convert with torch\.as_tensor"),
        (
            torch.zeros(2, 3, 4),
            torch.full((3, 5), 0.2),
            0.0,
            r"soft labels have shape \(3, 5\), the trace has 4 classes",
        ),
        (torch.zeros(2, 3, 4), torch.full((3, 4), 0.5), 0.0, "sum to 1"),
        (torch.zeros(2, 3, 4), torch.zeros(3, 4).long(), 0.0, "whole numbers"),
        (torch.zeros(2, 3, 4), torch.zeros(3).long(), 1.5, "lam is 1.5: give a number from 0"),
        (torch.zeros(2, 3, 4), torch.zeros(3).long(), math.nan, "lam is nan"),
    ],
)
def test_wrong_input_is_refused_with_both_sides(trace, labels, lam, message):
    with pytest.raises(InputError, match=message):
        cascaded.td_loss(trace, labels, lam)
    with pytest.raises(InputError, match=message):
        td_targets(trace, labels, lam)


def test_a_list_of_logits_is_refused_by_cross_entropy_too():
    with pytest.raises(InputError, match=r"stack them, torch\.stack\(logits\)"):
        cascaded.ce_loss([torch.zeros(3, 4)], torch.zeros(3).long())


# --- ignored labels


@st.composite
def partly_ignored(draw):
    """Logits and labels, any of which may be ignored, and the mask of those that are used."""
    trace, labels = draw(traces())
    used = torch.tensor(draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))))
    return trace, labels.where(used, -100), used


def gradient(loss, trace):
    return torch.autograd.grad(loss, trace)[0]


@given(partly_ignored(), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from(["mean", "sum", "none"]))
def test_ignored_items_are_as_if_they_were_not_in_the_batch(drawn, lam, reduction):
    trace, labels, used = drawn
    trace.requires_grad_()
    losses = {
        "td": lambda *batch: cascaded.td_loss(*batch, lam, reduction=reduction),
        "ce": lambda *batch: cascaded.ce_loss(*batch, reduction=reduction),
    }
    for loss in losses.values():
        found, expected = loss(trace, labels), loss(trace[:, used], labels[used])
        if reduction == "none":
            assert found.shape[1] == len(labels)
            assert not found[:, ~used].any()
            found = found[:, used]
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(gradient(found.sum(), trace), gradient(expected.sum(), trace))
        assert not gradient(loss(trace, labels).sum(), trace)[:, ~used].any()
    targets = td_targets(trace, labels, lam)
    assert targets.shape == trace.shape
    assert torch.equal(targets[:, used], td_targets(trace[:, used], labels[used], lam))
    assert not targets[:, ~used].any()


@given(partly_ignored(), st.sampled_from([-100, -1, 0]))
def test_ignored_labels_are_those_of_torchs_cross_entropy(drawn, ignore_index):
    trace, labels, used = drawn
    labels = labels.where(used, ignore_index)
    if not (labels != ignore_index).any():
        return  # torch's mean over no items is NaN
    for reduction in ("mean", "sum"):
        steps = [F.cross_entropy(each, labels, ignore_index=ignore_index, reduction=reduction) for each in trace]
        options = {"reduction": reduction, "ignore_index": ignore_index}
        torch.testing.assert_close(cascaded.td_loss(trace, labels, 1.0, **options), sum(steps))
        torch.testing.assert_close(cascaded.ce_loss(trace, labels, **options), steps[-1])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_with_every_item_ignored_loss_and_gradient_are_zero(reduction):
    trace, labels = torch.randn(3, 2, 4, requires_grad=True), torch.tensor([-100, -100])
    for loss in (cascaded.td_loss(trace, labels, 0.5, reduction), cascaded.ce_loss(trace, labels, reduction)):
        assert loss.item() == 0
        assert not gradient(loss, trace).any()


def test_logits_that_are_not_finite_do_not_matter_where_they_are_ignored():
    trace, labels = torch.randn(3, 2, 4), torch.tensor([1, -100])
    trace[:, 1] = math.nan
    trace.requires_grad_()
    loss = cascaded.td_loss(trace, labels, 0.5)
    torch.testing.assert_close(loss, cascaded.td_loss(trace[:, :1], labels[:1], 0.5))
    assert not gradient(loss, trace)[:, 1].any()


# --- tokens and pixels


PLACED = {  # classes on axis class_dim, other axes are places
    "tokens": ((3, 2, 5, 4), -1),
    "images": ((3, 2, 4, 2, 3), 2),
    "images, counted from the end": ((3, 2, 4, 2, 3), -3),
    "volumes": ((2, 2, 4, 2, 1, 3), 2),
}


@pytest.fixture(params=PLACED.values(), ids=PLACED)
def placed(request):
    """Logits with several places per item, labels (some ignored), the axis of the classes, and all places."""
    shape, class_dim = request.param
    trace = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    classes_last = trace.movedim(class_dim, -1)
    labels = torch.randint(4, classes_last.shape[1:-1])
    labels.view(-1)[torch.randperm(labels.numel())[:3]] = -100
    return trace, labels, class_dim, [tuple(place) for place in (labels != -100).nonzero().tolist()]


def at_place(trace, class_dim, place):
    """Logits of one place, (time, 1, classes)."""
    logits = trace.movedim(class_dim, -1)
    return torch.stack([step[place] for step in logits]).unsqueeze(1)


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_loss_and_gradient_of_tokens_and_pixels_are_those_of_a_loop_over_them(placed, lam):
    trace, labels, class_dim, places = placed
    for loss in (lambda *batch, **kw: cascaded.td_loss(*batch, lam, **kw), cascaded.ce_loss):
        slow = [loss(at_place(trace, class_dim, place), labels[place].view(1)) for place in places]
        options = {"class_dim": class_dim}
        found = {name: loss(trace, labels, reduction=name, **options) for name in ("mean", "sum", "none")}
        torch.testing.assert_close(found["mean"], sum(slow) / len(places))
        torch.testing.assert_close(found["sum"], sum(slow))
        assert found["none"].shape[1:] == labels.shape
        for place, value in zip(places, slow, strict=True):
            torch.testing.assert_close(sum(step[place] for step in found["none"]), value)
        assert not found["none"][:, labels == -100].any()
        torch.testing.assert_close(gradient(found["sum"], trace), gradient(sum(slow), trace))


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_targets_of_tokens_and_pixels_are_those_of_a_loop_over_them(placed, lam):
    trace, labels, class_dim, places = placed
    targets = td_targets(trace, labels, lam, class_dim=class_dim)
    assert targets.shape == trace.shape
    for place in places:
        expected = td_targets(at_place(trace, class_dim, place), labels[place].view(1), lam)
        torch.testing.assert_close(at_place(targets, class_dim, place), expected)
    assert not targets.movedim(class_dim, -1)[:, labels == -100].any()


def test_the_last_step_of_images_is_torchs_cross_entropy(placed):
    trace, labels, class_dim, _ = placed
    expected = F.cross_entropy(trace[-1].movedim(class_dim, 1) if class_dim < 0 else trace[-1], labels)
    torch.testing.assert_close(cascaded.ce_loss(trace, labels, class_dim=class_dim), expected)


def test_soft_labels_of_pixels_have_their_classes_where_the_logits_have_them(placed):
    trace, labels, class_dim, _ = placed
    labels = labels.clamp(min=0)
    soft = F.one_hot(labels, 4).double().unsqueeze(0).movedim(-1, class_dim).squeeze(0)
    for name in ("mean", "none"):
        options = {"reduction": name, "class_dim": class_dim}
        expected = cascaded.td_loss(trace, labels, 0.5, **options)
        torch.testing.assert_close(cascaded.td_loss(trace, soft, 0.5, **options), expected)


@pytest.mark.parametrize(
    ("labels", "class_dim", "message"),
    [
        ((3, 5, 6), -1, r"labels have shape \(3, 5, 6\), .*axis 4: give whole numbers \(3, 4, 5\).*another class_dim"),
        ((3, 5), 2, r"labels have shape \(3, 5\), .*give whole numbers \(3, 5, 6\)"),
        ((3, 5, 6), 1, r"class_dim is 1, the trace has shape \(2, 3, 4, 5, 6\): give an axis behind time and batch"),
        ((3, 5, 6), 5, "class_dim is 5"),
        ((3, 5, 6), -4, "class_dim is -4"),
    ],
)
def test_labels_that_do_not_fit_the_places_are_refused(labels, class_dim, message):
    with pytest.raises(InputError, match=message):
        cascaded.td_loss(torch.zeros(2, 3, 4, 5, 6), torch.zeros(labels).long(), 0.0, class_dim=class_dim)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(InputError, match="reduction is 'max': give 'mean', 'sum' or 'none'"):
        cascaded.td_loss(torch.zeros(1, 1, 2), torch.tensor([0]), 0.0, reduction="max")


def test_the_loss_works_on_any_network_with_several_exits():
    stages = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(3))
    head, z, exits = torch.nn.Linear(6, 2), torch.randn(8, 6), []
    for stage in stages:
        z = stage(z).tanh()  # which lets a gradient through to every stage, whatever is drawn
        exits.append(head(z))
    cascaded.td_loss(torch.stack(exits), torch.randint(2, (8,)), 0.5).backward()
    assert all(p.grad is not None and p.grad.any() for p in stages.parameters())
