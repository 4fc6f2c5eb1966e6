"""What the product logs of an exception is a plain traceback: rich, where it is installed, takes 0.1 s to draw one.

A command that is run in this process says how to log, for all of it, and to a stream that is closed after its test.

`print` to whatever sys.stdout is borrows that stream: a command that ends in another thread meanwhile, and puts back
what was there before, frees it, and this process dies (CPython 3.11). A WriteLogger holds its stream.
"""

import sys

import pytest
import structlog


def _logger(*_: object) -> structlog.WriteLogger:
    return structlog.WriteLogger(sys.__stdout__)


def _reset() -> None:
    structlog.reset_defaults()
    structlog.configure(logger_factory=_logger)


def pytest_configure() -> None:
    """For what is not configured otherwise, and again once it is reset."""
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
    _reset()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """The next test logs as if nobody had said how."""
    _reset()
