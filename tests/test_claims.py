"""The paper's claims: held against what was measured, with the right sign and scale, and honest where nothing was."""

import math
import shlex

import numpy as np
import pytest

from cascaded.analysis.statistics import bootstrap_mean
from cascaded.cli.main import run
from cascaded.exhibits.claimed import CLAIMS, TESTS
from cascaded.exhibits.claims import FEWEST_IMAGES, _paper, claim_lines
from cascaded.exhibits.material import gather
from cascaded.results.questions import DRAWS
from tests.made_materials import CE, TD0, TD1, accuracies, analyse, made_asked, made_material
from tests.made_traces import made_run, made_trace

DEEP, MANY, SERIAL = ("serial-td-multihead", 1.0), ("cascaded-td-multihead", 0.0), ("serial-td", 1.0)
LABELS = {
    TD0: "cascaded-td(0)",
    TD1: "cascaded-td(1)",
    CE: "cascaded-ce",
    DEEP: "serial-td-multihead(1)",
    MANY: "cascaded-td-multihead(0)",
    SERIAL: "serial-td(1)",
}
CASES = [  # claim, analysis, figure, noise, whose, against whom, the effect of a difference of 1
    ("C1", "speed_accuracy", "accuracy", "", TD0, TD1, 100),
    ("C1", "speed_accuracy", "accuracy", "", ("cascaded-td", 0.5), TD1, 100),
    ("C2", "speed_accuracy", "area threshold", "", TD0, DEEP, 100),
    ("C2", "speed_accuracy", "area threshold", "", TD0, ("shallow-deep", 1.0), 100),
    ("C2", "speed_accuracy", "area threshold", "", TD0, MANY, 100),
    ("C2", "speed_accuracy", "area threshold", "", DEEP, SERIAL, 100),
    ("C3", "prototypicality", "rho centrality", "", TD0, CE, 1),
    ("C4", "taxonomic_compliance", "compliance above chance", "", TD0, None, 100),
    ("C4", "taxonomic_compliance", "first step at 0.35", "", TD0, CE, -1),
    ("C4", "taxonomic_compliance", "mean compliance", "", TD0, CE, 100),
    ("C5", "persistent_noise", "accuracy", "occlusion", TD0, CE, 100),
    ("C5", "transient_noise", "dip", "focus", TD0, CE, -100),
    ("C5", "persistent_noise", "accuracy", "perlin", TD0, ("serial-ce", None), 100),
    ("C6", "out_of_distribution", "auroc gain msp", "", TD0, None, 100),
    ("C7", "speed_accuracy", "threshold above deadline", "", TD0, None, 100),
    ("C7", "learned_stopper", "stopper above deadline", "", TD0, None, 100),
]
UNITS = {"rho centrality": "rho", "first step at 0.35": "steps"}


def label_of(model):
    return LABELS.get(model) or (model[0] if model[1] is None else f"{model[0]}({model[1]:g})")


def measured(case, difference, low, high, turned=False, **more):
    """The lines of a claim where one model's figure is so far above another's, or so high by itself."""
    claim, analysis, metric, noise, one, other, _ = case
    asked = made_asked(analysis, noise=noise)
    answer = (asked, {"headline": {metric: 1.0}})
    told = {"low": low, "high": high, "n": 4, **more}
    table = {"analysis": analysis, "of": asked.what, "images": asked.images, "shown": asked.shown, "metric": metric}
    if other is None:
        estimates = {label_of(one): {"value": difference, **told}}
        material = made_material({one: {0: [answer]}}, [{**table, "estimates": estimates, "differences": []}])
    else:
        pair = {"a": label_of(one), "b": label_of(other), "difference": difference, **told}
        if turned:
            pair = {**pair, "a": pair["b"], "b": pair["a"], "difference": -difference, "low": -high, "high": -low}
        stranger = {**pair, "b": "somebody else"}
        material = made_material(
            {one: {0: [answer]}, other: {0: [answer]}}, [{**table, "estimates": {}, "differences": [stranger, pair]}]
        )
    return [line for line in claim_lines(material) if line.claim == claim and line.effect is not None], asked


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]} {case[5]}")
@pytest.mark.parametrize("turned", [False, True])
def test_a_claim_holds_where_its_interval_is_above_nothing_the_papers_way(case, turned):
    factor = case[-1]
    way = 1 if factor > 0 else -1  # of steps and of drops less is better
    for sign, verdict in ((way, "yes"), (-way, "no")):
        ends = sorted((sign * 0.02, sign * 0.06))
        (line,), asked = measured(case, sign * 0.04, *ends, turned)
        assert line.verdict == verdict
        assert line.effect == pytest.approx(factor * sign * 0.04)
        assert (line.low, line.high) == pytest.approx(sorted(factor * each for each in ends))
        assert line.unit == UNITS.get(case[2], "points")
        assert (line.how, line.command) == ("4 seeds", "")
        assert line.what.endswith(asked.what)
        assert line.says == CLAIMS[case[0]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[2]} {case[5]}")
