"""`cascaded live` in a real browser: steps, noise, camera, sliders, and files that are refused."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import tests.browser
from cascaded.runtime.live.charts import STRIP
from tests.browser import PHONE, Visit, check_contrast, check_fits
from tests.forked import killed_in_time
from tests.made_networks import made
from tests.served import form, send

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
if not importlib.util.find_spec("gradio"):  # importing it takes seconds
    pytest.skip("the page needs the extra `live`", allow_module_level=True)

browser = tests.browser.browser
MILLISECONDS = 60_000
"""After which a test fails: it stops hangs."""
RUN = """
from cascaded.runtime.live import page
page.PAUSE = page.FRAME = 0  # nobody looks
from cascaded.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory, browser):
    """The page with two tiny networks, in a process of its own, which stops at a signal."""
    place = tmp_path_factory.mktemp("page")
    made().save_pretrained(place / "one")
    made("shallow-deep").save_pretrained(place / "two")
    words = [sys.executable, "-c", RUN, "live", str(place / "one"), str(place / "two"), "--max-megabytes", "0.1"]
    env = {**os.environ, "GRADIO_TEMP_DIR": str(place / "uploads")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process, killed_in_time(process):
        yield re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline()).group()
        process.terminate()
        assert process.communicate(timeout=MILLISECONDS / 1000)[0] == "stopped\n"
    assert process.returncode == 0


@pytest.fixture
def opened(browser, address):
    """The page after its first run; at the end there are no errors, and no other server was reached."""
    yield from visit(browser, address)


def visit(browser, address, **options):
    context = browser.new_context(permissions=["camera"], **options)
    page, trouble, urls = context.new_page(), [], []
    page.set_default_timeout(MILLISECONDS)
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: urls.append(request.url))
    page.goto(address)
    page.wait_for_selector("#steps-chart tr.stop")
    page.wait_for_selector("#steps-chart tbody tr:nth-child(9)")
    yield page
    context.close()
    assert [url for url in urls if not url.startswith((address, "data:", "blob:"))] == []
    assert [each for each in trouble if each != "Method not implemented."] == []  # a file that Gradio refuses


def test_every_step_is_shown_with_its_time(opened):
    times = opened.locator("#steps-chart td:nth-child(5)").all_inner_texts()
    assert len(times) == 9
    assert all(time.endswith(" ms") and float(time.split()[0]) >= 0 for time in times)
    assert opened.locator("#steps-chart polyline").count() >= 6


def test_the_threshold_decides_where_it_stops(opened):
    for value, step in (("1", 9), ("0", 1)):
        box = opened.get_by_label("number input for threshold")
        box.fill(value)
        box.press("Tab")
        opened.locator("#run").click()
        opened.wait_for_function(f"document.querySelector('#steps-chart tr.stop td')?.innerText === '{step}'")


def test_an_image_is_uploaded_and_a_large_file_refused(opened, tmp_path):
    Image.new("RGB", (30, 20), "red").save(tmp_path / "red.png")
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.png")
    before = opened.get_attribute("#steps-chart .head img", "src")
    opened.get_by_label("Remove Image").or_(opened.get_by_label("Clear")).first.click()
    opened.locator("#picture input[type=file]").set_input_files(str(tmp_path / "large.png"))
    opened.get_by_text("maximum allowed size").first.wait_for()
    opened.locator("#picture input[type=file]").set_input_files(str(tmp_path / "red.png"))
    opened.wait_for_function(
        "old => (document.querySelector('#steps-chart .head img')?.src ?? old) !== old", arg=before
    )


def test_the_server_refuses_large_files_too(address):
    body, kind = form(bytes(200_000), "files")
    assert send(address, "/gradio_api/upload", body, **{"Content-Type": kind}).status == 413
    body, kind = form(bytes(50_000), "files")
    assert send(address, "/gradio_api/upload", body, **{"Content-Type": kind}).status == 200


def test_noise_shows_both_networks(opened):
    opened.get_by_role("tab", name="Under noise").click()
    opened.click("#start")
    opened.wait_for_function(f"document.querySelectorAll('#noise-chart i.on').length === {2 * STRIP}")
    assert "cascade: " in opened.inner_text("#noise-chart .head b")
    assert "serial: " in opened.inner_text("#noise-chart .head b")


def test_the_camera_is_a_stream(opened):
    opened.get_by_role("tab", name="Camera").click()
    opened.locator("#camera").get_by_text("Webcam").first.click()
    opened.locator("#camera button").filter(has_text="Record").first.click()
    opened.wait_for_function("document.querySelectorAll('#camera-chart i.on').length >= 6")


def test_a_network_without_streams_is_refused_in_a_sentence(opened):
    opened.locator("#network input").click()
    opened.get_by_role("option").nth(1).click()
    opened.get_by_role("tab", name="Under noise").click()
    opened.click("#start")
    opened.get_by_text("takes no new frames: choose another network").first.wait_for()


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.long), "dark"])
def test_a_phone_shows_all_of_it_in_readable_colors(browser, address, scheme):
    for page in visit(browser, address, viewport={"width": PHONE, "height": 800}, color_scheme=scheme):
        check_fits(Visit(page))
        check_contrast(Visit(page))
