"""Says at the end of a run, also in CI, how many tests lacked a browser: an s among dots is overlooked."""

import pytest

from tests.harness.chromium import NO_CHROMIUM


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """In the process that prints, whichever worker skipped them."""
    skipped = sum(NO_CHROMIUM in str(report.longrepr) for report in terminalreporter.getreports("skipped"))
    if skipped:
        terminalreporter.section("no browser", red=True)
        terminalreporter.write_line(
            f"{skipped} tests of the page did not run: {NO_CHROMIUM}. Debian has it in the package chromium."
        )
