"""Waiting for processes: with a bound, and with a clear failure."""

import os
import signal
import sys
import time
import zlib

import pytest
import torch

from tests.forked import code_of, forked, is_going, kill_at_call, wait_until


def test_a_process_that_does_not_end_is_killed_and_fails_the_test():
    child = forked(lambda: time.sleep(60))
    with pytest.raises(AssertionError, match=rf"process {child} did not end within 0.1 s"):
        code_of(child, seconds=0.1)
    with pytest.raises(ChildProcessError):
        is_going(child)


def test_waiting_ends_when_the_process_that_is_waited_for_does():
    with pytest.raises(AssertionError, match="ended with code 3 before"):
        wait_until(lambda: False, forked(lambda: sys.exit(3)))
    with pytest.raises(AssertionError, match=r"did not happen within 0\.1 s"):
        wait_until(lambda: False, seconds=0.1)


@pytest.mark.parametrize(("after", "written"), [(False, 2), (True, 3)])
def test_a_process_kills_itself_at_a_call(tmp_path, after, written):
    class Writer:
        def write(self, number):
            (tmp_path / str(number)).touch()

    def work():
        kill_at_call(Writer, "write", 3, after=after)
        for number in range(5):
            Writer().write(number)

    assert code_of(forked(work)) == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == [str(number) for number in range(written)]


def test_the_global_random_state_follows_from_the_name_of_the_test(request):
    assert torch.initial_seed() == zlib.crc32(request.node.nodeid.encode())
