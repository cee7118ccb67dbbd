"""The paper's claims: verdicts follow from intervals, with the right sign and scale."""

import math

import numpy as np
import pandas as pd
import pytest

from cascaded.analysis.rows import DRAWS as IMAGE_DRAWS
from cascaded.analysis.statistics import bootstrap, mean_of
from cascaded.paper.claims import FEWEST_IMAGES, evaluate, verdict
from cascaded.paper.experiments import EXPERIMENTS as KNOWN
from cascaded.paper.statements import CLAIMS, EXPERIMENTS, STATEMENTS
from cascaded.paper.values import load_values
from cascaded.results.metrics import METRICS
from cascaded.results.registry import ANALYSES
from cascaded.results.run import run_analyses
from cascaded.results.table import COLUMNS, load, to_table
from tests.made_traces import made_run, made_trace

TD0, TD1, TD5 = (("cascaded-td", lam, "cascaded") for lam in (0.0, 1.0, 0.5))
CE, SERIAL_CE = ("cascaded-ce", math.nan, "cascaded"), ("cascaded-ce", math.nan, "serial")
EXITS_TD0 = ("serial-td-multihead", 0.0, "serial")
EXITS, SHALLOW = ("serial-td-multihead", 1.0, "serial"), ("shallow-deep", 1.0, "serial")
MANY, SERIAL = ("cascaded-td-multihead", 0.0, "cascaded"), ("serial-td", 1.0, "serial")
SPEED, NOISE, OOD = {"analysis": "speed_accuracy"}, {"protocol": "persistent"}, {"ood_data": "mean"}
CASES = [  # claim, metric, variants, networks, compared with, effect of a difference of 1
    ("C1", "accuracy", SPEED, TD0, TD1, 100),
    ("C1", "accuracy", SPEED, TD5, TD1, 100),
    ("C2", "area", {**SPEED, "rule": "threshold"}, TD0, EXITS, 100),
    ("C2", "area", {**SPEED, "rule": "threshold"}, TD0, SHALLOW, 100),
    ("C2", "area", {**SPEED, "rule": "threshold"}, TD0, MANY, 100),
    ("C2", "area", {**SPEED, "rule": "threshold"}, EXITS, SERIAL, 100),
    ("C3", "rho", {"analysis": "prototypicality", "measure": "centrality"}, TD0, CE, 1),
    ("C4", "compliance_above_chance", {"analysis": "taxonomic_compliance"}, TD0, None, 100),
    ("C4", "first_step_at_0.35", {"analysis": "taxonomic_compliance"}, TD0, CE, -1),
    ("C4", "compliance_mean", {"analysis": "taxonomic_compliance"}, TD0, CE, 100),
    ("C5", "accuracy", {"analysis": "persistent_noise", "noise": "occlusion", **NOISE}, TD0, CE, 100),
    ("C5", "accuracy", {"analysis": "persistent_noise", "noise": "perlin", **NOISE}, TD0, SERIAL_CE, 100),
    ("C5", "dip", {"analysis": "transient_noise", "noise": "focus", "protocol": "transient"}, TD0, CE, -100),
    ("C6", "auroc_gain", {"analysis": "out_of_distribution", "detector": "msp", **OOD}, TD0, None, 1),
    ("C7", "area_above_deadline", {**SPEED, "rule": "threshold"}, TD0, None, 100),
    ("C9", "area", {**SPEED, "rule": "threshold"}, EXITS_TD0, EXITS, 100),
    ("C9", "accuracy", SPEED, EXITS_TD0, EXITS, 100),
    ("C10", "area", {**SPEED, "rule": "threshold"}, TD0, EXITS_TD0, 100),
    ("C10", "accuracy", SPEED, TD0, EXITS_TD0, 100),
    ("C11", "accuracy", SPEED, TD0, EXITS, 100),
    ("C12", "area", {**SPEED, "rule": "threshold"}, TD0, CE, 100),
    ("C12", "area", {**SPEED, "rule": "threshold"}, SERIAL, SERIAL_CE, 100),
    ("C13", "area", {**SPEED, "rule": "threshold"}, TD1, SERIAL, 100),
    ("C13", "area", {**SPEED, "rule": "threshold"}, MANY, EXITS_TD0, 100),
    ("C13", "area", {**SPEED, "rule": "threshold"}, CE, SERIAL_CE, 100),
    ("C15", "area_above_deadline", {**SPEED, "rule": "threshold"}, SERIAL_CE, None, 100),
    ("C16", "area_above_deadline", {"analysis": "learned_stopper", "rule": "stopper"}, CE, None, 100),
    ("C17", "accuracy", {"analysis": "persistent_noise", "noise": "rotation", **NOISE}, SERIAL_CE, TD0, 100),
    ("C17", "dip", {"analysis": "transient_noise", "noise": "translation"}, SERIAL_CE, CE, -100),
    ("C18", "rho", {"analysis": "prototypicality", "measure": "centrality"}, CE, None, 1),
    ("C7", "area_above_deadline", {"analysis": "learned_stopper", "rule": "stopper"}, TD0, None, 100),
]
DRAWS = np.linspace(-1, 1, 201)
"""Their 95 % interval is -0.95 to 0.95."""


