"""A training step: its loss, its cost, norm statistics, accuracy per step, and the moving average of the weights."""

import copy
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from torch.utils.flop_counter import FlopCounterMode

import cascaded
from cascaded.cascade.product import autocast
from cascaded.training import checkpoint
from cascaded.training.config import ExecutionConfig, RunConfig
from cascaded.training.loop import train
from cascaded.training.method import METHODS, get_method
from cascaded.training.optimizer import make_optimizer
from cascaded.training.step import LossModule, accuracy, fill_statistics, parameter_groups
from cascaded.training.trainer import RAW, Trainer
from tests.drawn import ANY_HEADS, images, networks
from tests.tiny_runs import tiny_config
from tests.tiny_runs import tiny_run as tiny_run


def gradients(net, loss):
    net.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}


@settings(max_examples=15)
@given(networks(heads=ANY_HEADS, affine=("shared",)))
def test_the_settled_answer_is_what_the_plain_network_says(net):
    x = images(net)
    for training in (True, False):
        net.train(training)
        # the copy first: in training the statistics of both move
        torch.testing.assert_close(net.serial()(x), net.final_logits(x), rtol=1e-9, atol=1e-9)


def test_cross_entropy_is_learned_from_the_settled_answer_alone():
    net = cascaded.resnet((1, 1), width=4, num_classes=3).double()
    x, labels = images(net), torch.arange(3)
    learner = LossModule(net, get_method("cascaded-ce"))
    found = gradients(net, learner(x, labels))
    expected = gradients(net, cascaded.ce_loss(net(x), labels))  # the whole cascade, and its last step
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", ["cascaded-ce", "serial-ce"])
def test_cross_entropy_costs_one_serial_pass(model):
    net = cascaded.resnet18(width=4)
    x, labels = torch.randn(4, 3, 32, 32), torch.arange(4)
    with FlopCounterMode(display=False) as ours:
        LossModule(net, get_method(model))(x, labels)
    with FlopCounterMode(display=False) as plain:
        net.serial()(x)
    # small maps are counted by the product an output pixel, which leaves out what a border multiplies with nothing
    assert 0.9 < ours.get_total_flops() / plain.get_total_flops() <= 1.01


@pytest.mark.parametrize(("lam", "progress", "expected"), [(0.3, 0.0, 0.3), ((0.0, 1.0), 0.5, 0.5)])
def test_the_td_loss_has_the_lambda_of_the_progress(lam, progress, expected):
    net = cascaded.resnet((1, 1), width=4, num_classes=3).eval()
    x, labels = torch.randn(4, 3, 8, 8), torch.arange(4) % 3
    loss = LossModule(net, get_method("cascaded-td", lam))(x, labels, progress)
    assert torch.equal(loss, cascaded.td_loss(net(x), labels, expected))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_teaches_every_parameter(name):
    method = get_method(name)
    net = cascaded.resnet((1, 1), width=4, num_classes=3, heads=method.heads)
    loss = LossModule(net, method)(torch.randn(6, 3, 8, 8), torch.arange(6) % 3)
    assert set(gradients(net, loss)) == {n for n, _ in net.named_parameters()}


@pytest.mark.parametrize("decay_norms", [True, False])
def test_norms_and_biases_do_not_decay_if_so_chosen(decay_norms):
    net = cascaded.resnet((1, 1), width=4, num_classes=3, heads="per_step")
    before = {name: parameter.clone() for name, parameter in net.named_parameters()}
    optimizer = torch.optim.SGD(parameter_groups(net, decay_norms), lr=1.0, weight_decay=0.5)
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    spared = {name for name, parameter in net.named_parameters() if torch.equal(parameter, before[name])}
    kept = {name for name in before if not before[name].any()}  # biases of norms begin at 0
    for name, module in net.named_modules():
        if not decay_norms and isinstance(module, cascaded.TimeBatchNorm | torch.nn.Linear):
            kept |= {f"{name}.bias"} | ({f"{name}.weight"} if isinstance(module, cascaded.TimeBatchNorm) else set())
    assert spared == kept
    for name in before.keys() - kept:
        assert torch.equal(net.get_parameter(name), before[name] / 2)


