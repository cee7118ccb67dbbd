"""Train a converted Hugging Face model with the `Trainer`: only the loss is replaced.

DINOv2 reads its class from the class token, which has seen nothing of the image at step 1, and from the mean over
patches, which has: the first prediction is nearly uniform after a short training, and the second much better. After
training, `net.serial()` is the Hugging Face model itself: save and share it as any other.

    pip install 'cascaded[trainers]'
    python examples/hugging_face_trainer.py [EPOCHS]
"""

import sys
import tempfile

import torch
from torch import Tensor
from transformers import Dinov2Config, Dinov2ForImageClassification, Trainer, TrainingArguments

import cascaded
import cascaded.data


class AnytimeTrainer(Trainer):
    """A `Trainer` whose loss is over all steps."""

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        """The TD loss; `outputs` are those of the last step, as of the model itself."""
        labels = inputs.pop("labels")
        logits = model(**inputs)  # (time, batch, classes)
        loss = cascaded.td_loss(logits, labels, lam=0.0)
        return (loss, {"logits": logits[-1]}) if return_outputs else loss


def rows(split: str) -> list[dict[str, Tensor]]:
    """Digits as the `Trainer` expects them."""
    digits = cascaded.data.load("digits", split)
    return [
        {"pixel_values": image / 255, "labels": label}
        for image, label in zip(digits.images, digits.labels, strict=True)
    ]


def main(epochs: int = 10) -> None:
    """Train, then print the accuracy at every step."""
    torch.manual_seed(0)
    sizes = {"image_size": 8, "patch_size": 2, "num_channels": 1, "hidden_size": 32, "num_hidden_layers": 3}
    config = Dinov2Config(**sizes, num_attention_heads=4, mlp_ratio=2, num_labels=10)
    train, test = rows("train"), rows("test")
    images = torch.stack([row["pixel_values"] for row in test])
    net = cascaded.convert(Dinov2ForImageClassification(config), {"pixel_values": images[:2]})
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=32,
            learning_rate=3e-3,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,  # columns are chosen by the signature of forward, which takes any
        )
        AnytimeTrainer(net, options, train_dataset=train).train()
    labels = torch.stack([row["labels"] for row in test])
    with torch.no_grad():
        right = net.eval()(pixel_values=images).argmax(dim=-1) == labels
    print("step   accuracy")
    for step, accuracy in enumerate(right.double().mean(dim=1).tolist(), start=1):
        print(f"{step:4}   {accuracy:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
