"""Any model with skip connections, converted: every step, state and gradient equals a naive simulation."""

import copy
import re
import warnings

import pytest
import torch
from torch import nn

import cascaded
from cascaded.cascade.convert.checks import unchanged
from cascaded.errors import InputError
from tests import plain_models as plain
from tests.architectures import ARCHITECTURES, QUICK, REFUSED, call, first
from tests.converted import as_call, assert_exact, assert_same, double, given, gradients, run, stream
from tests.naive_cascade import Naive
from tests.refused import refused

KERNELS = [
    cascaded.OneStepDelay(),
    cascaded.ExponentialSmoothing(0.5),
    cascaded.TappedDelay([0, 0.25, 0.75]),
    cascaded.TappedDelay([0.5, 0.25, 0.25]),
    cascaded.NoDelay(),
    cascaded.TappedDelay([0, 0.5]),
]


def made(architecture):
    """Model and inputs in double precision; skips where a package is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other packages, when they are imported
        if reason := architecture.missing():
            pytest.skip(reason)
        torch.manual_seed(0)
        model, inputs = architecture.make()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d | nn.BatchNorm3d):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    return model.double(), double(inputs)


def converted(architecture, **options):
    model, inputs = made(architecture)
    return cascaded.convert(model, given(inputs), output=architecture.output, **options), inputs


def check(architecture):
    """All that must be exact, in evaluation mode."""
    net, inputs = converted(architecture)
    outputs = assert_exact(net, inputs)
    with torch.no_grad():
        assert_same(outputs[-1], architecture.predicted(call(net.serial(), inputs)))
        fewer = first(inputs, 2)
        if not architecture.dynamic:
            with pytest.raises(cascaded.errors.InputError, match="cannot be called with these inputs"):
                run(net, fewer)
        elif not architecture.mixes:
            assert_same(run(net, fewer), outputs[:, :2])
            assert len(net._captures) == 1
    return net


@pytest.mark.parametrize("name", QUICK)
def test_every_step_equals_the_naive_simulation(name):
    check(ARCHITECTURES[name])


@pytest.mark.architectures
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_step_of_every_architecture_equals_the_naive_simulation(name):
    check(ARCHITECTURES[name])


TRAINED = ["our-vit", "resnet-post-activation", "our-unet-batch-norm", "densenet"]


@pytest.mark.parametrize("name", TRAINED)
def test_training_mode_equals_the_naive_simulation(name):
    model, inputs = made(ARCHITECTURES[name])
    net = cascaded.convert(model.train(), given(inputs))
    assert_exact(net, inputs)


@pytest.mark.architectures
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_training_mode_of_every_architecture_equals_the_naive_simulation(name):
    model, inputs = made(ARCHITECTURES[name])
    net = cascaded.convert(model.train(), given(inputs), output=ARCHITECTURES[name].output)
    assert_exact(net, inputs)


@pytest.fixture(scope="module")
def vit():
    net, (images,) = converted(ARCHITECTURES["our-vit"])
    return net, images


@pytest.fixture(scope="module")
def unet():
    net, (images,) = converted(ARCHITECTURES["our-unet-batch-norm"])
    return net, images


# --- kernels and schedules


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel_equals_the_naive_simulation(vit, unet, kernel):
    for net, images in (vit, unet):
        assert_exact(net, images, kernel, steps=7)


def test_smoothing_needs_a_number_of_steps(vit):
    net, images = vit
    with pytest.raises(ValueError, match=r"converges only in the limit: give steps"):
        net(images, kernel=cascaded.ExponentialSmoothing(0.9))


def test_the_serial_schedule_adds_one_branch_per_step(vit):
    net, images = vit
    outputs = net(images, schedule="serial")
    assert len(outputs) == net.settle_steps
    for number, output in enumerate(outputs, start=1):
        assert_same(output, with_branches(net.model, images, number - 1))
    stepped, _ = stream(net, images, len(outputs) + 2, schedule="serial")
    assert_same(stepped, torch.cat([outputs, outputs[-1:], outputs[-1:]]))
    mask = torch.tensor([False, True, True])
    state = net.step(images, schedule="serial")[1].select(mask)
    assert_same(net.step(None, state, schedule="serial")[0], outputs[1][mask])
    with pytest.raises(ValueError, match="not a film"):
        net(images[None], schedule="serial")


def with_branches(model, images, count):
    """The output of a vision transformer with its first branches only; the others add nothing."""
    model = copy.deepcopy(model)
    branches = [last for layer in model.layers for last in (layer.attention.output, layer.mlp[-1])]
    for branch in branches[count:]:
        nn.init.zeros_(branch.weight)
        nn.init.zeros_(branch.bias)
    return model(images)


def test_the_serial_schedule_computes_every_layer_once(vit):
    net, images = vit
    counted = count_operations(lambda: net(images, schedule="serial"), "addmm", "linear")
    assert counted < 2 * count_operations(lambda: net.model(images), "addmm", "linear")


def count_operations(function, *names):
    from torch.profiler import profile

    with profile() as profiler, torch.no_grad():
        function()
    return sum(event.count for event in profiler.key_averages() if event.key.removeprefix("aten::") in names)


# --- films and streams


def test_a_film_equals_its_frames_one_at_a_time(vit, unet):
    for net, images in (vit, unet):
        film = torch.stack([images, images.flip(0), images.flip(-1)])
        for kernel in KERNELS[:3]:
            outputs, state = [], None
            for frame in [*film, None, None]:
                output, state = net.step(frame, state, kernel=kernel)
                outputs.append(output)
            assert_same(net(film, steps=5, kernel=kernel), torch.stack(outputs))
            inputs = [[film[min(step, 2)]] for step in range(5)]
            assert_same(torch.stack(outputs), Naive(net, as_call(images), kernel).run(5, inputs))
        assert len(net(film)) == 3


def test_items_that_stay_do_not_notice_those_that_leave(vit, unet):
    for net, images in (vit, unet):
        for kernel in KERNELS[:3]:
            outputs, states = stream(net, images, 4, kernel=kernel)
            mask = torch.tensor([True, False, True])
            state = states[1].select(mask)
            assert state.batch == 2
            for step in (2, 3):
                output, state = net.step(None, state, kernel=kernel)
                assert_same(output, outputs[step][mask])


def test_a_state_survives_a_file_and_has_no_history_when_detached(vit, tmp_path):
    net, images = vit
    outputs, states = stream(net, images, 3)
    torch.save(tuple(states[1].detach()), tmp_path / "state.pt")
    state = cascaded.GraphState(*torch.load(tmp_path / "state.pt", weights_only=True))
    assert not any(frame.requires_grad for frames in state.frames for frame in frames)
    assert_same(net.step(None, state)[0], outputs[2])
    assert {frame.device.type for frames in state.to("meta").frames for frame in frames} == {"meta"}


def test_a_state_is_checked(vit):
    net, images = vit
    with pytest.raises(ValueError, match="the first step has no inputs to repeat"):
        net.step(None)
    _, state = net.step(images)
    with pytest.raises(ValueError, match=r"state was made by OneStepDelay\(\), not by NoDelay\(\)"):
        net.step(None, state, kernel=cascaded.NoDelay())
    with pytest.raises(ValueError, match="inputs have 2 items, state has 3"):
        net.step(images[:2], state)
    with pytest.raises(ValueError, match=r"mask has shape \(2,\), state has 3 items"):
        state.select(torch.tensor([True, False]))


def test_steps_cost_less_when_blocks_are_final(vit, monkeypatch):
    net, images = vit
    monkeypatch.setattr(net, "batched", False)  # one call per layer
    states = [None]

    def layers_of_a_step(inputs):
        return count_operations(lambda: states.append(net.step(inputs, states[-1])[1]), "linear")

    counted = [layers_of_a_step(inputs) for inputs in (images, *[None] * 6)]
    assert counted[0] < counted[1]  # branches are computed when they are due
    assert counted[1:] == sorted(counted[1:], reverse=True)
    assert counted[-1] == 0


# --- our own networks


@pytest.mark.parametrize("make", [cascaded.resnet18, lambda **_: cascaded.densenet((2, 2), growth=4)])
@pytest.mark.parametrize("training", [True, False])
def test_our_networks_are_their_plain_versions_converted(make, training):
    own = make(width=4).double().train(training)
    images = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    net = cascaded.convert(own.serial(), images, start="rest")
    assert net.settle_steps == own.settle_steps
    if not training:
        assert_same(net(images, schedule="serial"), own(images, schedule="serial"))
        for kernel in KERNELS:
            assert_same(net(images, kernel=kernel, steps=6), own(images, kernel=kernel, steps=6))
    outputs, expected = net(images), own(images)
    assert_same(outputs, expected)
    sizes = [torch.stack([each.square().sum() for each in gradients(*p)]) for p in ((net, outputs), (own, expected))]
    assert_same(sizes[0].sort().values, sizes[1].sort().values)  # the order of the parameters is another one


def test_rest_equals_the_naive_simulation():
    model, (images,) = made(ARCHITECTURES["resnet-post-activation"])
    net = cascaded.convert(model, images, start="rest")
    for kernel in KERNELS[:3]:
        assert_exact(net, images, kernel, steps=6)


# --- which edges are delayed


def test_the_table_names_every_skip_connection(vit):
    net, _ = vit
    lines = net.table().splitlines()
    assert len(lines) == 1 + len(net.joins) == 5
    assert [join.settles for join in net.joins] == [2, 3, 4, 5]
    assert all(re.search(r"identity +\d+ +vit\.py:\d+: ", line) for line in lines[1:])
    assert len({join.name for join in net.joins}) == 4


def test_whole_layers_take_half_the_steps(vit):
    net, images = vit
    layers = cascaded.convert(net.model, images, joins=r"layers\.\d+|blocks\.\d+")
    assert layers.settle_steps == 3
    assert [join.kind for join in layers.joins] == ["layer", "layer"]
    assert_exact(layers, images)


def test_joins_are_chosen_and_excluded_by_name(vit):
    net, images = vit
    names = [join.name for join in net.joins]
    some = cascaded.convert(net.model, images, joins=names[:2])
    others = cascaded.convert(net.model, images, exclude=names[:2])
    assert [join.name for join in some.joins] == names[:2]
    assert [join.name for join in others.joins] == names[2:]
    with pytest.raises(ValueError, match="there is no skip connection"):
        cascaded.convert(net.model, images, joins=["nothing"])
    with pytest.raises(ValueError, match="all 4 skip connections of ViT are excluded"):
        cascaded.convert(net.model, images, exclude=".*")
    with pytest.raises(ValueError, match="no module's name matches"):
        cascaded.convert(net.model, images, joins="nothing")


def test_an_empty_gate_carries_its_input():
    net, (images,) = converted(ARCHITECTURES["our-highway"])
    assert {join.kind for join in net.joins} == {"gated"}
    closed = copy.deepcopy(net.model)
    for name, parameter in closed.named_parameters():
        if "gate" in name:
            parameter.data.fill_(-1e4 if name.endswith("bias") else 0)
    assert_same(net(images)[0], closed(images))


# --- refused


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted_is_refused_in_one_sentence(name):
    architecture = REFUSED[name]
    model, inputs = made(architecture)
    with pytest.raises(cascaded.errors.InputError, match=architecture.refused) as refusal:
        cascaded.convert(model, given(inputs), output=architecture.output)
    assert "\n" not in str(refusal.value)


def test_layers_that_mix_items_are_computed_step_by_step():
    model, inputs = plain.Experts().double(), torch.randn(3, 8, dtype=torch.float64)
    net = cascaded.convert(model, inputs)
    assert_exact(net, inputs)
    assert re.search(r"computed step by step: .*plain_models\.py:\d+.*: it mixes the items of a batch", net.table())
    with pytest.raises(cascaded.errors.InputError, match=r"time cannot be folded into the batch at .*run='auto'"):
        cascaded.convert(model, inputs, run="fold")


def test_steps_can_be_computed_one_after_another(vit):
    net, images = vit
    looped = cascaded.convert(net.model, images, run="loop")
    assert_same(looped(images), net(images))
    assert "run='loop'" in looped.table()


# --- batch norm and dropout


def test_early_steps_have_statistics_of_their_own():
    model, (images,) = made(ARCHITECTURES["resnet-post-activation"])
    net = cascaded.convert(model, images)
    naive, steps = Naive(net, as_call(images)), net.settle_steps
    for name, rows in net.statistics.named_children():
        rows.mean.normal_()
        rows.var.uniform_(0.5, 2)
        for step in range(1, len(rows.mean)):
            naive.rows[name.replace("/", "."), step] = rows.mean[step], rows.var[step]
    assert_same(net(images), naive.run(steps))
    assert_same(stream(net, images, steps)[0], net(images))
    assert_same(net(images)[-1], model(images))


def test_calibration_computes_the_statistics_of_early_steps_only():
    model, (images,) = made(ARCHITECTURES["resnet-post-activation"])
    net = cascaded.convert(model, images)
    before, early = copy.deepcopy(model.state_dict()), net(images)
    batches = [(torch.randn_like(images), None), (torch.randn_like(images), None)]
    assert cascaded.calibrate(net, batches) == 2
    assert_same(net(images)[-1], model(images))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not torch.allclose(net(images)[0], early[0])
    # at step 1 the first block passes its input on: that is what the first norm of the second block gets, after a layer
    first, second = (model[4].branch[0](model[:3](images).relu()) for images, _ in batches)
    mean = (first.mean(dim=(0, 2, 3)) + second.mean(dim=(0, 2, 3))) / 2
    assert_same(getattr(net.statistics, "4/branch/1").mean[1], mean.detach())
    with pytest.raises(ValueError, match="no batches"):
        cascaded.calibrate(net, [])


def test_training_moves_the_models_own_statistics_once():
    model, (images,) = made(ARCHITECTURES["resnet-post-activation"])
    alone = copy.deepcopy(model).train()
    net = cascaded.convert(model.train(), images)
    net(images)
    alone(images)
    for name, value in alone.state_dict().items():
        assert_same(model.state_dict()[name], value)
    stream(net, images, net.settle_steps)
    alone(images)
    for name, value in alone.state_dict().items():
        assert_same(model.state_dict()[name], value)


class Dropping(nn.Module):
    """Dropout in the stem, in branches and in attention."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(self.stem(x))