def test_an_interval_that_holds_nothing_is_no_and_says_so(case):
    way = 1 if case[-1] > 0 else -1
    (line,), _ = measured(case, way * 0.02, *sorted((way * 0.05, way * -0.01)))
    assert line.verdict == "no"
    assert line.how == "4 seeds; as the paper says, but the interval holds 0"
    (against,), _ = measured(case, way * -0.02, *sorted((way * -0.05, way * 0.01)))
    assert (against.verdict, against.how) == ("no", "4 seeds")
    (none,), _ = measured(case, -0.0, -0.0, 0.0)
    assert [math.copysign(1, each) for each in (none.effect, none.low, none.high)] == [1, 1, 1]
    assert (none.verdict, none.how) == ("no", "4 seeds")
    (edge,), _ = measured(case, way * 0.02, *sorted((way * 0.04, 0.0)))
    assert edge.verdict == "no"


@pytest.mark.parametrize("case", CASES[:1] + CASES[-1:], ids=lambda case: case[0])
def test_an_effect_without_an_interval_was_not_measured(case):
    (line,), _ = measured(case, 0.3, None, None, n=1)
    assert (line.effect, line.low, line.high, line.verdict) == (pytest.approx(30), None, None, "not measured")
    assert line.how == "one seed, no interval"


def test_of_two_seeds_the_interval_is_over_images():
    items = {"low": 0.01, "high": 0.05, "n": 100}
    (line,), _ = measured(CASES[0], 0.04, -0.5, 0.6, **{"n": 2, "over items": items})
    assert (line.low, line.high) == pytest.approx((1.0, 5.0))
    assert (line.verdict, line.how) == ("yes", "100 images, mean of 2 seeds")


def test_effects_of_the_paper_stand_beside_ours():
    (line,), _ = measured(CASES[0], 0.04, 0.02, 0.06)  # the paper has not tried digits
    assert line.paper == "for lambda 0: +2.47 on cifar10, +4.28 on cifar100, +0.88 on tinyimagenet, +7.40 on terriers"
    lasting = next(case for case in CASES if case[3] == "occlusion")
    (line,), asked = measured(lasting, 0.04, 0.02, 0.06)
    assert line.paper == "+7.03"
    pair = "CascadedTD(0) against CascadedCE (not trained with it)"
    assert line.what == f"accuracy under lasting occlusion, {pair}: {asked.what}"


@pytest.mark.parametrize(("lam", "paper"), [(0.0, "+4.28"), (0.5, "+3.80"), (0.83, "+1.86")])
def test_the_papers_effect_is_that_of_the_same_data_and_lambda(lam, paper):
    test = next(test for test in TESTS if test.claim == "C1")
    assert _paper(test, made_asked("speed_accuracy", data="cifar100"), f"{lam:g}") == paper
    final = {"0": 67.48, "0.5": 67.00, "0.83": 65.06, "1": 63.20}  # the paper's table
    assert float(paper) == pytest.approx(final[f"{lam:g}"] - final["1"])


def test_where_the_paper_finds_no_difference_an_interval_that_holds_0_is_as_it_says():
    case = ("C3", "prototypicality", "rho human agreement", "", TD0, CE, 1)
    (line,), _ = measured(case, -0.011, -0.03, 0.008)
    assert (line.verdict, line.how) == ("yes", "4 seeds")
    assert measured(case, 0.1, 0.05, 0.15)[0][0].verdict == "no"


def test_only_models_that_are_alike_in_everything_else_are_held_against_each_other():
    assert measured(CASES[0], 0.04, 0.02, 0.06)[0]
    for wrong in (("cascaded-td-multihead", 1.0), ("serial-td", 0.0)):
        assert not measured(("C2", "speed_accuracy", "area threshold", "", TD0, wrong, 100), 0.04, 0.02, 0.06)[0]


def test_networks_of_another_width_make_no_pair(tmp_path):
    for lam, options in ((0.0, {}), (1.0, {"limit": 100})):
        made_run(tmp_path / f"{lam:g}" / "0", {"digits-test": trace_of(3 - lam)}, lam=lam, **options)
    analyse(tmp_path, "speed_accuracy")
    lines = {line.claim: line for line in claim_lines(gather([tmp_path]))}
    assert lines["C1"].verdict == "not measured"


