"""Ctrl-C and SIGTERM during a training: finish the epoch, save, then stop."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any


class StopRequest(threading.Event):
    """Is set when the user wants to stop.

    Attributes:
        epoch_started: When the current epoch started; ``None`` outside of epochs, where there is
            nothing to wait for.
    """

    epoch_started: float | None = None


@contextlib.contextmanager
def stop_request(active: bool) -> Iterator[StopRequest]:
    """Turns Ctrl-C and SIGTERM into a request to stop after the epoch, and says so.

    A second signal stops at once, and so does the first one outside of an epoch. Only the main
    thread can receive signals; in other threads nothing changes.

    Args:
        active: Whether to do so. If not, the request is never set.
    """
    requested = StopRequest()
    if not active or threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def handler(number: int, frame: Any) -> None:
        if requested.is_set() or requested.epoch_started is None:
            raise KeyboardInterrupt
        requested.set()
        so_far = time.perf_counter() - requested.epoch_started
        # Not through Python's streams, which may be in the middle of a line.
        line = f"stopping after this epoch ({so_far:.0f} s so far); Ctrl-C again stops at once\n"
        with contextlib.suppress(OSError):
            os.write(2, (b"\n" if os.isatty(2) else b"") + line.encode())

    # Background jobs of a shell ignore Ctrl-C.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield requested
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
