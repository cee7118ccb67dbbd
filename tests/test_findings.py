"""The sentence of the first screen: every number in it is in the table."""

import pandas as pd

from cascaded.report.findings import context, findings, main_rows
from cascaded.results.table import empty
from tests.made_table import made_table

TD0, CE, EXITS = ("cascaded-td", 0.0), ("cascaded-ce", None), ("serial-td-multihead", 1.0)


def table(*methods, **options):
    return made_table("speed_accuracy", methods=methods, **options)


def percent(rows, method, step):
    own = rows[(rows["metric"] == "accuracy_per_step") & (rows["time"] == "coarse") & (rows["method"] == method)]
    return f"{100 * own[own['x'] == step]['value'].mean():.0f} %"


def test_two_networks_are_compared_at_the_step_of_the_largest_difference_and_at_the_last():
    rows = table(TD0, CE)
    step = max(
        range(1, 9), key=lambda t: int(percent(rows, "cascaded-td", t)[:-2]) - int(percent(rows, "cascaded-ce", t)[:-2])
    )
    early, late = ([percent(rows, method, at) for method in ("cascaded-td", "cascaded-ce")] for at in (step, 9))
    assert findings(rows) == (
        f"After {step} of 9 steps the network trained with TD(0) is right on {early[0]} of the images, the one trained "
        f"with cross-entropy on {early[1]}; at the last step {late[0]} and {late[1]}.",
    )


def test_one_network_is_compared_with_itself():
    (sentence,) = findings(table(("cascaded-td", 0.5)))
    assert sentence.startswith("After 6 of 9 steps the network trained with TD(0.5) is right on ")
    assert sentence.endswith(f"; at the last step on {percent(table(('cascaded-td', 0.5)), 'cascaded-td', 9)}.")


def test_other_networks_have_the_names_of_the_paper():
    (sentence,) = findings(table(EXITS, TD0))
    assert "TD(0) is right on" in sentence
    assert ", Shallow-Deep on " in sentence


def test_of_several_data_sets_each_has_a_sentence_the_one_with_most_networks_first():
    rows = pd.concat([table(TD0, data="digits"), table(TD0, CE, data="cifar10")], ignore_index=True)
    first, second = findings(rows)
    assert first.startswith("On cifar10, after ")
    assert second.startswith("On digits, after ")
    assert context(rows) == "1,000 test images of cifar10, 3 seeds per network."
    assert [(data, set(own["data"])) for data, own in main_rows(rows).items()] == [
        ("cifar10", {"cifar10"}),
        ("digits", {"digits"}),
    ]


def test_without_results_nothing_was_found():
    assert findings(empty()) == ()
    assert context(empty()) == ""
    assert main_rows(empty()) == {}