def rows(network, metric, values, draws=DRAWS, **columns):
    """Rows of one number of one network, one per seed."""
    method, lam, schedule = network
    keys = {"config": "c", "data": "digits", "split": "test", "items": "i", "n_items": 1000, "time": "coarse"}
    keys |= {"arch": "resnet18", "width": 16, "kernel": "none" if schedule == "serial" else "osd", "steps": 9}
    keys |= {"method": method, "lam": lam, "schedule": schedule, "metric": metric, "train_noise": columns.get("noise")}
    found = []
    for seed, value in enumerate(values):
        own = {"run": f"{method}-{lam}/{seed}", "seed": seed, "value": value}
        found.append({**keys, **own, "draws": None if draws is None else value + draws, **columns})
    return found


def evaluated(*found):
    return evaluate(to_table(pd.DataFrame([row for each in found for row in each], columns=pd.Index(COLUMNS))))


def of_case(case, values, width, **columns):
    """Rows of a first network that is above the other by `values`, with intervals of +-0.95 width."""
    _, metric, variants, a, b, _ = case
    first = rows(a, metric, values, DRAWS * width, **variants, **columns)
    return first if b is None else first + rows(b, metric, [0.0] * len(values), DRAWS * 0, **variants, **columns)


def measured(case, values, width):
    """The claim's measurements."""
    table = evaluated(of_case(case, values, width))
    return table[(table.claim == case[0]) & (table.label != "")]


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (0.04, 0.02, "supported"),
        (-0.04, 0.02, "contradicted"),
        (0.04, 0.06, "inconclusive"),
        (0.0, 0.0, "inconclusive"),
    ],
)
def test_the_verdict_follows_from_the_interval(value, width, expected):
    names = [f"case {number}" for number in range(len(CASES))]  # all at once: others are not compared
    better = [math.copysign(1, case[-1]) * value for case in CASES]
    found = (of_case(c, [v], width, config=n, run=n) for c, v, n in zip(CASES, better, names, strict=True))
    table = evaluated(*found).query("label != ''")
    for case, name in zip(CASES, names, strict=True):
        (row,) = table[(table.claim == case[0]) & table.runs.map(lambda runs, name=name: name in runs)].itertuples()
        assert row.verdict == expected, case
        assert row.effect == pytest.approx(abs(case[-1]) * value)
        ends = (abs(case[-1]) * (value + end * width) for end in (-0.95, 0.95))
        assert (row.low, row.high) == pytest.approx(tuple(ends), abs=1e-6)
        assert (row.interval_over, row.statement, row.command) == ("images", STATEMENTS[case[0]], "")
        assert [math.copysign(1, end) for end in (row.effect, row.low) if end == 0] in ([], [1], [1, 1])


def test_with_three_seeds_the_interval_is_over_seeds():
    (row,) = measured(CASES[0], [0.02, 0.04, 0.06], width=9).itertuples()
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert (row.interval_over, row.n_seeds, row.verdict) == ("seeds", 3, "inconclusive")
    assert (row.low, row.high) == pytest.approx((100 * (0.04 - half), 100 * (0.04 + half)))


