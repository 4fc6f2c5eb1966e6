"""What is there when the first test starts stays to the end: the garbage collector need not look through it."""

import gc

import pytest

_unfreeze = gc.unfreeze
_thawed = False


def pytest_configure() -> None:
    """Imports and collecting make next to no garbage."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """From now on, what is new is looked through."""
    gc.freeze()
    gc.enable()
    gc.unfreeze = _noting


def _noting() -> None:
    global _thawed
    _thawed = True
    _unfreeze()


def pytest_runtest_logfinish() -> None:
    """What the last test has thawed, as each seed of the simulation does, would be looked through in all that follow.

    That takes half a second each time. To ask how much is frozen takes milliseconds, too long for each test.
    """
    global _thawed
    if _thawed:
        _thawed = False
        gc.freeze()


def pytest_unconfigure() -> None:
    """As it was before."""
    gc.unfreeze = _unfreeze
