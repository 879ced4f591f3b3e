"""Ending processes, those of others included."""
import contextlib
import os
import select
import signal


def kill(pid, seconds=10):
    """Returns when it has ended, though its parent may not have noticed yet."""
    try:
        descriptor = os.pidfd_open(pid)  # stays with this process, whoever gets its pid next
    except ProcessLookupError:
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise AssertionError(f"process {pid} has not ended {seconds} s after SIGKILL")
    finally:
        os.close(descriptor)
