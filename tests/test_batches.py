"""The images of a step depend on the seed and the step only."""

import shutil
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cascaded import RunConfig
from cascaded.data.noise import NOISES
from cascaded.training.data import load_batches
from cascaded.training.distributed import Distributed
from cascaded.training.seeds import generator_at, seed_at
from tests.pictures import encoded, image_folder, picture
from tests.refused import refused

CPU = torch.device("cpu")


def batches_of(processes=None, **changes):
    return load_batches(RunConfig(**{"batch_size": 32, "max_images": 200, **changes}), processes or Distributed(), CPU)


places = st.tuples(st.integers(0, 2**40), st.sampled_from(["order", "augment"]), st.integers(0, 10**6))


@given(places, places)
def test_a_place_has_a_seed_of_its_own_and_what_is_drawn_there_depends_on_nothing_else(one, other):
    assert 0 <= seed_at(*one) < 2**63
    assert (seed_at(*one) == seed_at(*other)) == (one == other)
    before = torch.get_rng_state()
    first, second = (torch.rand(3, generator=generator_at(*one)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())


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


def test_a_step_is_the_same_whenever_it_is_computed_and_the_shares_of_the_processes_are_the_whole_batch():
    images, labels = batches_of().at(3)
    assert not torch.equal(images, batches_of().at(8)[0])
    shares = [batches_of(Distributed(rank, 4)).at(3) for rank in range(4)]
    assert torch.equal(torch.cat([x for x, _ in shares]), images)
    assert torch.equal(torch.cat([y for _, y in shares]), labels)


def test_the_split_does_not_depend_on_the_seed_of_the_run():
    one, other = (load_batches(RunConfig(seed=seed), Distributed(), CPU) for seed in (0, 1))
    assert torch.equal(one.validation, other.validation)
    assert len(batches_of(val_fraction=0.0).validation) == 0
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


def test_a_batch_that_cannot_be_had_or_shared_is_refused():
    refused("batch_size is 201, there are 200 training images", batches_of, batch_size=201)
    refused("batch_size is 32, there are 3 processes", batches_of, Distributed(0, 3))


def own(root, **options):
    return load_batches(RunConfig(str(root), batch_size=4, **options), Distributed(), CPU)


def test_test_images_that_do_not_fit_are_refused_before_the_training_and_other_images_have_another_digest(tmp_path):
    root = image_folder(tmp_path / "set", ["train/leaf", "train/sky"], each=20)
    batches = own(root)
    assert batches.test is None
    image_folder(root, ["test/leaf", "test/sky"], gray=True)
    refused(r"the size of .* differ between test, \(1, 8, 8\), and train, \(3, 8, 8\)", own, root)
    shutil.rmtree(root / "test")
    image_folder(root, ["test/leaf", "test/sea"])
    refused("class 'sea' has no images", own, root)
    shutil.rmtree(root / "test")
    assert own(root).images.fingerprint() == batches.images.fingerprint()
    (root / "train" / "leaf" / "3.png").write_bytes(encoded(picture(999)))
    assert own(root).images.fingerprint() != batches.images.fingerprint()