def test_one_dropout_mask_serves_all_steps():
    net = cascaded.convert(Dropping().double().train(), x := torch.randn(3, 5, 4, dtype=torch.float64))
    assert_exact(net, x)
    torch.manual_seed(3)
    outputs = net(x, steps=net.settle_steps + 1)
    torch.manual_seed(3)
    assert_same(outputs[-1], net.model(x))
    assert_same(outputs[-2], outputs[-1])
    assert not torch.equal(net(x)[-1], outputs[-1])
    assert_same(net.eval()(x)[-1], net.model(x))


# --- as any module


def test_a_converted_model_shares_parameters_and_behaves_as_a_module(vit, tmp_path):
    net, images = vit
    assert net.serial() is net.model
    assert {id(p) for p in net.parameters()} == {id(p) for p in net.model.parameters()}
    twin = copy.deepcopy(net)
    twin.load_state_dict({name: value + 0.01 for name, value in net.state_dict().items()})
    assert_same(twin(images)[-1], twin.model(images))
    assert not torch.allclose(twin(images), net(images))
    torch.save(net, tmp_path / "net.pt")
    loaded = torch.load(tmp_path / "net.pt", weights_only=False)
    assert_same(loaded(images), net(images))


def test_gradients_are_the_same_under_distributed_data_parallel(vit):
    net, images = vit
    expected = gradients(net, net(images))
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(copy.deepcopy(net))
        outputs = wrapped(images)
        weights = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
        (outputs * weights).sum().backward()
        assert_same([parameter.grad for parameter in wrapped.parameters()], expected)
    finally:
        torch.distributed.destroy_process_group()


