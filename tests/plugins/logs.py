"""What the product logs of an exception is a plain traceback: rich, where it is installed, takes 0.1 s to draw one."""

import structlog


def pytest_configure() -> None:
    """For what is not configured otherwise, and again once it is reset."""
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