@pytest.mark.parametrize("case", CASES[:1] + CASES[-1:], ids=lambda case: case[0])
def test_an_effect_without_an_interval_has_no_verdict(case):
    claim, metric, variants, a, b, _ = case
    found = [rows(each, metric, [value], None, **variants) for each, value in ((a, 0.3), (b, 0.1)) if each]
    table = evaluated(*found)
    row = table[table.claim == claim].iloc[0]
    assert (row.verdict, math.isnan(row.low)) == ("not measured", True)
    assert row.effect > 0
    assert row.note.startswith("no interval")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.03, 0.008, "supported"),
        (0.01, 0.04, "supported"),  # a difference, smaller than what counts as one
        (-0.03, 0.06, "inconclusive"),
        (0.04, 0.06, "inconclusive"),
        (0.06, 0.10, "contradicted"),
        (-0.10, -0.06, "contradicted"),
        (-0.2, 0.2, "inconclusive"),
    ],
)
def test_a_claim_of_no_difference_needs_the_whole_interval_within_the_margin(low, high, expected):
    assert verdict(low, high, -0.05, 0.05) == expected
    variants = {"analysis": "prototypicality", "measure": "human agreement"}
    (row,) = measured(("C3", "rho", variants, TD0, CE, 1), [(low + high) / 2], (high - low) / 1.9).itertuples()
    assert (row.verdict, row.paper) == (expected, pytest.approx(-0.011))


@pytest.mark.parametrize(
    ("columns", "networks", "effect"),
    [  # differences taken by hand from the tables of the paper
        ({"data": "cifar10", "metric": "accuracy", **SPEED}, (TD0, TD1), 2.47),
        ({"data": "cifar100", "metric": "accuracy", **SPEED}, (TD0, TD1), 4.28),
        ({"data": "cifar100", "metric": "accuracy", **SPEED}, (TD5, TD1), 3.80),
        ({"data": "tinyimagenet", "metric": "accuracy", **SPEED}, (TD0, TD1), 0.88),
        ({"data": "cifar10-sample", "metric": "accuracy", **SPEED}, (TD0, TD1), 2.47),
        ({"data": "cifar10", "metric": "rho", "measure": "C-score"}, (TD0, CE), 0.163),
        ({"data": "cifar10", "metric": "accuracy", **CASES[10][2]}, (TD0, CE), 7.03),
        ({"data": "cifar10", "metric": "accuracy", **CASES[10][2], "noise": "resolution"}, (TD0, SERIAL_CE), 3.66),
        ({"data": "cifar10", "metric": "dip", **CASES[12][2], "noise": "occlusion"}, (TD0, CE), 7.32),
        ({"data": "cifar10", "metric": "dip", **CASES[12][2]}, (TD0, SERIAL_CE), 0.62),
        ({"data": "cifar100", "metric": "first_step_at_0.35", "analysis": "taxonomic_compliance"}, (TD0, CE), 6),
    ],
)
def test_the_papers_effect_is_the_same_query_on_its_values(columns, networks, effect):
    table = evaluated(*(rows(network, values=[0.5], **columns) for network in networks))
    (row,) = table[table.b != ""].drop_duplicates("paper").itertuples()
    assert row.paper == pytest.approx(effect)
    assert row.paper_data == ("cifar10" if columns["data"] == "cifar10-sample" else columns["data"])


@pytest.mark.parametrize(
    ("effect", "half", "expected"),
    [
        (0.02, 0.005, "supported"),
        (-0.004, 0.005, "supported"),
        (-0.03, 0.005, "contradicted"),
        (0, 0.02, "inconclusive"),
    ],
)
def test_a_claim_of_no_loss_allows_any_gain(effect, half, expected):
    (row,) = measured(("C8", "accuracy", SPEED, TD0, CE, 100), [effect], half / 0.95).itertuples()
    assert (row.verdict, row.claimed, row.paper) == (expected, "above -1", pytest.approx(-0.69))