def test_mixed_precision_is_close():
    net = cascaded.resnet((1, 1), width=4, num_classes=3)
    x, labels = torch.randn(6, 3, 8, 8), torch.arange(6) % 3
    half = LossModule(net, get_method("cascaded-td"), "bfloat16")(x, labels)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, LossModule(net, get_method("cascaded-td"))(x, labels), rtol=0, atol=0.015)


@pytest.mark.parametrize("make", [partial(cascaded.resnet, (1, 1)), partial(cascaded.densenet, (2, 1), 4)])
@pytest.mark.parametrize("name", METHODS)
def test_a_training_step_leaves_nothing_on_the_cpu(name, make, monkeypatch):
    """On a device whose tensors have no values; it refuses operations with tensors of the CPU."""
    monkeypatch.setattr(torch, "autocast", lambda *args, **options: nullcontext())
    config = RunConfig("cifar10", name)
    net = make(num_classes=10, width=4, heads=config.get_method().heads).to("meta").train()
    x, labels = torch.zeros(8, 3, 32, 32, device="meta"), torch.zeros(8, dtype=torch.long, device="meta")
    loss = LossModule(net, config.get_method())(x, labels)
    loss.backward()
    make_optimizer(config, net).step()
    assert {each.device.type for each in (loss, *net.state_dict().values())} == {"meta"}
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        LossModule(net, config.get_method())(torch.zeros(8, 3, 32, 32), labels)


