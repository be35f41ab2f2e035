import time

import pytest

from lgcn.workers.limited import within


def test_a_result_and_an_error_come_through():
    assert within(10, lambda: 3) == 3
    assert within(10, lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 // 0)


def test_a_call_that_hangs_is_left_behind():
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"0\.1 s"):
        within(0.1, lambda: time.sleep(5))
    assert time.monotonic() - started < 4