def curve(network, values, draws=DRAWS * 0.01):
    """Accuracy at costs from 1 on; the last point has no draws."""
    points = {"rule": "threshold", "unit": "steps", **SPEED}
    drawn = [draws] * (len(values) - 1) + [None]
    return [
        rows(network, "accuracy_at_cost", [v], d, x=x, **points)[0]
        for x, (v, d) in enumerate(zip(values, drawn, strict=True), 1)
    ]


@pytest.mark.parametrize(
    ("a", "expected"),
    [([0.5, 0.6, 0.6, 0], "supported"), ([0.5, 0.6, 0.3, 1], "contradicted"), ([0.5, 0.4, 0.9, 1], "inconclusive")],
)
def test_strictly_superior_is_the_smallest_gap_over_costs_with_draws(a, expected):
    (row,) = evaluated(curve(TD0, a), curve(CE, [0.2, 0.4, 0.5, 0.5], DRAWS * 0)).query("claim == 'C14'").itertuples()
    gap = 100 * min(x - y for x, y in zip(a[:3], (0.2, 0.4, 0.5), strict=True))
    assert (row.effect, row.low, row.high) == pytest.approx((gap, gap - 0.95, gap + 0.95), abs=1e-5)
    assert row.verdict == expected


def test_detectors_of_one_network_are_compared_draw_by_draw():
    def found(metric, detector, reads, value):
        about = {"analysis": "out_of_distribution", "detector": detector, "reads": reads, **OOD}
        return rows(TD0, metric, [value], DRAWS * 0.1, data="cifar10", **about)

    table = evaluated(
        found("fpr95", "msp", "all", 0.4),
        found("fpr95", "msp", "last", 0.6),
        found("auroc", "msp", "all", 0.9),
        found("auroc", "msp", "last", 0.95),
        found("auroc", "baseline", "last", 0.8),
    ).query("claim == 'C19' and label != ''")
    assert list(table.effect) == pytest.approx([20, 0.1])
    assert list(table.low) == pytest.approx([20, 0.1], abs=1e-5)  # the same draws of the same images
    assert list(table.paper) == pytest.approx([16.6, 0.007])
    assert set(table.b) == {""}


def test_a_relative_effect_is_a_fraction_of_the_other_network():
    about = {"data": "terriers", "rule": "threshold", **SPEED}
    cost = [rows(each, "cost_to_accuracy_50", [v], None, **about) for each, v in ((TD0, 3.0), (EXITS, 4.0))]
    row = evaluated(*cost).query("claim == 'C20'").iloc[0]
    assert (row.effect, row.paper, row.unit, row.verdict) == (pytest.approx(25), pytest.approx(13), "%", "not measured")
    cost = [rows(each, "cost_to_accuracy_50", [v], v * (DRAWS + 1), **about) for each, v in ((TD0, 3.0), (EXITS, 4.0))]
    row = evaluated(*cost).query("claim == 'C20'").iloc[0]
    assert (row.low, row.high, row.verdict) == (pytest.approx(25), pytest.approx(25), "supported")


def test_training_time_is_claimed_to_be_in_a_range():
    hours = [
        rows(each, "training_hours", [v, v, v], None, analysis="run_time", data="tinyimagenet")
        for each, v in ((TD0, 1.3), (CE, 1.0))
    ]
    row = evaluated(*hours).query("claim == 'C22'").iloc[0]
    assert (row.effect, row.verdict, row.claimed) == (pytest.approx(30), "supported", "+22 to +36")
    assert row.paper == pytest.approx(100 * (1.97 / 1.45 - 1))


def test_p_values_are_claimed_to_be_below_one_in_a_thousand():
    for value, expected in ((1e-9, "supported"), (0.02, "contradicted")):
        found = rows(TD0, "rho_p", [value], DRAWS * 1e-10, data="cifar10", measure="C-score", split="validation")
        row = evaluated(found).query("claim == 'C18'").iloc[0]
        assert (row.verdict, row.claimed, row.paper) == (expected, "below 0.001", 0.001)


