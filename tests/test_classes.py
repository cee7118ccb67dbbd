"""Classes by name, first synonym or WordNet id."""

import pytest

from cascaded.data.catalogue import TERRIERS
from cascaded.data.classes import chosen
from cascaded.errors import InputError

HUB = ["tench, Tinca tinca", "goldfish, Carassius auratus", "Airedale, Airedale terrier"]
WORDNET = ["n01440764", "n01443537", "n02096051"]


@pytest.mark.parametrize("name", ["goldfish, Carassius auratus", "goldfish", "n01443537 goldfish, Carassius auratus"])
def test_a_class_goes_by_its_name_and_by_its_first_synonym(name):
    assert chosen([name], HUB) == [1]


@pytest.mark.parametrize("name", ["n01443537", "n01443537 goldfish, Carassius auratus"])
def test_a_class_goes_by_its_wordnet_id(name):
    assert chosen([name], WORDNET) == [1]


def test_classes_come_in_the_order_in_which_they_are_asked_for():
    assert chosen(["Airedale", "tench"], HUB) == [2, 0]


def test_a_whole_name_wins_over_a_synonym():
    assert chosen(["crane"], ["crane, bird", "crane"]) == [1]


def test_the_ten_terriers_are_found_under_both_kinds_of_names():
    ids, names = zip(*(terrier.split(" ", 1) for terrier in TERRIERS), strict=True)
    assert len(set(ids)) == len(set(names)) == 10
    assert chosen(TERRIERS, ids) == chosen(TERRIERS, names) == list(range(10))


def test_an_unknown_class_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="no class 'goldfsh' among the 3 that there are: say 'goldfish'"):
        chosen(["goldfsh"], HUB)
    with pytest.raises(InputError, match="leave --classes out"):
        chosen(["cat"], [])


def test_a_class_is_asked_for_once():
    with pytest.raises(InputError, match="'tench, Tinca tinca' is asked for twice"):
        chosen(["tench", "tench, Tinca tinca"], HUB)
