"""Architectures that are converted in tests, small and with random weights, and others that must be refused.

Nothing is downloaded. Packages are imported when an architecture is made: `Architecture.missing` gives the reason why
one cannot be made here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from cascaded.models.gpt import GPT
from cascaded.models.highway import Highway
from cascaded.models.unet import UNet
from cascaded.models.vit import ViT
from tests import plain_models as plain

BATCH = 3  # no other size below, so that nothing is taken for the batch by accident
Inputs = tuple[Tensor, ...] | dict[str, Tensor]
"""Arguments, or arguments by name."""


@dataclass(frozen=True)
class Architecture:
    """A model to convert.

    Attributes:
        make: Returns the model, in evaluation mode, and example inputs.
        package: The optional package that it comes from.
        output: The field of the model's output that is predicted; None where the output is a tensor.
        refused: A pattern of the sentence it is refused with; None where it is converted.
        dynamic: Whether `torch.export` captures it with a batch of any size.
        mixes: Whether items of a batch affect each other.
    """

    make: Callable[[], tuple[nn.Module, Inputs]]
    package: str | None = None
    output: str | None = None
    refused: str | None = None
    dynamic: bool = True
    mixes: bool = False

    def missing(self) -> str | None:
        """Why it cannot be made here; None if it can."""
        return None if self.package is None else why_missing(self.package)

    def predicted(self, output: Any) -> Tensor:
        """The predicted tensor of the model's output."""
        return output if self.output is None else output[self.output]


def why_missing(package: str) -> str | None:
    """Why a package cannot be imported; None if it can."""
    try:
        import_module(package)
    except (ImportError, RuntimeError) as error:  # a broken torchvision raises the latter
        return f"{package} is not installed ({error})"
    return None


def call(model: nn.Module, inputs: Inputs) -> Any:
    """The model's output."""
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def first(inputs: Inputs, count: int) -> Inputs:
    """The first items of a batch of inputs."""
    if isinstance(inputs, dict):
        return {name: value[:count] for name, value in inputs.items()}
    return tuple(value[:count] for value in inputs)


def of(model: nn.Module, *inputs: Tensor, **named: Tensor) -> tuple[nn.Module, Inputs]:
    return model.eval(), named or inputs


def image(size: int = 8, channels: int = 3) -> Tensor:
    return torch.randn(BATCH, channels, size, size)


def ids(tokens: int = 6, vocabulary: int = 11) -> Tensor:
    return torch.randint(1, vocabulary, (BATCH, tokens))


def mask(tokens: int = 6) -> Tensor:
    """The last item is two tokens shorter."""
    mask = torch.ones(BATCH, tokens, dtype=torch.long)
    mask[-1, -2:] = 0
    return mask


# --- transformers


def hugging_face(name: str, inputs: Callable[[], dict[str, Tensor]], config: str, **options: Any):
    """A function that makes a model of `transformers` from its class, that of its configuration, and options."""

    def make() -> tuple[nn.Module, Inputs]:
        transformers = import_module("transformers")
        return of(getattr(transformers, name)(getattr(transformers, config)(**options)), **inputs())

    return make


def pixels() -> dict[str, Tensor]:
    return {"pixel_values": image(16)}


def text() -> dict[str, Tensor]:
    return {"input_ids": ids(), "attention_mask": mask()}


ENCODER = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
SQUARE = {**ENCODER, "image_size": 16, "patch_size": 4}
LANGUAGE = {**ENCODER, "vocab_size": 11, "max_position_embeddings": 16}
STAGES = {"depths": [1, 2], "hidden_sizes": [8, 16]}


def of_hugging_face(name: str, config: str, inputs: Callable, output: str = "logits", **options: Any) -> Architecture:
    return Architecture(hugging_face(name, inputs, config, **options), "transformers", output)


def whisper_encoder() -> tuple[nn.Module, Inputs]:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=8,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=16,
        num_mel_bins=4,
        max_source_positions=5,
        vocab_size=11,
        pad_token_id=0,
    )
    return of(WhisperEncoder(config), input_features=torch.randn(BATCH, 4, 10))


def t5_inputs() -> dict[str, Tensor]:
    return {**text(), "decoder_input_ids": ids(4)}


