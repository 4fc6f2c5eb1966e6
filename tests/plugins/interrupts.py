"""Programs that tests start hear Ctrl-C: where a shell starts the tests in the background, all would ignore it."""

import signal


def pytest_configure() -> None:
    """What this process handles, a program that it starts does not ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