def test_kernels_and_depths_are_claimed_not_to_matter():
    fine = {"kernel": "ews:0.9", "time": "fine", "steps": 70, **SPEED}
    both = rows(TD0, "accuracy", [0.9] * 3, **SPEED), rows(TD0, "accuracy", [0.902] * 3, items="j", **fine)
    row = evaluated(*both).query("claim == 'C21'").iloc[0]
    assert (row.effect, row.verdict, row.claimed) == (pytest.approx(0.2), "supported", "-1 to +1")
    deep = rows(TD0, "accuracy", [0.95] * 3, arch="resnet34", config="d", steps=17, **SPEED)
    row = evaluated(both[0], deep).query("claim == 'C21'").iloc[0]
    assert (row.a, row.effect, row.verdict) == ("CascadedTD(0), resnet34", pytest.approx(5), "contradicted")
    rho = [
        rows(each, "rho", [v], DRAWS * 0.1, measure="centrality", kernel="ews:0.8", time="fine", steps=35)
        for each, v in ((TD0, 0.5), (CE, 0.2))
    ]
    row = evaluated(*rho).query("claim == 'C21'").iloc[0]
    assert (row.effect, row.label) == (
        pytest.approx(0.3),
        "Spearman's rho of centrality with negative latency, alpha 0.8",
    )


def test_a_result_that_is_robust_to_theta_holds_at_every_threshold():
    def rho(network, *values):
        points = {"measure": "centrality", "time": "fine", "kernel": "ews:0.9"}
        return [rows(network, "rho_by_theta", [v], DRAWS * 0.1, x=x, **points)[0] for x, v in enumerate(values)]

    for values, effect, expected in (((0.4, 0.5), 0.2, "supported"), ((0.4, 0.1), -0.2, "contradicted")):
        row = evaluated(rho(TD0, *values), rho(CE, 0.2, 0.3)).query("claim == 'C21'").iloc[0]
        assert (row.effect, row.verdict) == (pytest.approx(effect), expected)


def test_an_ambiguous_number_of_the_paper_has_two_readings():
    about = {"data": "terriers", "metric": "accuracy", **SPEED}
    row = evaluated(*(rows(each, values=[0.5], **about) for each in (TD0, TD1))).iloc[0]
    assert (row.paper, row.paper_alternative) == pytest.approx((7.4, 4.0))


def test_where_the_paper_has_other_data_its_effect_is_named_after_them():
    (row,) = measured(CASES[0], [0.04], 0.01).itertuples()
    assert (row.data, row.paper, row.paper_data) == ("digits", pytest.approx(2.47), "cifar10")
    (row,) = measured(CASES[2], [0.04], 0.01).itertuples()
    assert (math.isnan(row.paper), row.paper_data) == (True, "")  # a figure without numbers


@pytest.mark.parametrize("other", [{"config": "d"}, {"items": "j"}, {"steps": 70}, {"seed": 1}])
def test_only_networks_that_are_equal_in_everything_else_are_compared(other):
    table = evaluated(rows(TD0, "accuracy", [0.9], **SPEED), rows(TD1, "accuracy", [0.5], **SPEED, **other))
    assert table.verdict.eq("not measured").all()


def test_a_number_that_not_every_network_has_is_not_judged():
    case = CASES[8]
    found = rows(TD0, case[1], [2.0, 2.0], **case[2]), rows(CE, case[1], [8.0, math.nan], **case[2])
    row = evaluated(*found).query("metric == 'first_step_at_0.35'").iloc[0]
    assert (row.verdict, math.isnan(row.effect)) == ("not measured", True)
    assert row.note == "not every network has a value of first_step_at_0.35"


def test_the_time_and_split_of_the_paper_are_preferred():
    def rho(**columns):
        both = zip((TD0, CE), (columns.pop("effect"), 0.0), strict=True)
        return [row for each, value in both for row in rows(each, "rho", [value], measure="centrality", **columns)]

    fine, held_out = {"time": "fine", "effect": 0.1}, {"time": "fine", "split": "validation", "effect": 0.2}
    for found, effects in (
        ([fine, held_out], [0.2]),
        ([fine, {"effect": 0.3}], [0.1]),
        ([{"effect": 0.3}], [0.3]),
        ([{**held_out, "data": "cifar10"}, fine], [0.1, 0.2]),  # each data set has its own
        ([held_out], [0.2]),
    ):
        table = evaluated(*(rho(**dict(each)) for each in found))
        assert sorted(table[table.claim == "C3"].effect) == pytest.approx(effects)


