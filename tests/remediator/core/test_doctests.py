"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import remediator.core

MODULES = [found.name for found in pkgutil.iter_modules(remediator.core.__path__)]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of(module):
    assert doctest.testmod(importlib.import_module(f"remediator.core.{module}")).failed == 0


@pytest.mark.slow
def test_some_examples_are_there():
    found = (doctest.testmod(importlib.import_module(f"remediator.core.{module}")).attempted for module in MODULES)
    assert sum(found) >= 2