def test_the_precision_is_that_of_the_device_itself(monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    assert [autocast(torch.device(name)) for name in ("cpu", "cuda:1", "mps", "meta")] == [False, True, False, False]


def test_filled_statistics_are_the_mean_over_the_batches():
    net = cascaded.resnet((1, 1), width=4, num_classes=3).double()
    batches = [images(net, batch=4, seed=seed) for seed in range(3)]
    single = []
    for batch in batches:
        one = copy.deepcopy(net)
        fill_statistics(one, [batch])
        single.append(one.state_dict())
    net.eval()
    fill_statistics(net, batches)
    assert not net.training
    for name, filled in net.state_dict().items():
        if "running" in name:
            assert len(filled) > 1
            torch.testing.assert_close(filled, torch.stack([each[name] for each in single]).mean(dim=0))
    assert all(m.momentum == 0.1 for m in net.modules() if isinstance(m, cascaded.TimeBatchNorm))


def one_norm_at_every_step(net, x, steps):
    """The cascade step by step, in the layers of the plain network: ordinary batch norms, the same at every step."""
    stem, *blocks, pool, flatten, head = net.serial()
    first = z = stem(x)
    before, logits = [], []
    for block in blocks:  # what a block has seen at step 0: nothing has come out of the stem
        before.append(torch.zeros_like(z))
        z = block(z)
    for _ in range(steps):
        z = first
        for i, block in enumerate(blocks):
            before[i], z = z, torch.relu(block.skip(z) + block.branch(before[i]))
        logits.append(head(flatten(pool(z))))
    return torch.stack(logits)


@torch.no_grad()
def test_after_cross_entropy_one_batch_norm_is_used_at_every_step():
    net = cascaded.resnet((1, 2, 1), width=4, num_classes=3).double()
    for seed in range(3):
        LossModule(net, get_method("cascaded-ce"))(images(net, seed=seed), torch.arange(3))
    net.eval()
    norms = [module for module in net.modules() if isinstance(module, cascaded.TimeBatchNorm)]
    assert {len(norm.running_mean) for norm in norms} == {1}
    x = images(net, seed=9)
    expected = one_norm_at_every_step(net, x, steps=5)
    assert not torch.allclose(expected[0], expected[-1])
    torch.testing.assert_close(net(x), expected, rtol=1e-9, atol=1e-9)
    fill_statistics(net, [images(net, seed=seed) for seed in range(4)])
    assert not torch.allclose(net(x)[1], one_norm_at_every_step(net, x, steps=2)[1])
    torch.testing.assert_close(net(x)[-1], net.serial()(x), rtol=1e-9, atol=1e-9)
    for norm in norms:
        norm.keep_final_statistics()
    torch.testing.assert_close(net(x), one_norm_at_every_step(net, x, steps=5), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("schedule", ["cascaded", "serial"])
def test_accuracy_is_the_share_that_is_right_at_every_step(schedule):
    net = cascaded.resnet((1, 1), width=4, num_classes=3).train()
    batches = [(images(net, seed=seed, batch=n), torch.arange(n) % 3) for seed, n in ((0, 5), (1, 3))]
    found = accuracy(net, batches, schedule)
    assert net.training
    net.eval()
    right = [[(step == labels).sum().item() for step in net(x, schedule=schedule).argmax(-1)] for x, labels in batches]
    assert found == [(a + b) / 8 for a, b in zip(*right, strict=True)]


# --- the moving average of the weights


@pytest.mark.parametrize("method", ["cascaded-td", "serial-ce"])
def test_the_saved_network_is_the_average_over_all_steps_and_training_does_not_depend_on_it(
    method, tiny_run, tmp_path, monkeypatch
):
    seen, step = [], Trainer.step

    def stepping(self):
        seen.extend([] if seen else [copy.deepcopy(self.net.state_dict())])
        loss = step(self)
        seen.append(copy.deepcopy(self.net.state_dict()))
        return loss

    without = checkpoint.newest(tiny_run(method))
    monkeypatch.setattr(Trainer, "step", stepping)
    train(tiny_config(method, ema=0.5), tmp_path, ExecutionConfig("cpu"))
    found, (initial, *after) = checkpoint.newest(tmp_path), seen
    assert len(after) == 10
    for name, average in initial.items():
        if average.shape != after[0][name].shape:  # statistics of the steps that the first batch has shown
            average = after[0][name]
        for t, now in enumerate(after):
            decay = min(0.5, (1 + t) / (10 + t))
            average = decay * average.double() + (1 - decay) * now[name]
        expected = after[-1][name] if name.endswith("batches") else average.float()
        torch.testing.assert_close(found.model[name], expected, rtol=1e-5, atol=1e-6)
    raw = {name.removeprefix(RAW): each for name, each in found.optimizer.items() if name.startswith(RAW)}
    torch.testing.assert_close(raw, without.model, rtol=0, atol=0)
    assert all(torch.equal(found.optimizer[name], each) for name, each in without.optimizer.items())
    assert not torch.equal(found.model["stem.0.weight"], raw["stem.0.weight"])


def test_both_optimizers_take_the_steps_of_torchs_own():
    """Against the optimizer with its defaults, used by hand; weight decay spares norms and biases."""
    for kind, make in (("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW)):
        net = cascaded.resnet((1, 1), width=4, num_classes=3).double()
        own = copy.deepcopy(net)
        config = RunConfig(width=4, optimizer=kind, lr=0.01, momentum=0.0, decay_norms=False, weight_decay=0.5)
        norms = [p for p in own.parameters() if p.dim() < 4 and p.shape != (3, 8)]  # convolutions and the head decay
        others = [p for p in own.parameters() if all(p is not each for each in norms)]
        groups = [{"params": others, "weight_decay": 0.5}, {"params": norms, "weight_decay": 0.0}]
        for optimizer, each in ((make_optimizer(config, net), net), (make(groups, lr=0.01), own)):
            for _ in range(2):
                optimizer.zero_grad()
                each(images(net)).square().sum().backward()
                optimizer.step()
        for one, other in zip(net.parameters(), own.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
