"""The page as a reader has it: opened from disk in a real browser, on a phone, on a desk, in the dark and on paper."""

import numpy as np
import pytest

import tests.browser
from cascaded.report.page import write_page
from cascaded.shell import typed
from tests.browser import PHONE, check_fits, check_page, check_quiet, visited
from tests.made_exhibitions import COLOURS, MODELS, ODD, made_drawings, made_exhibition

browser = tests.browser.browser


@pytest.fixture(scope="module")
def show():
    return made_exhibition()


@pytest.fixture(scope="module")
def file(show, tmp_path_factory):
    return write_page(show, made_drawings(show), COLOURS, tmp_path_factory.mktemp("page with spaces"))


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


def told(page, side):
    """The shares beside the bars of a side, in order."""
    return [int(text.split()[0]) for text in page.locator(".side").nth(side).locator(".value").all_inner_texts()]


def test_everything_holds_on_a_phone_in_the_dark_and_on_a_desk_in_the_light(browser, file):
    check_page(browser, file)
    assert file.exists()


def test_a_page_without_an_explorer_says_what_would_fill_it(browser, tmp_path):
    show = made_exhibition(explorers=False)
    bare = write_page(show, made_drawings(show), COLOURS, tmp_path)
    with visited(browser, bare, PHONE) as visit:
        check_fits(visit)
        check_quiet(visit, bare)
        assert typed(show.unexplored[0].command) in visit.page.inner_text("#explorer")


def test_the_bars_are_the_networks_probabilities_at_every_step(show, page):
    explorer = show.explorers[0]
    place = int(page.inner_text("#explorer-subject").split()[1]) - 1
    item = sorted(range(len(explorer.labels)), key=lambda each: explorer.labels[each])[place]  # by class, as it begins
    for step in range(9):
        for side in (0, 1):
            shares = explorer.models[side].probabilities
            expected = 100 * shares[min(step, len(shares) - 1), item]
            assert np.abs(told(page, side) - expected).max() < 0.8
            answer = explorer.classes[int(expected.argmax())]
            assert f"Says {answer} with" in page.locator(".says").nth(side).inner_text()
        page.keyboard.press("ArrowRight")


def test_a_shorter_network_holds_its_last_step_and_says_so(show, visit, page):
    lengths = [len(model.probabilities) for model in show.explorers[0].models[:2]]
    page.keyboard.press("End")
    assert visit.steps() == (max(lengths), max(lengths))
    assert f"holds its last step, {lengths[0]}" in page.locator(".says").first.inner_text()
    assert "holds" not in page.locator(".says").nth(1).inner_text()
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
    assert 98 <= sum(told(page, 0)) <= 102


def test_images_can_be_sorted_by_how_soon_the_left_model_is_right(show, page):
    explorer = show.explorers[0]
    page.select_option("#explorer-sort", "settled")
    right = explorer.models[0].probabilities.argmax(axis=-1) == np.array(explorer.labels)
    steps = sorted(0 if each.all() else len(each) - int(each[::-1].argmin()) for each in right.T)
    expected = [f"step {step + 1}" if step < len(right) else "never" for step in steps]
    assert page.locator(".below").all_inner_texts() == expected


def test_odd_names_are_text_and_nothing_else(visit, page):
    words = page.inner_text("body")
    for name in ODD:
        assert name in words
    assert page.locator("img, iframe, object").count() == 0
    for model in MODELS[4:]:
        page.locator(".side select").first.select_option(str(MODELS.index(model)))
        page.wait_for_function("(name) => document.querySelector('.printed').textContent === name", arg=model)
    page.locator(f".thumb[title='{ODD[0]}']").first.click()
    assert page.inner_text("#explorer-truth") == ODD[0]
    assert visit.trouble == []


def test_a_model_has_the_same_colour_in_the_key_and_in_the_explorer(page):
    colour = "(each) => getComputedStyle(each).backgroundColor"
    key = page.locator(".key .swatch").evaluate_all(f"(all) => all.map({colour})")
    shown = page.locator(".side .swatch").evaluate_all(f"(all) => all.map({colour})")
    assert shown == key[:2]
    assert len(set(key)) == len(MODELS)


def test_no_half_of_a_row_of_figures_is_left_empty(page):
    boxes = "(all) => all.map((each) => [each.offsetLeft, each.offsetTop, each.offsetWidth])"
    first, second, third = page.locator("#speed figure").evaluate_all(boxes)
    assert first[1] == second[1] < third[1]
    assert second[0] - first[0] > first[2] == second[2]
    assert third[2] == second[0] + second[2] - first[0]


def test_colours_follow_the_system_until_the_reader_chooses_and_are_remembered(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    for _ in range(5):  # about once in 60, a browser that has just started drops what a page writes to localStorage
        assert page.inner_text("#page-theme") == "Colours: auto"
        page.click("#page-theme")
        assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
        page.reload()
        if page.inner_text("#page-theme") != "Colours: auto":
            break
    assert page.inner_text("#page-theme") == "Colours: light"
    page.click("#page-theme")
    assert page.evaluate(ground) == dark
    page.click("#page-theme")
    assert page.inner_text("#page-theme") == "Colours: auto"


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
