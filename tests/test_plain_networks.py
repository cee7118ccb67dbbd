"""Plain networks of `cascaded.models`: ordinary torch, to be converted or used as they are."""

import math

import pytest
import torch
from torch import nn

from cascaded.errors import InputError
from cascaded.models.gpt import GPT
from cascaded.models.highway import Highway
from cascaded.models.unet import UNet
from cascaded.models.vit import Attention, ViT

NETWORKS = {  # model, inputs, shape of the output
    "vit": (lambda: ViT(depth=2, width=16), torch.randn(3, 3, 32, 32), (3, 10)),
    "vit, patch 4": (
        lambda: ViT(7, 16, 4, depth=1, width=8, heads=2, in_channels=1),
        torch.randn(2, 1, 16, 16),
        (2, 7),
    ),
    "unet, group norm": (lambda: UNet(width=4, depth=2), torch.randn(2, 1, 8, 12), (2, 4, 8, 12)),
    "unet, batch norm": (lambda: UNet(3, 2, 1, 6, "batch"), torch.randn(2, 2, 6, 4), (2, 3, 6, 4)),
    "highway": (lambda: Highway(depth=3), torch.rand(2, 1, 8, 8), (2, 10)),
    "gpt": (lambda: GPT(11, context=9, depth=2, width=8, heads=2), torch.randint(11, (2, 9)), (2, 9, 11)),
    "gpt, shorter than its context": (lambda: GPT(11, 9, 1, 8, 2), torch.randint(11, (2, 5)), (2, 5, 11)),
}


@pytest.fixture(params=NETWORKS.values(), ids=NETWORKS)
def network(request):
    make, inputs, shape = request.param
    return make(), inputs, shape


def test_the_output_has_one_prediction_per_image_pixel_or_character(network):
    model, inputs, shape = network
    assert model(inputs).shape == shape


def test_every_parameter_gets_a_gradient(network):
    model, inputs, _ = network
    model(inputs).square().sum().backward()
    unused = {"position"} if isinstance(model, GPT) else set()  # positions behind the text
    without = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]
    assert set(without) <= unused


def test_items_of_a_batch_do_not_affect_each_other(network):
    model, inputs, _ = network
    model.eval()
    torch.testing.assert_close(model(inputs)[:1], model(inputs[:1]))


def test_dropout_is_off_in_evaluation():
    model, images = ViT(depth=1, width=8, heads=2, dropout=0.5), torch.randn(2, 3, 32, 32)
    assert not torch.equal(model(images), model(images))
    model.eval()
    assert torch.equal(model(images), model(images))


def test_attention_is_that_of_torch():
    ours, theirs = Attention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.in_proj_weight, theirs.in_proj_bias = ours.inputs.weight, ours.inputs.bias
    theirs.out_proj.weight, theirs.out_proj.bias = ours.output.weight, ours.output.bias
    z = torch.randn(3, 5, 8)
    torch.testing.assert_close(ours(z), theirs(z, z, z)[0])


def test_a_character_affects_the_predictions_after_it_only():
    model, text = GPT(11, context=9, depth=2, width=8, heads=2), torch.randint(10, (1, 9))
    changed = text.clone()
    changed[0, 4] = 10
    same = (model(text) == model(changed)).all(dim=-1)[0]
    assert same.tolist() == [True] * 4 + [False] * 5


def test_a_highway_layer_by_hand():
    layer = Highway(depth=1, width=2, inputs=2).layers[0]
    layer.load_state_dict(
        {
            "transform.weight": torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
            "transform.bias": torch.tensor([0.5, 0.0]),
            "gate.weight": torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]),
            "gate.bias": torch.tensor([0.0, 0.0]),
        }
    )
    # H = relu([1 + 4 + 0.5, -2]) = [5.5, 0]        T = sigmoid([0, log 3]) = [1/2, 3/4]
    expected = torch.tensor([[0.5 * 5.5 + 0.5 * 1, 0.75 * 0 + 0.25 * 2]])
    torch.testing.assert_close(layer(torch.tensor([[1.0, 2.0]])), expected)


def test_closed_gates_carry_the_input_through_all_layers():
    model = Highway(depth=4, gate_bias=-200.0).double()
    items = torch.rand(3, 64, dtype=torch.float64)
    torch.testing.assert_close(model(items), model.head(model.stem(items)))


def test_a_unet_without_its_deep_path_predicts_from_the_skip_connection():
    model, images = UNet(depth=1, width=4), torch.randn(1, 1, 4, 4)
    nn.init.zeros_(model.enlarge[0].weight)
    nn.init.zeros_(model.enlarge[0].bias)
    shallow = model.stem(images)
    expected = model.head(model.up[0](torch.cat([shallow, torch.zeros_like(shallow)], dim=1)))
    torch.testing.assert_close(model(images), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ViT(image_size=30), "image_size is 30, patch is 8"),
        (lambda: ViT(width=10, heads=4), "width is 10, heads is 4"),
        (lambda: ViT(depth=0), "depth is 0"),
        (lambda: GPT(5, context=4, depth=1, width=8)(torch.zeros(1, 5).long()), "5 characters, .* context is 4"),
        (lambda: UNet(depth=2, width=4)(torch.zeros(1, 1, 8, 6)), "8 x 6 pixels.*multiples of 4"),
        (lambda: UNet(width=6), "6 channels.*multiples of 4"),
        (lambda: UNet(norm="layer"), "norm is 'layer': give 'group' or 'batch'"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