HUGGING_FACE = {
    "vit": of_hugging_face("ViTForImageClassification", "ViTConfig", pixels, num_labels=5, **SQUARE),
    "deit": of_hugging_face("DeiTForImageClassification", "DeiTConfig", pixels, num_labels=5, **SQUARE),
    "dinov2": of_hugging_face(
        "Dinov2ForImageClassification", "Dinov2Config", pixels, num_labels=5, mlp_ratio=2, **SQUARE
    ),
    "beit": of_hugging_face("BeitForImageClassification", "BeitConfig", pixels, num_labels=5, **SQUARE),
    "convnext": of_hugging_face(
        "ConvNextForImageClassification", "ConvNextConfig", pixels, num_labels=5, num_stages=2, patch_size=2, **STAGES
    ),
    "resnet": of_hugging_face(
        "ResNetForImageClassification",
        "ResNetConfig",
        pixels,
        num_labels=5,
        embedding_size=8,
        layer_type="basic",
        **STAGES,
    ),
    "swin": of_hugging_face(
        "SwinForImageClassification",
        "SwinConfig",
        pixels,
        num_labels=5,
        image_size=16,
        patch_size=2,
        embed_dim=8,
        depths=[2, 1],
        num_heads=[2, 2],
        window_size=4,
    ),
    "segformer": of_hugging_face(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        pixels,
        num_labels=5,
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        patch_sizes=[3, 3],
        strides=[2, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=8,
    ),
    "bert": of_hugging_face("BertForSequenceClassification", "BertConfig", text, num_labels=5, **LANGUAGE),
    "roberta": of_hugging_face("RobertaForTokenClassification", "RobertaConfig", text, num_labels=5, **LANGUAGE),
    "distilbert": of_hugging_face(
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        text,
        num_labels=5,
        vocab_size=11,
        max_position_embeddings=16,
        dim=8,
        hidden_dim=16,
        n_layers=2,
        n_heads=2,
    ),
    "gpt2": of_hugging_face(
        "GPT2LMHeadModel",
        "GPT2Config",
        text,
        vocab_size=11,
        n_positions=16,
        n_embd=8,
        n_layer=2,
        n_head=2,
        use_cache=False,
    ),
    "llama": of_hugging_face("LlamaForCausalLM", "LlamaConfig", text, use_cache=False, **LANGUAGE),
    "qwen3": of_hugging_face(
        "Qwen3ForCausalLM", "Qwen3Config", text, use_cache=False, num_key_value_heads=1, head_dim=4, **LANGUAGE
    ),
    "t5": of_hugging_face(
        "T5ForConditionalGeneration",
        "T5Config",
        t5_inputs,
        vocab_size=11,
        d_model=8,
        d_kv=4,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        use_cache=False,
    ),
    "whisper-encoder": Architecture(whisper_encoder, "transformers", "last_hidden_state"),
    "mamba": of_hugging_face(
        "MambaForCausalLM",
        "MambaConfig",
        lambda: {"input_ids": ids()},
        vocab_size=11,
        hidden_size=8,
        state_size=4,
        num_hidden_layers=2,
        use_cache=False,
    ),
}


# --- MONAI and x-transformers


def monai_unet(dimensions: int):
    def make() -> tuple[nn.Module, Inputs]:
        from monai.networks.nets import UNet as MonaiUNet

        net = MonaiUNet(dimensions, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
        return of(net, torch.randn(BATCH, 1, *[8] * dimensions))

    return make


def segresnet(dimensions: int):
    def make() -> tuple[nn.Module, Inputs]:
        from monai.networks.nets import SegResNet

        net = SegResNet(dimensions, init_filters=8, out_channels=2, blocks_down=(1, 1), blocks_up=(1,))
        return of(net, torch.randn(BATCH, 1, *[8] * dimensions))

    return make


def x_decoder() -> tuple[nn.Module, Inputs]:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=8, depth=2, heads=2, attn_dim_head=64, rotary_pos_emb=True, ff_glu=True)
    return of(TransformerWrapper(num_tokens=11, max_seq_len=16, attn_layers=layers), ids())


def x_vit() -> tuple[nn.Module, Inputs]:
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(dim=8, depth=2, heads=2, attn_dim_head=4)
    return of(ViTransformerWrapper(image_size=16, patch_size=4, num_classes=5, attn_layers=layers), image(16))


OTHER_PACKAGES = {
    "monai-unet-2d": Architecture(monai_unet(2), "monai"),
    "monai-unet-3d": Architecture(monai_unet(3), "monai"),
    "monai-segresnet-2d": Architecture(segresnet(2), "monai"),
    "monai-segresnet-3d": Architecture(segresnet(3), "monai"),
    "x-decoder": Architecture(x_decoder, "x_transformers"),
    "x-vit": Architecture(x_vit, "x_transformers"),
}


# --- torch alone


def encoder(norm_first: bool):
    def make() -> tuple[nn.Module, Inputs]:
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
        return of(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(BATCH, 6, 8))

    return make


PLAIN = {
    "our-vit": Architecture(lambda: of(ViT(5, 16, 4, depth=2, width=8, heads=2), image(16))),
    "our-gpt": Architecture(lambda: of(GPT(11, 6, depth=2, width=8, heads=2), ids())),
    "our-unet": Architecture(lambda: of(UNet(4, 1, depth=2, width=4), image(8, 1))),
    "our-unet-batch-norm": Architecture(lambda: of(UNet(4, 1, depth=2, width=4, norm="batch"), image(8, 1))),
    "our-highway": Architecture(lambda: of(Highway(5, 16, depth=2, width=8), image(4, 1))),
    "encoder-pre-norm": Architecture(encoder(norm_first=True)),
    "encoder-post-norm": Architecture(encoder(norm_first=False)),
    "encoder-sequence-first": Architecture(lambda: of(plain.SequenceFirst(), torch.randn(BATCH, 6, 8))),
    "parallel-blocks": Architecture(lambda: of(plain.ParallelBlocks(), torch.randn(BATCH, 6, 8))),
    "mlp-mixer": Architecture(lambda: of(plain.Mixer(), image())),
    "resnet-pre-activation": Architecture(lambda: of(plain.resnet(plain.PreActivation), image())),
    "resnet-post-activation": Architecture(lambda: of(plain.resnet(plain.PostActivation), image())),
    "densenet": Architecture(lambda: of(plain.DenseNet(), image())),
    "lstm-skip": Architecture(lambda: of(plain.SkipLSTM(), ids())),
    "hyena": Architecture(lambda: of(plain.Hyena(), ids())),
    "experts": Architecture(lambda: of(plain.Experts(), torch.randn(BATCH, 8)), mixes=True),
    "fixed-batch": Architecture(lambda: of(plain.FixedBatch(BATCH), torch.randn(BATCH, 8)), dynamic=False),
}

ARCHITECTURES: dict[str, Architecture] = {**PLAIN, **OTHER_PACKAGES, **HUGGING_FACE}
QUICK = [
    *("our-vit", "our-gpt", "our-unet-batch-norm", "our-highway", "encoder-post-norm", "resnet-post-activation"),
    *("densenet", "lstm-skip", "parallel-blocks", "vit", "gpt2", "t5", "monai-unet-2d"),
]
"""Those that are converted in every run of the tests."""


# --- refused


def vgg() -> tuple[nn.Module, Inputs]:
    return of(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 5)), image())


