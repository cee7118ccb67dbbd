"""The paper's seven claims, held against what was measured here.

A claim holds where the 95 % interval of its effect is above 0: effects are counted so that above 0 is the paper's way.
Intervals are over seeds where there are at least three, else over images, of these very networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from cascaded.exhibits.claimed import CLAIMS, TESTS, Test
from cascaded.exhibits.gaps import TRAIN_COARSE, gaps
from cascaded.exhibits.material import Material, role, row_of
from cascaded.exhibits.over_seeds import estimates, interval_of
from cascaded.exhibits.page import ClaimLine, Verdict
from cascaded.exhibits.speed import PAPER_EPOCHS, epochs_of
from cascaded.results.asked import Asked
from cascaded.results.groups import Condition, kind_of

NOT_YET = "not compared yet, or the models share no seed or no images"
UNREACHED = "not every network reaches it, so that there is no mean"
FEWEST_IMAGES = 100
"""With fewer images a claim has no verdict: an interval over so few says little, even where it lies above 0."""


def claim_lines(material: Material) -> tuple[ClaimLine, ...]:
    """Every measurement behind every claim; a line that says so where nothing was measured."""
    found = []
    for claim, says in CLAIMS.items():
        tests = [test for test in TESTS if test.claim == claim]
        lines = [line for test in tests for line in _lines(material, test, says)]
        found += lines or [_unmeasured(material, claim, says, tests)]
    return tuple(found)


def _lines(material: Material, test: Test, says: str) -> Iterator[ClaimLine]:
    """What a measurement gave, for every set of images it was made on."""
    known = {each.label: each for each in material.conditions}
    if test.b is None:  # a figure of one model: compared or not, it is there
        for asked in _asked(material, test):
            for label, told in estimates(material, asked, test.metric).items():
                if test.a(*role(known[label])):
                    yield _line(test, says, asked, [known[label]], told["value"], told, material)
        return
    tables = {row_of(table): table for table in material.tables(test.analysis, test.metric)}
    pairs = [pair for pair in permutations(known.values(), 2) if _meant(test, *pair)]
    for asked in _asked(material, test):
        told = _both_ways(tables.get(asked.row, {}).get("differences", ()))
        for pair in pairs:
            if difference := told.get((pair[0].label, pair[1].label)):
                yield _line(test, says, asked, pair, difference["difference"], difference, material)
            elif _some_lack(material, asked, test.metric, pair):
                yield _line(test, says, asked, pair, None, {}, material)


def _both_ways(differences: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Differences by who is above whom, each also the other way round."""
    found = {(each["a"], each["b"]): each for each in differences}
    return found | {(each["b"], each["a"]): _turned(each) for each in differences}


def _meant(test: Test, one: Condition[Asked], other: Condition[Asked]) -> bool:
    """Whether a claim is about these two: the models it names, alike in everything else."""
    if test.b is None or not (test.a(*role(one)) and test.b(*role(other))):
        return False
    return kind_of(one.group.first, "method", "lam") == kind_of(other.group.first, "method", "lam")


def _turned(told: Mapping[str, Any]) -> dict[str, Any]:
    """A difference the other way round."""
    items = {"over items": _turned(told["over items"])} if "over items" in told else {}
    ends = {"low": told["high"], "high": told["low"]}
    ends |= {"difference": told["difference"]} if "difference" in told else {}
    return {**told, **{name: None if each is None else -each for name, each in ends.items()}, **items}


def _asked(material: Material, test: Test) -> list[Asked]:
    """What a measurement is read from, in the time and of the images that it asks for where there are such."""
    rows = material.rows(test.analysis, test.noise or None)
    rows = [asked for asked in rows if not test.time or asked.is_fine == (test.time == "fine")] or rows
    return [asked for asked in rows if test.split in ("", asked.split)] or rows


