"""What is there when the first test starts stays to the end: the garbage collector need not look through it."""

import gc

import pytest


def pytest_configure() -> None:
    """Imports and collecting make next to no garbage."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """From now on, what is new is looked through."""
    gc.freeze()
    gc.enable()