def test_a_figure_that_not_every_network_has_is_not_judged():
    asked = made_asked("taxonomic_compliance")
    case = ("C4", "taxonomic_compliance", "first step at 0.35", "", TD0, CE, -1)
    told = {"a": "cascaded-td(0)", "b": "cascaded-ce", "difference": -3.0, "low": -4.0, "high": -2.0, "n": 4}
    table = {"analysis": asked.analysis, "of": asked.what, "images": asked.images, "shown": asked.shown}
    tables = [{**table, "metric": case[2], "estimates": {}, "differences": [told]}]
    reached, never = ((asked, {"headline": {case[2]: value}}) for value in (2.0, None))
    for last, verdict in ((reached, "yes"), (never, "not measured")):
        lines = claim_lines(made_material({TD0: {0: [reached]}, CE: {0: [reached], 1: [last]}}, tables))
        (line,) = [line for line in lines if "sooner" in line.what]
        assert (line.verdict, line.effect) == (verdict, 3.0)
    assert "not every network reaches it" in line.how


def test_a_figure_that_no_network_has_is_told_as_such():
    asked = made_asked("taxonomic_compliance")
    never = (asked, {"headline": {"first step at 0.35": None, "mean compliance": 0.2}})
    lines = claim_lines(made_material({TD0: {0: [never]}, CE: {0: [never]}}))
    (line,) = [line for line in lines if "sooner" in line.what]
    assert (line.effect, line.verdict, line.command) == (None, "not measured", "")
    assert "not every network reaches it" in line.how
    assert line.runs == ("made/cascaded-td-0.0/0", "made/cascaded-ce-None/0")


def test_a_difference_names_the_runs_of_the_seeds_that_both_models_have():
    asked = made_asked("speed_accuracy")
    answer = (asked, {"headline": {"accuracy": 0.5}})
    told = {"a": "cascaded-td(0)", "b": "cascaded-td(1)", "difference": 0.1, "low": 0.05, "high": 0.15, "n": 40}
    table = {"analysis": asked.analysis, "of": asked.what, "images": asked.images, "shown": asked.shown}
    tables = [{**table, "metric": "accuracy", "estimates": {}, "differences": [told]}]
    lines = claim_lines(made_material({TD0: {0: [answer], 1: [answer]}, TD1: {0: [answer], 2: [answer]}}, tables))
    (line,) = [line for line in lines if line.claim == "C1"]
    assert line.runs == ("made/cascaded-td-0.0/0", "made/cascaded-td-1.0/0")


def test_centrality_is_read_from_held_out_images_where_there_are_such():
    test, held_out = (made_asked("prototypicality", split=split) for split in ("test", "validation"))
    answers = [(asked, {"headline": {"rho centrality": 0.5}}) for asked in (test, held_out)]
    pair = {"a": "cascaded-td(0)", "b": "cascaded-ce", "difference": 0.1, "low": 0.05, "high": 0.15, "n": 4}
    tables = [
        {
            "analysis": asked.analysis,
            "of": asked.what,
            "images": asked.images,
            "shown": asked.shown,
            "metric": "rho centrality",
            "estimates": {},
            "differences": [pair],
        }
        for asked in (test, held_out)
    ]
    for shown, of in ((answers, held_out), (answers[:1], test)):
        lines = claim_lines(made_material({TD0: {0: shown}, CE: {0: shown}}, tables))
        (line,) = [line for line in lines if line.claim == "C3" and line.effect is not None]
        assert line.what.endswith(of.what)


def test_where_there_is_fine_time_latency_is_read_from_it_and_final_accuracy_from_whole_steps():
    whole, fine = (made_asked("speed_accuracy", kernel=kernel) for kernel in ("osd", "ews:0.9"))
    pair = {"a": "cascaded-td(0)", "b": "cascaded-td(1)", "low": 0.1, "high": 0.3, "n": 4}
    about = {
        "analysis": "speed_accuracy",
        "metric": "accuracy",
        "images": whole.images,
        "shown": whole.shown,
        "estimates": {},
    }
    tables = [
        {**about, "of": asked.what, "differences": [{**pair, "difference": difference}]}
        for asked, difference in ((whole, 0.2), (fine, 0.1))
    ]
    told = [(asked, accuracies([0.5])) for asked in (whole, fine)]
    lines = claim_lines(made_material({TD0: {0: told}, TD1: {0: told}}, tables))
    assert [line.effect for line in lines if line.claim == "C1"] == [pytest.approx(20)]
    only_fine = made_material({TD0: {0: told[1:]}, TD1: {0: told[1:]}}, tables)
    assert [line.effect for line in claim_lines(only_fine) if line.claim == "C1"] == [pytest.approx(10)]


def test_every_claim_has_a_line_whatever_there_is():
    lines = claim_lines(made_material({CE: {0: []}}))
    assert [line.claim for line in lines] == list(CLAIMS)
    assert {line.verdict for line in lines} == {"not measured"}
    assert {line.what for line in lines} == {"the model that the claim is about is not among these runs"}
    assert {test.claim for test in TESTS} == set(CLAIMS)


