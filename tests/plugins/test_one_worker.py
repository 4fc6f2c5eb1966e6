"""Which tests go to the same worker."""

from pathlib import Path

import pytest

from tests.plugins.one_worker import SHARED, scope

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", sorted(SHARED))
def test_tests_that_look_at_one_long_run_share_a_worker_and_their_file_is_there(file):
    assert (ROOT / file).is_file()
    assert scope(f"{file}::test_a[x]") == scope(f"{file}::test_b") == file


def test_any_other_test_goes_to_any_worker():
    assert scope("tests/a/test_b.py::test_c[1]") != scope("tests/a/test_b.py::test_c[2]")
