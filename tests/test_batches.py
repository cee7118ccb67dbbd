"""The images of a step depend on the seed and the step only."""

from collections import Counter

import pytest
import torch
from PIL import Image

from cascaded import RunConfig
from cascaded.data.noise import NOISES
from cascaded.training.data import load_batches
from cascaded.training.distributed import Distributed
from tests.refused import refused

CPU = torch.device("cpu")


def batches_of(processes=None, **changes):
    return load_batches(RunConfig(**{"batch_size": 32, "max_images": 200, **changes}), processes or Distributed(), CPU)


def test_an_epoch_has_every_image_at_most_once_and_the_next_in_another_order():
    batches = batches_of(pad=0, flip=False, cutout=0)
    assert batches.steps_per_epoch == 6  # 200 images in batches of 32: 8 are left for another time

    def seen(epoch):
        steps = range(epoch * 6, epoch * 6 + 6)
        return [tuple(image.flatten().tolist()) for step in steps for image in batches.at(step)[0]]

    first, second = seen(0), seen(1)
    known = Counter(
        tuple(x.flatten().tolist()) for x, _ in batches.eval_batches(batches.images, batches.train) for x in x
    )
    assert not Counter(first) - known
    assert not Counter(second) - known
    assert first[:32] != second[:32]


def test_a_step_is_the_same_whenever_it_is_computed():
    images, labels = batches_of().at(9)
    again, same = batches_of().at(9)
    assert torch.equal(images, again)
    assert torch.equal(labels, same)
    other, _ = batches_of().at(8)
    assert not torch.equal(images, other)


def test_the_shares_of_the_processes_are_the_whole_batch():
    images, labels = batches_of().at(3)
    shares = [batches_of(Distributed(rank, 4)).at(3) for rank in range(4)]
    assert torch.equal(torch.cat([x for x, _ in shares]), images)
    assert torch.equal(torch.cat([y for _, y in shares]), labels)


def test_the_split_does_not_depend_on_the_seed_of_the_run():
    one, other = (load_batches(RunConfig(seed=seed), Distributed(), CPU) for seed in (0, 1))
    assert torch.equal(one.validation, other.validation)
    assert sorted([*one.validation.tolist(), *one.train.tolist()]) == list(range(len(one.images)))


def test_the_recipe_changes_the_augmentation_that_the_data_brings():
    assert batches_of().augment.pad == 1
    changed = batches_of(pad=2, flip=True, cutout=3).augment
    assert (changed.pad, changed.flip, changed.cutout) == (2, True, 3)
    noisy = batches_of(noise="occlusion").augment
    assert (noisy.noise, noisy.cutout) == (NOISES["occlusion"], 0)


def test_images_are_normalized_with_the_statistics_of_the_training_images():
    images = torch.cat([x for x, _ in batches_of().eval_batches(batches_of().images, batches_of().train)])
    assert images.mean().item() == pytest.approx(0, abs=1e-4)
    assert images.std().item() == pytest.approx(1, abs=1e-3)


def test_nothing_held_out_is_nothing_to_validate():
    assert len(batches_of(val_fraction=0.0).validation) == 0


def test_a_batch_that_cannot_be_had_or_shared_is_refused():
    refused("batch_size is 201, there are 200 training images", batches_of, batch_size=201)
    refused("batch_size is 32, there are 3 processes", batches_of, Distributed(0, 3))


def pictures(root, split, color, names=("leaf", "sky"), mode="RGB"):
    for name in names:
        for k in range(20):
            folder = root / split / name
            folder.mkdir(parents=True, exist_ok=True)
            Image.new(mode, (8, 8), color + k if mode == "L" else (color + k, k, len(name))).save(folder / f"{k}.png")


def own(root, **options):
    return load_batches(RunConfig(str(root), batch_size=4, **options), Distributed(), CPU)


def test_test_images_that_do_not_fit_are_refused_before_the_training(tmp_path):
    pictures(tmp_path, "train", 100)
    assert own(tmp_path).test is None
    pictures(tmp_path, "test", 50, mode="L")
    refused(r"the size of .* differ between test, \(1, 8, 8\), and train, \(3, 8, 8\)", own, tmp_path)


def test_test_images_of_other_classes_are_refused(tmp_path):
    pictures(tmp_path, "train", 100)
    pictures(tmp_path, "test", 50, names=("leaf", "sea"))
    refused("class 'sea' has no images", own, tmp_path)


def test_the_fingerprint_tells_other_images(tmp_path):
    pictures(tmp_path, "train", 100)
    before = own(tmp_path).images.fingerprint()
    assert own(tmp_path).images.fingerprint() == before
    Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / "train" / "leaf" / "3.png")
    assert own(tmp_path).images.fingerprint() != before
