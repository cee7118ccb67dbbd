"""Networks on the hub, which is a local server here that answers the requests of `huggingface_hub`."""

import hashlib
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
import torch
from huggingface_hub import ModelCard
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

import cascaded
from cascaded import Pretrained
from cascaded.errors import InputError
from tests.made_networks import made, pixels

COMMIT = "5" * 40


class Hub(BaseHTTPRequestHandler):
    """Serves the files of folders OWNER/NAME below a root, at one commit each."""

    root: Path
    requests: list[str]

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        folder = self.root / "/".join(parts[2:4] if api else parts[:2])
        file = folder if api else folder / parts[-1]
        if file.name != "agent-harnesses":  # huggingface_hub requests this list with the first request of a process
            self.requests.append(file.name)
        if not folder.is_dir():
            return self.send(404, {"X-Error-Code": "RepoNotFound"})
        if "nightly" in parts:
            return self.send(404, {"X-Error-Code": "RevisionNotFound"})
        if not api:
            content = file.read_bytes()
            return self.send(200, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, content)
        files = [{"rfilename": each.name} for each in folder.iterdir()]
        info = {"id": "/".join(parts[2:4]), "sha": COMMIT, "siblings": files}
        return self.send(200, {"Content-Type": "application/json"}, dumps(info).encode())

    do_HEAD = do_GET  # noqa: N815

    def send(self, code, headers, content=b""):
        self.send_response(code)
        for name, value in {**headers, "X-Repo-Commit": COMMIT, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *args):
        """Print nothing."""


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory):
    """A folder that `save_pretrained` wrote."""
    folder = tmp_path_factory.mktemp("networks") / "mine"
    made(accuracy=(0.5,)).save_pretrained(folder)
    return folder


@pytest.fixture
def hub(saved_folder, tmp_path, monkeypatch):
    """The root of a hub with one network, me/mine, and a function that switches it off."""
    monkeypatch.chdir(tmp_path)
    handler = type("Own", (Hub,), {"root": tmp_path / "hub", "requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    shutil.copytree(saved_folder, tmp_path / "hub" / "me" / "mine")
    disable_progress_bars()
    handler.stop = lambda: (server.shutdown(), server.server_close())
    yield handler
    enable_progress_bars()
    handler.stop()


@torch.no_grad()
def test_a_network_is_downloaded_once_and_then_read_from_the_cache(hub):
    expected = made()(pixels())
    for net in (cascaded.load("me/mine"), Pretrained.from_pretrained("me/mine")):
        assert torch.equal(net(pixels()), expected)
        assert net.accuracy == (0.5,)
    assert hub.requests.count("model.safetensors") == 2  # HEAD and GET
    hub.stop()
    assert torch.equal(cascaded.load("me/mine")(pixels()), expected)
    with pytest.raises(InputError, match=r"no folder me/other here, and the hub, where it could be, cannot be reached"):
        cascaded.load("me/other")


def test_a_network_that_the_hub_does_not_have_is_refused_in_one_sentence(hub):
    with pytest.raises(InputError, match="no folder me/other here, and the hub shows no network of that name"):
        cascaded.load("me/other")
    with pytest.raises(InputError, match="me/mine on the hub has no revision 'nightly': leave it out for the newest"):
        Pretrained.from_pretrained("me/mine", revision="nightly")
    with pytest.raises(InputError, match="me/mine cannot be fetched from the hub"):
        Pretrained.from_pretrained("me/mine", local_files_only=True)


def test_a_pickle_on_the_hub_is_not_downloaded(hub):
    place = hub.root / "me" / "mine"
    (place / "model.safetensors").rename(place / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"me/mine holds no model\.safetensors, and .* are never unpickled"):
        cascaded.load("me/mine")
    assert hub.requests == ["mine"]


class FakeApi:
    """A hub that stores the files of an uploaded folder."""

    uploaded = None

    def __init__(self, token=None):
        self.token = token

    def create_repo(self, repo_id, **options):
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, repo_id, folder_path, **options):
        files = {file.name: file.read_bytes() for file in Path(folder_path).iterdir()}
        type(self).uploaded = (repo_id, files, options["commit_message"])
        return "https://the.hub/commit"


@pytest.mark.parametrize("saved", [True, False])
def test_the_uploaded_files_are_the_saved_ones_with_a_card_of_that_name(saved, saved_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", FakeApi)
    options = {"model_card_kwargs": {"license": "mit"}, "commit_message": "mine"}
    if saved:
        url = made(accuracy=(0.5,)).save_pretrained(tmp_path / "here", repo_id="me/mine", push_to_hub=True, **options)
    else:
        url = made(accuracy=(0.5,)).push_to_hub("me/mine", **options)
    name, files, message = FakeApi.uploaded
    assert (url, name, message) == ("https://the.hub/commit", "me/mine", "mine")
    assert sorted(files) == ["README.md", "config.json", "model.safetensors"]
    for each in ("config.json", "model.safetensors"):
        assert files[each] == (saved_folder / each).read_bytes()
    card = ModelCard(files["README.md"].decode())
    assert card.data.license == "mit"
    assert "\n# me/mine\n" in card.text
    assert 'cascaded.load("me/mine")' in card.text
