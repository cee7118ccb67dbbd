"""Times of a converted transformer are ratios of what they say they are."""

from cascaded.bench.convert import JOINS, time_conversion


def test_operations_of_all_steps_are_about_half_of_the_loop():
    done = []
    measured = time_conversion(2, 16, 2, repeats=1, on_progress=lambda: done.append(1))
    assert [each.joins for each in measured] == list(JOINS)
    assert [each.steps for each in measured] == [5, 3]
    assert len(done) == 2 * len(JOINS)
    for each in measured:
        assert len(each.step_times) == len(each.step_operations) == each.steps
        assert sum(each.step_operations) == each.operations < each.steps / 2 + 1
        assert each.step_operations[0] < each.step_operations[-1] < each.step_operations[1]
        assert each.time_of_loop == each.time / each.loop
        assert each.time_of_operations == each.time / each.operations
