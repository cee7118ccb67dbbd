"""Sections of the report: every figure holds the numbers that were answered."""

import math

import pytest

from cascaded.exhibits.exhibition import _summary, exhibition
from cascaded.exhibits.images import latency_section, prototype_section, taxonomy_section
from cascaded.exhibits.kinds import Level
from cascaded.exhibits.material import gather
from cascaded.exhibits.page import ClaimLine
from cascaded.exhibits.robustness import noise_section, outside_section
from cascaded.exhibits.speed import accuracy_section, key, lambda_section, speed_section
from cascaded.results.answers import read_results
from tests.made_materials import CE, TD0, TD1, accuracies, analyse, made_asked, made_material, write_answers
from tests.made_traces import made_run
from tests.test_answers import EVERYTHING

TD = "CascadedTD(0)"
WHOLE = made_asked("speed_accuracy")


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """A run of which everything was analysed: what there is of it, and its results by analysis and trace."""
    folder = made_run(tmp_path_factory.mktemp("runs") / "0", EVERYTHING)
    analyse(folder)
    told = read_results(folder / "results.json")["analyses"]
    results = {(name, of): known["result"] for name, each in told.items() for of, known in each.items()}
    return gather([folder]), results


def figures(section):
    return {figure.key: figure for figure in section.figures}


def test_accuracy_is_drawn_step_by_step_above_chance(analysed):
    material, results = analysed
    (figure,) = accuracy_section(material).figures
    (series,) = figure.body.series
    assert series.y == pytest.approx(results["speed_accuracy", "digits-test"]["accuracy"])
    assert (series.model, series.x, series.sem) == (TD, (1, 2, 3, 4, 5, 6), ())
    assert figure.body.levels == (Level("chance", 0.25),)
    assert "Bands" not in figure.caption


def test_stopping_is_drawn_in_steps_and_operations_and_in_every_way_there_is(analysed):
    material, results = analysed
    drawn = figures(speed_section(material))
    told = results["speed_accuracy", "digits-test"]
    for unit, curves in (("steps", told["curves"]), ("operations", told["in operations"]["curves"])):
        (series,) = drawn[key("speed", unit, "digits test, ews:0.9, 6 steps, 40 images")].body.series
        assert series.x == pytest.approx(curves["threshold"]["cost"])
        assert series.y == pytest.approx(curves["threshold"]["accuracy"])
    stopped = results["learned_stopper", "digits-test"]["curves"]
    body = drawn[key("stopping", TD, "digits test, ews:0.9, 6 steps, 40 images")].body
    assert {series.way for series in body.series} == {"threshold", "deadline", "stopper"}
    ends = {series.way: [y for y in series.y if not math.isnan(y)][-1] for series in body.series}
    assert ends == pytest.approx({way: stopped[way]["accuracy"][-1] for way in ends})


def test_settled_images_are_counted_up(analysed):
    material, results = analysed
    section = latency_section(material)
    (series,) = section.figures[0].body.series
    told = results["selection_latency", "digits-test"]
    assert series.y == pytest.approx([sum(told["items at step"][: n + 1]) / 40 for n in range(6)])
    assert any("No image is shown" in note for note in section.notes)


def test_typical_images_are_held_against_their_latency(analysed):
    material, results = analysed
    told = results["prototypicality", "digits-test"]
    rho, tenths = prototype_section(material).figures
    (dot,) = rho.body.dots
    interval = told["intervals"]["rho centrality"]
    assert (dot.group, dot.value, dot.low, dot.high) == ("centrality", *(interval[n] for n in ("value", "low", "high")))
    assert dot.value == told["headline"]["rho centrality"]
    assert tenths.body.series[0].y == pytest.approx(told["measures"]["centrality"]["tenths"], nan_ok=True)


def test_wrong_answers_of_the_right_kind_are_drawn_above_chance(analysed):
    material, results = analysed
    (figure,) = taxonomy_section(material).figures
    told = results["taxonomic_compliance", "digits-test"]
    expected = [math.nan if each is None else each for each in told["compliance"]]
    assert figure.body.series[0].y == pytest.approx(expected, nan_ok=True)
    assert figure.body.levels == (Level("chance", told["chance"]),)