def refused(model: Callable[[], nn.Module], shape: tuple[int, ...], reason: str) -> Architecture:
    return Architecture(lambda: of(model(), torch.randn(BATCH, *shape)), refused=reason)


REFUSED: dict[str, Architecture] = {
    "no-skip": Architecture(vgg, refused="no skip connection"),
    "skip-without-mixing": refused(plain.ElementwiseSkip, (4,), "no skip connection"),
    "branch-on-data": refused(plain.Branching, (4,), "cannot capture Branching.*branches on the values"),
    "through-numpy": refused(plain.ThroughNumpy, (4,), "cannot capture ThroughNumpy"),
    "norm-used-twice": refused(plain.SharedNorm, (4, 6, 6), "used twice"),
    "cache": Architecture(
        hugging_face(
            "GPT2LMHeadModel", text, "GPT2Config", vocab_size=11, n_positions=16, n_embd=8, n_layer=2, n_head=2
        ),
        "transformers",
        "logits",
        "use_cache=False",
    ),
    "noise-at-every-call": refused(plain.Noisy, (4,), "random numbers"),
    "hidden-state": refused(plain.Stateful, (4,), "keeps state in seen"),
    "shared-memory": refused(plain.SharedMemory, (4, 6, 6), "in-place operation"),
    "no-field-logits": refused(plain.Unnamed, (4,), "features.*output="),
}
