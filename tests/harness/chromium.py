"""Where the browser of tests is. Without one they are skipped, and tests/plugins/no_browser.py tells it at the end."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or ""
NO_CHROMIUM = "no chromium on PATH"
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)
