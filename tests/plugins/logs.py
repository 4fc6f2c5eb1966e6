"""What the product logs of an exception is a plain traceback: rich, where it is installed, takes 0.1 s to draw one.

A command that is run in this process says how to log, for all of it, and to a stream that is closed after its test.
"""

import pytest
import structlog


def pytest_configure() -> None:
    """For what is not configured otherwise, and again once it is reset."""
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """The next test logs as if nobody had said how."""
    if structlog.is_configured():
        structlog.reset_defaults()
