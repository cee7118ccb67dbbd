"""The effect of lambda: final accuracies on shared seeds, held against lambda 1."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from cascaded.analysis import lambda_effect
from cascaded.analysis.statistics import corrected_sem
from cascaded.errors import InputError
from tests.made_traces import made_trace, with_facts


def of_seed(seed, good):
    trace = made_trace(seed=10 * seed + int(good), good=good, items=200)
    return with_facts(trace, seed=seed)


def test_lambdas_are_compared_on_the_seeds_they_share():
    given = {"0": [of_seed(s, 4) for s in (0, 1, 2)], "1": [of_seed(s, 1) for s in (2, 0, 1, 7)]}
    effect = lambda_effect(given)
    expected = np.array(
        [[(t.logits[-1].argmax(-1) == t.labels).mean() for t in (of_seed(s, 4), of_seed(s, 1))] for s in (0, 1, 2)]
    )
    assert effect.seeds == (0, 1, 2)
    assert np.array_equal(effect.accuracy, expected)
    assert effect.headline == {"accuracy 0": expected[:, 0].mean(), "accuracy 1": expected[:, 1].mean()}
    assert effect.estimates[0].sem == pytest.approx(corrected_sem(expected))
    assert effect.against["0"].p == pytest.approx(ttest_rel(*expected.T).pvalue)
    assert list(effect.against) == ["0"]
    assert effect.to_json()["against reference"]["0"]["difference"] == pytest.approx(-np.diff(expected.mean(0))[0])


def test_without_the_reference_nothing_is_held_against_it():
    assert lambda_effect({"0": [of_seed(0, 4)], "CE": [of_seed(0, 1)]}).against == {}


def test_lambdas_without_a_common_seed_or_of_other_images_are_refused():
    with pytest.raises(InputError, match=r"share no seed \(0 has \[0\], 1 has \[1\]\): train all with the same seeds"):
        lambda_effect({"0": [of_seed(0, 4)], "1": [of_seed(1, 4)]})
    with pytest.raises(InputError, match=r"share no seed \(none are given\)"):
        lambda_effect({})
    with pytest.raises(InputError, match="one trace has 200 items, the other 40"):
        lambda_effect({"0": [of_seed(0, 4)], "1": [made_trace()]})
