"""The notebook goes from nothing to the figure."""

import json
from pathlib import Path

import cascaded
from cascaded.traces.stimuli import human_recordings

NOTEBOOK = Path(__file__).parent.parent / "examples" / "human.ipynb"


def test_the_notebook_runs_from_top_to_bottom_and_stores_no_outputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in cells] == [[]] * len(cells)
    code = "\n\n".join("".join(cell["source"]) for cell in cells)
    for whole, few in (("IMAGES = 700", "IMAGES = 20"), ("draws=50", "draws=4")):
        assert whole in code
        code = code.replace(whole, few)
    names = {"__name__": "notebook"}
    exec(compile(code, NOTEBOOK.name, "exec"), names)
    for name in ("people", "confusions"):
        assert "<svg" in (tmp_path / "beside-people" / f"{name}.svg").read_text()
    table = cascaded.results.load(tmp_path / "beside-people", "human")
    assert set(table["method"]) == {"cascaded-td", "cascaded-ce"}
    people = names["human"].curves(names["human"].trials()).query("manipulation == 'noise' and level == 0")
    assert people["accuracy"].round(3).tolist() == [0.108, 0.108, 0.323, 0.569, 0.596]
    numbers = names["numbers"].groupby("metric")["value"]
    assert numbers.get_group("ceiling_error").round(3).unique().tolist() == [0.048]
    assert numbers.get_group("fit_error").between(0.04, 0.2).all()  # a perfect model has .048
    for name in ("cifar10-td0", "cifar10-ce"):
        traces = cascaded.load_run(tmp_path / "beside-people" / name).folder.glob("traces/*")
        assert len({each.stem for each in traces}) >= len(human_recordings())
