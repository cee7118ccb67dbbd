"""The results table: written and read back, the same types whatever the rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import parquet

from cascaded.errors import InputError
from cascaded.results.metrics import METRICS
from cascaded.results.registry import ANALYSES
from cascaded.results.table import COLUMNS, empty, load, read_provenance, results_file, to_table, write
from tests.made_table import made_table


@pytest.fixture(scope="module")
def table():
    return made_table(seeds=(0, 1))


def test_the_made_table_has_every_metric_and_no_other(table):
    assert set(table.metric) == set(METRICS)
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


def test_other_parquet_files_are_passed_over(tmp_path):
    pd.DataFrame({"image": [1]}).to_parquet(tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"there are no results in .*: cascaded analyze .* computes them"):
        load(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "nowhere")


def test_a_damaged_file_is_passed_over_and_a_column_that_is_not_known_refused(tmp_path):
    file = write(tmp_path, "run_time", made_table("run_time", seeds=(0,)), {})
    file.write_bytes(file.read_bytes()[:100])
    assert read_provenance(file) is None
    with pytest.raises(InputError, match="rows have a column 'color'"):
        to_table(pd.DataFrame([{"color": 1}]))


def test_the_page_about_the_table_has_every_column_and_metric():
    page = (Path(__file__).parent.parent / "docs" / "results-table.md").read_text()
    assert [name for name in (*COLUMNS, *METRICS, *ANALYSES) if f"`{name}`" not in page] == []