def _line(
    test: Test,
    says: str,
    asked: Asked,
    who: Sequence[Condition[Asked]],
    effect: float | None,
    told: Mapping[str, Any],
    material: Material,
) -> ClaimLine:
    """A measurement as it is told; its effect is None where a network has no such figure."""
    names = " against ".join(material.names[each.label] for each in who)
    what = f"{test.told}, {names}{_untrained(asked, who)}{_unlike(material, asked, who)}: {asked.what}"
    paper = _paper(test, asked, role(who[0])[1])
    shared = set.intersection(*(material.seeds_of(each.label, asked.row) for each in who))
    runs = tuple(run for each in who for run in material.runs_of(each.label, asked.row, shared))
    if effect is None:
        nothing = (None, None, None, test.unit, UNREACHED)
        return ClaimLine(test.claim, says, what, *nothing, paper, "not measured", runs=runs)
    factor = test.sign * test.scale
    low, high, how = interval_of(told, alone=test.b is None)
    ends = sorted(factor * each + 0.0 for each in (low, high) if each is not None)  # adding 0: no zero is negative
    bounds = (ends[0], ends[1]) if len(ends) == 2 else (None, None)
    verdict = _verdict(test, *bounds)
    if verdict == "no" and factor * effect > 0 and not test.null:
        how += "; as the paper says, but the interval holds 0"
    if _some_lack(material, asked, test.metric, who):
        verdict, how = "not measured", UNREACHED
    if 0 < asked.count < FEWEST_IMAGES:
        verdict, how = "not measured", f"{how}; too few images for a verdict ({asked.count}; at least {FEWEST_IMAGES})"
    return ClaimLine(test.claim, says, what, factor * effect + 0.0, *bounds, test.unit, how, paper, verdict, runs=runs)


def _verdict(test: Test, low: float | None, high: float | None) -> Verdict:
    if low is None or high is None:
        return "not measured"
    if test.null:
        return "yes" if low <= 0 <= high else "no"
    return "yes" if low > 0 else "no"


def _some_lack(material: Material, asked: Asked, metric: str, who: Sequence[Condition[Asked]]) -> bool:
    """Whether a network that was asked has no such figure: a mean over the others would be that of the lucky ones."""
    answers = material.answers(asked.row)
    results = [result for each in who for result in answers.get(each.label, {}).values()]
    return any(metric in result["headline"] and result["headline"][metric] is None for result in results)


def _untrained(asked: Asked, who: Sequence[Condition[Asked]]) -> str:
    trained = all(each.group.first.config.noise == asked.noise for each in who)
    return " (not trained with it)" if asked.noise and not trained else ""


def _unlike(material: Material, asked: Asked, who: Sequence[Condition[Asked]]) -> str:
    """What is trained on traces, and for another time than in the paper, says so."""
    answers = material.answers(asked.row)
    epochs = epochs_of(result for each in who for result in answers.get(each.label, {}).values())
    who_learns = "stopper" if asked.analysis == "learned_stopper" else "classifier"
    return f" ({who_learns} trained for {epochs} epochs, {PAPER_EPOCHS} in the paper)" if epochs else ""


def _paper(test: Test, asked: Asked, lam: str) -> str:
    """The paper's effect, of the same data and lambda where it has several."""
    if isinstance(test.paper, str):
        return test.paper or "none given"
    return test.paper.get(asked.data, {}).get(lam) or f"for lambda 0: {_elsewhere(test.paper)}"


def _elsewhere(papers: Mapping[str, Mapping[str, str]]) -> str:
    """The paper's effects on its own data, of lambda 0."""
    return ", ".join(f"{by_lam['0']} on {data}" for data, by_lam in papers.items() if "0" in by_lam)


def _unmeasured(material: Material, claim: str, says: str, tests: list[Test]) -> ClaimLine:
    """A claim that nothing here speaks to, and what would."""
    first = tests[0]
    effect = first.paper if isinstance(first.paper, str) else _elsewhere(first.paper)
    paper = f"{first.told}: {effect}" + (", and more" if len(tests) > 1 else "")
    why, command = _way(material, tests)
    return ClaimLine(claim, says, why, None, None, None, "", "", paper, "not measured", command)


def _way(material: Material, tests: list[Test]) -> tuple[str, str]:
    """Why a claim was not measured, and the command that comes next."""
    first, taxonomy = tests[0], tests[0].analysis == "taxonomic_compliance"
    models = "cascaded-td cascaded-ce serial-td-multihead"
    needed = f"cascaded sweep {material.data} --methods {models} --lam 0 1 --out runs/models"
    about = [each for each in material.conditions if first.a(*role(each))]
    against = [each for each in material.conditions if first.b and first.b(*role(each))]
    if not about or (first.b and not against):
        why = "the model that the claim is about" if not about else "the model that it is compared with"
        return f"{why} is not among these runs", TRAIN_COARSE if taxonomy else needed
    lacking = [
        answered.subject
        for each in (*about, *against)
        for answered in each.group.by_seed.values()
        if not any(analysis == first.analysis for analysis, _ in answered.answers)
    ]
    if lacking and (missing := gaps(material, first.analysis, subjects=lacking)):
        why = f"{first.analysis.replace('_', ' ')} has not been analysed"
        return (why, missing[0].command) if missing[0].command else (missing[0].what, "")
    return material.uncompared or NOT_YET, f"cascaded analyse {material.words}"