def test_noise_is_drawn_while_it_lasts_and_when_it_passes(analysed):
    material, results = analysed
    section = noise_section(material)
    strip, lasting, passing, confidence = section.figures
    assert strip.body.rows[0][0] == "clean"
    assert {len(thumbs) for _, thumbs in strip.body.rows} == {8}
    persistent = results["persistent_noise", "digits-test-osd-focus-persistent"]
    transient = results["transient_noise", "digits-test-osd-focus-transient"]
    for figure, told, metric in ((lasting, persistent, "accuracy"), (passing, transient, "dip")):
        (dot,) = figure.body.dots
        assert (dot.value, dot.low) == pytest.approx((told["headline"][metric], told["intervals"][metric]["low"]))
        assert (dot.model, dot.group) == (TD, "focus")
    assert confidence.body.series[0].y == pytest.approx(transient["frames"]["2"]["confidence"])
    assert confidence.body.spans == (("noisy", 3.5, 5.5),)  # steps 4 and 5
    assert section.notes == (f"{TD} was not trained with focus.",)


def test_strangers_are_told_by_the_last_step_and_by_all(analysed):
    material, results = analysed
    headline = results["out_of_distribution", "digits-test"]["headline"]
    auroc, fpr = outside_section(material).figures
    for figure, name in ((auroc, "auroc"), (fpr, "fpr")):
        found = {(dot.group, dot.way): dot.value for dot in figure.body.dots}
        for form in ("msp", "entropy", "softmax", "logits"):
            assert found[form, "last step"] == headline[f"{name} {form} last"]
            assert found[form, "all steps"] == headline[f"{name} {form} all"]
        assert found["confidence alone", "last step"] == headline[f"{name} baseline"]
        assert len(found) == 9
    assert "against svhn" in auroc.caption


def test_bands_are_told_of_once_and_only_where_there_are_any():
    def passing(seed):
        frames = {"1": {"confidence": [0.5, 0.2, 0.4 + seed / 10]}, "2": {"confidence": [0.5, 0.1, 0.1, 0.3]}}
        return made_asked("transient_noise", noise="focus"), {"headline": {}, "onset": 2, "frames": frames}

    one, two = (made_material({TD0: {seed: [passing(seed)] for seed in seeds}}) for seeds in ((0,), (0, 1)))
    assert noise_section(one).figures[-1].caption.count("Bands are one standard error") == 0
    assert noise_section(two).figures[-1].caption.count("Bands are one standard error") == 1
    assert accuracy_section(two).figures == []


def test_noise_in_fine_time_and_of_fewer_images_stands_apart():
    def told(value, images=40, **more):
        asked = made_asked("persistent_noise", images, noise="focus", **more)
        return asked, {"headline": {"accuracy": value}}

    fine = made_asked("persistent_noise", noise="focus", kernel="ews:0.9", what="digits test, ..., 40 images")
    some = [told(0.5), told(0.6, 10, shown="few"), (fine, {"headline": {"accuracy": 0.7}})]
    _, whole, slow = noise_section(made_material({TD0: {0: some}})).figures
    assert [(dot.group, dot.value) for dot in whole.body.dots] == [("focus, 40 images", 0.5), ("focus, 10 images", 0.6)]
    assert [(dot.group, dot.value) for dot in slow.body.dots] == [("focus", 0.7)]
    assert whole.key != slow.key
    assert slow.title == "Noise that lasts, digits test, ews:0.9"


def estimate(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3}


def by_lambda(accuracies_of, asked):
    """Material whose models, by lambda, end at given accuracies; and a comparison that says so."""
    labels = {TD0: "cascaded-td(0)", TD1: "cascaded-td(1)", CE: "cascaded-ce"}
    table = {"analysis": asked.analysis, "of": asked.what, "images": asked.images, "shown": asked.shown}
    told = {labels[model]: estimate(value) for model, value in accuracies_of.items()}
    tables = [{**table, "metric": "accuracy", "estimates": told, "differences": []}]
    answers = {model: {0: [(asked, accuracies([value]))]} for model, value in accuracies_of.items()}
    return made_material(answers, tables, lambda_effect={"serial t": {"not measured": "they share no seed"}})


def test_lambdas_are_drawn_with_cross_entropy_beside_them():
    section = lambda_section(by_lambda({TD1: 0.7, TD0: 0.8, CE: 0.75}, WHOLE))
    (figure,) = section.figures
    assert [(dot.model, dot.group, dot.value, dot.low) for dot in figure.body.dots] == [
        ("CascadedTD(λ)", "0", 0.8, pytest.approx(0.7)),
        ("CascadedTD(λ)", "1", 0.7, pytest.approx(0.6)),
    ]
    assert figure.body.levels == (Level("CE", 0.75, "CascadedCE"),)
    assert "over 3 seeds" in figure.caption
    assert section.notes == ["serial t: they share no seed"]
    assert not section.missing


def test_one_lambda_is_no_figure():
    section = lambda_section(by_lambda({TD0: 0.8, CE: 0.7}, WHOLE))
    assert not section.figures
    assert "--lam 0 0.5 1" in section.missing[0].command


