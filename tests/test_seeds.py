"""What is drawn at a place is known from the place."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from cascaded.training.seeds import generator_at, seed_at

places = st.tuples(st.integers(0, 2**40), st.sampled_from(["order", "augment"]), st.integers(0, 10**6))


@given(places, places)
def test_places_have_seeds_of_their_own(one, other):
    assert 0 <= seed_at(*one) < 2**63
    assert (seed_at(*one) == seed_at(*other)) == (one == other)


def test_a_generator_depends_on_nothing_else():
    before = torch.get_rng_state()
    first, second = (torch.rand(3, generator=generator_at(0, "order", 5)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())