def test_other_dtypes_batch_sizes_and_inputs_are_captured_when_they_occur():
    net, (images,) = converted(ARCHITECTURES["our-unet-batch-norm"])
    assert_same(net(images[:1]), net(images)[:, :1])
    assert len(net._captures) == 1
    larger = torch.randn(2, 1, 16, 16, dtype=torch.float64)
    assert_same(net(larger)[-1], net.model(larger))
    assert len(net._captures) == 2
    net.float()
    torch.testing.assert_close(net(images.float())[-1], net.model(images.float()))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(net(images.float())[-1], net.model(images.float()), rtol=0.1, atol=0.1)


def test_one_image_is_enough_of_an_example(vit):
    net, images = vit
    alone = cascaded.convert(net.model, images[:1])
    assert_same(alone(images), net(images))


def test_bad_options_are_refused(vit):
    net, images = vit
    with pytest.raises(ValueError, match=r"model is a function: give a torch\.nn\.Module"):
        cascaded.convert(lambda x: x, images)
    with pytest.raises(ValueError, match="start is 'full': give one of empty, rest"):
        cascaded.convert(net.model, images, start="full")
    with pytest.raises(ValueError, match=r"ViT cannot be called with these inputs \(.*\): give inputs that it takes"):
        cascaded.convert(net.model, images[:, :1])
    with pytest.raises(ValueError, match="steps is 0"):
        net(images, steps=0)
    with pytest.raises(ValueError, match="schedule is 'sideways'"):
        net(images, schedule="sideways")


def test_a_model_that_is_refused_during_its_check_keeps_its_statistics():
    norm = nn.BatchNorm1d(4)

    def check():
        with unchanged(norm):
            norm(torch.ones(8, 4))
            raise InputError("the final step differs")

    refused("the final step differs", check)
    assert torch.equal(norm.running_mean, torch.zeros(4))
    assert norm.num_batches_tracked == 0
