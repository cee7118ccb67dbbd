"""The results table: written and read back, the same types whatever the rows; names and units of its values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import parquet

from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name
from cascaded.results.operations import FRACTIONS
from cascaded.results.registry import ANALYSES
from cascaded.results.table import COLUMNS, empty, load, read_provenance, results_file, to_table, write, write_csv
from tests.made_table import made_table
from tests.refused import refused


@pytest.fixture(scope="module")
def table():
    return made_table(seeds=(0, 1))


def test_the_made_table_has_every_metric_and_no_other(table):
    assert {*table.metric, *FRACTIONS} == set(METRICS)  # fractions of operations are computed from stored curves
    assert list(table.columns) == COLUMNS


def test_rows_are_read_back_as_they_were_written(table, tmp_path):
    for (run, analysis), rows in table.groupby(["run", "analysis"]):
        write(tmp_path / run, analysis, rows, {"traces": {"a": "b"}})
    again = load(tmp_path)
    order = ["run", "analysis", "metric", "rule", "unit", "measure", "detector", "reads", "ood_data", "noise", "steps"]
    order += ["noise_frames", "schedule", "manipulation", "level", "category", "answer", "x"]
    arrange = lambda df: df.sort_values(order, ignore_index=True)  # noqa: E731
    assert_frame_equal(arrange(again), arrange(table))
    assert read_provenance(results_file(tmp_path / table.run[0], "speed_accuracy")) == {"traces": {"a": "b"}}


def test_types_do_not_depend_on_which_columns_are_null():
    one = to_table(pd.DataFrame([{"width": 8, "seed": 0, "metric": "accuracy", "value": 0.5}]))
    full = made_table("transient_noise", seeds=(0,))
    assert (one.dtypes == full.dtypes).all()
    assert (empty().dtypes == full.dtypes).all()
    assert (pd.concat([one, full]).dtypes == full.dtypes).all()


def test_null_is_nan_in_numbers_and_none_in_draws():
    row = to_table(pd.DataFrame([{"width": 8, "seed": 0, "metric": "theta", "value": 0.5, "lam": None}])).iloc[0]
    assert np.isnan(row.lam)
    assert np.isnan(row.x)
    assert row.draws is None
    assert pd.isna(row.noise)


def test_files_from_before_rows_had_versions_are_of_the_first_protocol(tmp_path):
    file = write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {})
    parquet.write_table(parquet.read_table(file).drop_columns(["version", "protocol_version"]), file)
    assert set(load(file).protocol_version) == {1}
    assert load(file).version.isna().all()


def test_files_from_before_rows_had_their_weights_have_those_of_their_provenance(tmp_path):
    later = ["analysis_version", "weights", "rounded_from"]
    for digests, expected in ((["0123456789abcdef0"], "0123456789abcdef"), (["01", "23"], None), ([None], None)):
        file = write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {"version": 3, "weights": digests})
        parquet.write_table(parquet.read_table(file).drop_columns(later), file)
        rows = load(file)
        assert set(rows.analysis_version) == {3}
        assert set(rows.weights.dropna()) == ({expected} if expected else set())
        assert rows.rounded_from.isna().all()


def test_files_from_before_there_were_people_have_null_in_their_columns(tmp_path):
    file = write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {})
    parquet.write_table(parquet.read_table(file).drop_columns(["human", "manipulation", "level"]), file)
    assert load(file)[["human", "manipulation", "level"]].isna().all(axis=None)
    assert list(load(file).columns) == COLUMNS


def test_load_takes_runs_folders_above_them_and_single_files_and_reads_each_once(tmp_path):
    rows = made_table("run_time", seeds=(0,))
    run = tmp_path / "td0" / "0"
    file = write(run, "run_time", rows, {})
    for place in (tmp_path, str(run), file, [tmp_path, run, file]):
        assert len(load(place)) == len(rows)


def test_load_can_be_restricted_to_some_analyses(tmp_path):
    write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {})
    write(tmp_path, "speed_accuracy", made_table("speed_accuracy", seeds=(0,)), {})
    assert set(load(tmp_path, "run_time").analysis) == {"run_time"}


def test_whole_numbers_have_no_decimal_point_in_a_csv_file(tmp_path):
    rows = [{"n_items": 12, "steps": 70, "lam": 1, "value": 3.0}, {"n_items": 8, "fold": 2, "value": 0.5}]
    write_csv(to_table(pd.DataFrame(rows)), tmp_path / "all.csv")
    text = pd.read_csv(tmp_path / "all.csv", dtype="string", keep_default_na=False)
    columns = ["n_items", "steps", "fold", "noise_frames", "lam", "value"]
    assert text[columns].to_numpy().tolist() == [["12", "70", "", "", "1.0", "3.0"], ["8", "", "2", "", "", "0.5"]]
    assert "draws" not in text


def test_other_parquet_files_are_passed_over(tmp_path):
    pd.DataFrame({"image": [1]}).to_parquet(tmp_path / "train.parquet")
    refused(r"there are no results in .*: cascaded analyze .* computes them", load, tmp_path)
    refused("does not exist", load, tmp_path / "nowhere")


def test_a_damaged_file_is_passed_over_and_a_column_that_is_not_known_refused(tmp_path):
    file = write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {})
    file.write_bytes(file.read_bytes()[:100])
    assert read_provenance(file) is None
    refused("rows have a column 'color'", to_table, pd.DataFrame([{"color": 1}]))


def test_the_page_about_the_table_has_every_column_and_metric():
    page = (Path(__file__).parent.parent / "docs" / "results-table.md").read_text()
    assert [name for name in (*COLUMNS, *METRICS, *ANALYSES) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("CascadedTD(0)", ("cascaded-td", 0.0)),
        ("CascadedTD(0.5)", ("cascaded-td", 0.5, "cascaded")),
        ("CascadedTD(0)-MultiHead", ("cascaded-td-multihead", 0.0)),
        ("CascadedCE", ("cascaded-ce", None)),
        ("CascadedCE", ("cascaded-ce", float("nan"), "cascaded", "focus")),
        ("SerialCE", ("cascaded-ce", None, "serial")),
        ("SerialCEx9", ("cascaded-ce", None, "serial", "focus")),
        ("SerialCE", ("serial-ce", None)),
        ("SerialTD(1)", ("serial-td", 1.0)),
        ("Shallow-Deep", ("serial-td-multihead", 1.0, "serial")),
        ("Shallow-Deep (0)", ("serial-td-multihead", 0.0)),
        ("Shallow-Deep, own features", ("shallow-deep", 1.0, "serial")),
        ("CascadedTD(0), serial", ("cascaded-td", 0.0, "serial")),
    ],
)
def test_display_name(name, about):
    assert display_name(*about) == name


def test_values_are_written_with_their_units():
    assert METRICS["accuracy"].format(0.7134) == "71.3 %"
    assert METRICS["accuracy"].format_difference(0.012) == "+1.2 points"
    assert METRICS["latency"].format(31.415) == "31.4 steps"
    assert METRICS["rho"].format(-0.1234) == "-0.123"
    assert METRICS["rho"].format(float("nan")) == "-"