@pytest.mark.parametrize(("count", "expected"), [(18, "not measured"), (99, "not measured"), (100, "supported")])
def test_few_images_give_an_effect_and_no_verdict(count, expected):
    draws = DRAWS / 100
    found = (rows(each, "accuracy", [v], draws * v, **SPEED, n_items=count) for each, v in ((TD0, 0.6), (TD1, 0.5)))
    row = evaluated(*found).iloc[0]
    assert (row.effect, row.verdict) == (pytest.approx(10), expected)
    few = f"too few images for a verdict ({count}; at least {FEWEST_IMAGES})"
    assert row.note == (few if expected == "not measured" else "")


def test_networks_that_were_not_trained_with_the_noise_give_no_verdict():
    case, draws = CASES[10], DRAWS / 100
    reason = "the networks were not trained with occlusion noise, as those of the paper were"
    for trained, verdict_, note in ((None, "not measured", reason), ("occlusion", "supported", "")):
        both = (rows(each, case[1], [v], draws, **case[2], train_noise=trained) for each, v in ((TD0, 0.9), (CE, 0.1)))
        row = evaluated(*both).query("claim == 'C5'").iloc[0]
        assert (row.effect, row.verdict, row.note) == (pytest.approx(80), verdict_, note)


def test_every_claim_has_a_row_whatever_was_measured():
    table = evaluated([])
    assert list(table.claim) == list(STATEMENTS)
    assert table.verdict.eq("not measured").all()
    assert list(table.command) == [f"cascaded reproduce {' '.join(names)}" for names in EXPERIMENTS.values()]
    assert {claim.claim for claim in CLAIMS} == set(STATEMENTS) == set(EXPERIMENTS)
    assert {claim.metric for claim in CLAIMS} <= set(METRICS)
    assert {name for names in EXPERIMENTS.values() for name in names} <= set(KNOWN)


def test_the_numbers_that_claims_are_about_have_more_draws():
    about = {(name, claim.metric) for claim in CLAIMS if not claim.at_every_x for name in analyses_of(claim)}
    assert about - {("run_time", "training_hours")} == {  # which has no draws
        (name, metric) for name, analysis in ANALYSES.items() for metric in analysis.claimed
    }


def analyses_of(claim):
    """The analyses that a claim names; the only one with its metric where it names none."""
    named = [name for name in ANALYSES if f"analysis == '{name}'" in claim.where]
    return named or [name for name, analysis in ANALYSES.items() if claim.metric in analysis.claimed]


def test_every_number_of_the_paper_has_the_columns_of_the_table():
    values = load_values()
    assert set(values.columns) <= {*COLUMNS, "sem", "alternative", "source"}
    assert not values.duplicated(
        [name for name in values.columns if name not in ("value", "sem", "alternative", "source")]
    ).any()
    assert values.value.notna().all()
    assert values.source.notna().all()


def trace_of(good):
    return made_trace(int(10 * good), items=120, good=good, kernel="osd")


@pytest.mark.parametrize(("td0", "td1", "verdict"), [(5.0, 1.0, "supported"), (1.0, 5.0, "contradicted")])
def test_from_traces_to_a_verdict(tmp_path, td0, td1, verdict):
    for lam, good in ((0.0, td0), (1.0, td1)):
        made_run(tmp_path / f"{lam:g}" / "0", {"digits-test": trace_of(good)}, lam=lam)
    run_analyses([tmp_path], ["speed_accuracy"])
    df = load(tmp_path)
    found = evaluate(df).set_index("claim")
    right = [trace_of(good).logits[-1].argmax(-1) == np.arange(120) % 4 for good in (td0, td1)]
    expected = bootstrap(mean_of(100.0 * right[0] - 100.0 * right[1]), 120, IMAGE_DRAWS)
    row = found.loc["C1"]
    assert (row.effect, row.low, row.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert (row.verdict, row.interval_over, row.n_items, row.n_seeds) == (verdict, "images", 120, 1)
    above = df[(df.metric == "area_above_deadline") & (df.lam == 0)].value
    assert found.loc["C7"].effect == pytest.approx(100 * above.iloc[0])