def test_models_that_are_lacking_are_named_with_a_command_that_would_train_them(capsys, tmp_path, monkeypatch):
    lines = {line.claim: line for line in claim_lines(made_material({TD0: {0: []}}))}
    assert lines["C1"].what == lines["C5"].what == "the model that it is compared with is not among these runs"
    monkeypatch.chdir(tmp_path)
    for line in lines.values():
        words = shlex.split(line.command)
        if words[1] == "sweep" and "cifar100" not in words:
            run([*words[1:], "--dry-run"])
            said = capsys.readouterr().out
            assert all(name in said for name in ("cascaded-td-lam0", "cascaded-td-lam1", "cascaded-ce", "multihead"))
    assert sum("sweep" in line.command for line in lines.values()) >= 5


@pytest.mark.parametrize(("count", "verdict"), [(18, "not measured"), (99, "not measured"), (100, "yes"), (0, "yes")])
def test_few_images_have_an_effect_and_no_verdict(count, verdict):
    asked = made_asked("speed_accuracy", count=count)  # 0: an older version has not counted them
    answer = (asked, {"headline": {"accuracy": 0.5}})
    told = {"a": "cascaded-td(0)", "b": "cascaded-td(1)", "difference": 0.1, "low": 0.05, "high": 0.15, "n": 4}
    table = {"analysis": asked.analysis, "of": asked.what, "images": asked.images, "shown": asked.shown}
    tables = [{**table, "metric": "accuracy", "estimates": {}, "differences": [told]}]
    lines = claim_lines(made_material({TD0: {0: [answer]}, TD1: {0: [answer]}}, tables))
    (line,) = [line for line in lines if line.claim == "C1"]
    assert (line.effect, line.low, line.high) == pytest.approx((10, 5, 15))
    assert line.verdict == verdict
    few = f"; too few images for a verdict ({count}; at least {FEWEST_IMAGES})"
    assert line.how == "4 seeds" + (few if verdict == "not measured" else "")


def test_models_that_share_no_seed_are_not_called_measured():
    asked = made_asked("speed_accuracy")
    answer = [(asked, accuracies([0.5]))]
    table = {
        "analysis": "speed_accuracy",
        "of": asked.what,
        "images": asked.images,
        "shown": asked.shown,
        "metric": "accuracy",
    }
    tables = [{**table, "estimates": {}, "differences": []}]
    line = claim_lines(made_material({TD0: {0: answer}, TD1: {1: answer}}, tables))[0]
    assert (line.claim, line.verdict) == ("C1", "not measured")
    assert line.what == "not compared yet, or the models share no seed or no images"


def trace_of(good):
    return made_trace(int(10 * good), items=120, good=good, kernel="osd")


@pytest.mark.parametrize(("td0", "td1", "verdict"), [(5.0, 1.0, "yes"), (1.0, 5.0, "no")])
def test_from_traces_to_a_verdict(tmp_path, td0, td1, verdict):
    for lam, good in ((0.0, td0), (1.0, td1)):
        made_run(tmp_path / f"{lam:g}" / "0", {"digits-test": trace_of(good)}, lam=lam)
    analyse(tmp_path, "speed_accuracy")
    material = gather([tmp_path])
    lines = {line.claim: line for line in claim_lines(material)}
    right = [trace_of(good).logits[-1].argmax(-1) == np.arange(120) % 4 for good in (td0, td1)]
    expected = bootstrap_mean(100.0 * right[0] - 100.0 * right[1], DRAWS)
    found = lines["C1"]
    assert (found.effect, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert (found.verdict, found.how) == (verdict, "120 images, one seed")
    headline = material.answers(material.rows("speed_accuracy")[0].row)["cascaded-td(0)"][0]["headline"]
    assert lines["C7"].effect == pytest.approx(100 * headline["threshold above deadline"])


def test_a_run_alone_is_measured_in_what_needs_no_other(tmp_path):
    made_run(tmp_path / "0", {"digits-test": trace_of(3.0)})
    analyse(tmp_path, "speed_accuracy")
    material = gather([tmp_path])
    row = material.rows("speed_accuracy")[0].row
    interval = material.answers(row)["cascaded-td(0)"][0]["intervals"]["threshold above deadline"]
    lines = {line.claim: line for line in claim_lines(material)}
    assert (lines["C7"].low, lines["C7"].high) == pytest.approx((100 * interval["low"], 100 * interval["high"]))
    assert lines["C7"].verdict == ("yes" if interval["low"] > 0 else "no")
    assert lines["C1"].verdict == "not measured"