def test_of_many_models_it_is_said_which_have_figures_of_their_own():
    answer = [(WHOLE, accuracies([0.2, 0.9]))]
    models = {("cascaded-td", lam / 100): {0: answer} for lam in range(24)}
    section = speed_section(made_material(models))
    assert sum(figure.key.startswith("stopping") for figure in section.figures) == 8
    assert section.notes == ("Ways to stop are drawn of the first 8 of 24 models.",)
    assert len(section.figures[0].body.series) == 24
    assert speed_section(made_material({TD0: {0: answer}})).notes == ()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """24 models on two sets of images with Chinese names, a cross-validation, and a run that was not analysed."""
    place = tmp_path_factory.mktemp("crowd")
    for number, data in enumerate(("猫", "狗")):
        asked = made_asked("speed_accuracy", data=data, steps=3, what=f"{data} test, 40 images")
        for lam in range(12):
            answer = accuracies([0.1, 0.5 + lam / 100, 0.6 + number / 10])
            write_answers(place / data / str(lam) / "0", [(asked, answer)], data=data, lam=lam / 11)
    held = made_asked("speed_accuracy", data="猫", split="validation", steps=3, what="猫 validation, 90 images")
    for fold in (1, 2):
        made_run(place / "folds" / f"fold{fold}of2" / "0", data="猫", method="cascaded-ce", fold=(fold, 2))
    write_answers(place / "other", [(held, accuracies([0.3, 0.4, 0.5]))])
    (place / "other" / "results.json").rename(place / "folds" / "results-2folds-0.json")
    (place / "other" / "config.json").unlink()
    made_run(place / "not yet" / "0", data="狗", method="cascaded-ce")
    return exhibition([place])


def test_figures_of_names_without_latin_letters_have_files_of_their_own(crowd):
    keys = [figure.key for section in crowd.sections for figure in section.figures]
    assert len(keys) == len(set(keys))
    accuracy = next(section for section in crowd.sections if section.key == "accuracy")
    assert [figure.body.series[0].y[-1] for figure in accuracy.figures] == pytest.approx([0.7, 0.6, 0.5])
    assert [figure.key for figure in accuracy.figures] == [
        "accuracy-test-40-images",
        "accuracy-test-40-images-2",
        "accuracy-validation-90-images",
    ]
    assert [len(figure.body.series) for figure in accuracy.figures] == [12, 12, 1]


def test_all_runs_are_told_of_and_all_models_have_names_of_their_own(crowd):
    assert crowd.title == "Anytime prediction on 狗, 猫"
    assert len(crowd.runs) == 26
    assert len(crowd.models) == len(set(crowd.models)) == 26
    assert {line.model for line in crowd.runs} == set(crowd.models)
    assert crowd.summary[0].endswith("; 4 more models below.")
    (folds,) = [line for line in crowd.runs if "2 folds" in line.name]
    assert folds.model.startswith("CascadedCE")
    (bare,) = [line for line in crowd.runs if "not yet" in line.name]
    assert (bare.facts["analysed"], bare.facts["trained"]) == ("not yet", "")
    assert len({tuple(line.facts) for line in crowd.runs}) == 1


def test_what_was_found_is_summed_up_in_sentences_made_from_the_figures():
    curves = {TD0: [0.2, 0.41, 0.5, 0.6, 0.7, 0.8], CE: [0.1, 0.2, 0.3, 0.4, 0.5, 0.92]}
    material = made_material({model: {0: [(WHOLE, accuracies(curve))]} for model, curve in curves.items()})
    verdicts = [
        ("C1", "yes"),
        ("C1", "not measured"),
        ("C2", "yes"),
        ("C2", "no"),
        ("C3", "no"),
        ("C4", "not measured"),
    ]
    claims = [ClaimLine(c, "", "", None, None, None, "", "", "", verdict) for c, verdict in verdicts]
    first, second = _summary(material, claims)
    assert (
        first == f"Right at step 2 and at the last of 6 steps, digits test: {TD} 41 and 80 %; CascadedCE 20 and 92 %."
    )
    assert second == (
        "Do the paper's claims show here? C1: yes in all that was measured; C2: yes in part; C3: no; C4: not measured."
    )


def test_keys_are_letters_digits_and_dashes():
    assert key("Speed", "CascadedTD(0)", "../a b, ews:0.9") == "speed-cascadedtd-0-a-b-ews-0-9"
    assert len(key("x", "long " * 40)) <= 80
    assert key("a" * 79, "b") == "a" * 79
