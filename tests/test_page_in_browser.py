"""The page as a reader has it: opened from disk in a real browser, on a phone, on a desk, in the dark and on paper."""

import numpy as np
import pytest

import tests.browser
from cascaded.analysis.outputs import softmax
from cascaded.report.page import write_page
from tests.browser import PHONE, check_fits, check_page, check_quiet, served, visited
from tests.made_report import NETWORKS, ODD, made_report

browser = tests.browser.browser


@pytest.fixture(scope="module")
def report():
    return made_report()


@pytest.fixture(scope="module")
def file(report, tmp_path_factory):
    return write_page(report, tmp_path_factory.mktemp("page with spaces"))


@pytest.fixture(scope="module")
def visit(browser, file):
    """One visit for all who can share it."""
    with visited(browser, file, color_scheme="dark", permissions=["clipboard-read", "clipboard-write"]) as visit:
        yield visit


@pytest.fixture
def page(visit):
    """The page with the first images and models, at the first step."""
    page = visit.page
    page.select_option("#explorer-sort", "class")
    page.select_option("#explorer-set", label="cifar100 test")
    page.select_option("#explorer-set", label="clutter test")
    page.wait_for_function("() => document.querySelectorAll('.side .bar').length === 20")
    page.focus("#explorer-box")
    page.keyboard.press("Home")
    return page


def percentages(page, side):
    """The percentages beside the bars of a side, in order."""
    return [int(text.split()[0]) for text in page.locator(".side").nth(side).locator(".value").all_inner_texts()]


def test_everything_holds_on_a_phone_in_the_dark_and_on_a_desk_in_the_light(browser, file):
    check_page(browser, file)
    assert file.exists()


def test_a_page_without_an_explorer_says_what_would_fill_it(browser, tmp_path):
    report = made_report(explorers=False)
    bare = write_page(report, tmp_path)
    with visited(browser, bare, PHONE) as visit:
        check_fits(visit)
        check_quiet(visit, bare)
        assert report.explorer_missing[0].command in visit.page.inner_text("#explorer")


def test_the_bars_are_the_networks_probabilities_at_every_step(report, page):
    networks = list(report.explorers[0].values())
    labels, classes = networks[0].labels, networks[0].provenance.classes
    place = int(page.inner_text("#explorer-position").split()[1]) - 1
    item = sorted(range(len(labels)), key=lambda each: labels[each])[place]  # by class, as it begins
    for step in range(9):
        for side in (0, 1):
            shares = softmax(networks[side].logits)
            expected = 100 * shares[min(step, len(shares) - 1), item]
            assert np.abs(percentages(page, side) - expected).max() < 0.8
            prediction = classes[int(expected.argmax())]
            assert f"Predicts {prediction} with" in page.locator(".statement").nth(side).inner_text()
        page.keyboard.press("ArrowRight")


def test_a_network_with_fewer_steps_keeps_its_last_output(report, visit, page):
    lengths = [len(own.logits) for own in report.explorers[0].values()][:2]
    page.keyboard.press("End")
    assert visit.steps() == (max(lengths), max(lengths))
    assert f"finished at step {lengths[0]}" in page.locator(".statement").first.inner_text()
    assert "finished" not in page.locator(".statement").nth(1).inner_text()
    assert page.locator(".side").first.locator(".changed").count() == 0


def test_of_many_classes_a_few_are_shown_the_true_one_marked_and_always_in_the_same_place(page):
    page.select_option("#explorer-set", label="cifar100 test")
    page.wait_for_function("() => document.querySelectorAll('.side .bar').length === 14")
    rows = ".side .bars .class"
    before = page.locator(rows).all_inner_texts()
    assert len(before) == 14
    assert before[:7] == before[7:]
    assert before[6] == "94 others"
    assert page.locator(".tag").all_inner_texts() == ["true", "true"]
    page.keyboard.press("End")
    assert page.locator(rows).all_inner_texts() == before
    assert 98 <= sum(percentages(page, 0)) <= 102


def test_images_can_be_sorted_by_the_first_correct_step_of_the_left_network(report, page):
    first = next(iter(report.explorers[0].values()))
    page.select_option("#explorer-sort", "settled")
    right = first.logits.argmax(axis=-1) == first.labels
    steps = sorted(0 if each.all() else len(each) - int(each[::-1].argmin()) for each in right.T)
    expected = [f"step {step + 1}" if step < len(right) else "never" for step in steps]
    assert page.locator(".below").all_inner_texts() == expected


def test_odd_names_are_text_and_nothing_else(visit, page):
    words = page.inner_text("body")
    for name in ODD:
        assert name in words
    assert page.locator("img, iframe, object").count() == 0
    for name in NETWORKS[4:]:
        page.locator(".side select").first.select_option(str(NETWORKS.index(name)))
        page.wait_for_function("(name) => document.querySelector('.printed').textContent === name", arg=name)
    page.locator(f".thumb[title='{ODD[0]}']").first.click()
    assert page.inner_text("#explorer-truth") == ODD[0]
    assert visit.trouble == []


def test_a_network_has_the_same_color_in_the_key_and_in_the_explorer(page):
    color = "(each) => getComputedStyle(each).backgroundColor"
    key = page.locator(".key .swatch").evaluate_all(f"(all) => all.map({color})")
    shown = page.locator(".side .swatch").evaluate_all(f"(all) => all.map({color})")
    assert shown == key[:2]
    assert len(set(key)) == len(NETWORKS)


def test_no_half_of_a_row_of_figures_is_left_empty(page):
    boxes = "(all) => all.map((each) => [each.offsetLeft, each.offsetTop, each.offsetWidth])"
    first, second, third = page.locator("#speed figure").evaluate_all(boxes)
    assert first[1] == second[1] < third[1]
    assert second[0] - first[0] > first[2] == second[2]
    assert third[2] == second[0] + second[2] - first[0]


def test_colors_follow_the_system_until_the_reader_chooses_and_are_remembered(browser, file):
    """Served, not opened from disk: Chromium may lose what a file:// page stores right before it is reloaded."""
    ground = "getComputedStyle(document.body).backgroundColor"
    with served(file.parent) as url, visited(browser, f"{url}/{file.name}", color_scheme="dark") as visit:
        page = visit.page
        dark = page.evaluate(ground)
        assert page.inner_text("#page-theme") == "Colors: auto"
        page.click("#page-theme")
        assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
        page.reload()
        assert page.inner_text("#page-theme") == "Colors: light"
        page.click("#page-theme")
        assert page.evaluate(ground) == dark
        page.click("#page-theme")
        assert page.inner_text("#page-theme") == "Colors: auto"


def test_without_javascript_all_but_the_explorer_is_there(browser, file):
    with visited(browser, file, java_script_enabled=False) as visit:
        page = visit.page
        assert "needs JavaScript" in page.inner_text("#explorer")
        assert not page.is_visible("#explorer-box")
        assert not page.is_visible(".copy >> nth=0")
        assert page.is_visible(".sheet svg >> nth=0")


def test_a_command_can_be_copied(page):
    row = page.locator(".missing .command").first
    row.locator("button").click()
    page.wait_for_function("() => document.querySelector('.missing .copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == row.locator("code").inner_text()
