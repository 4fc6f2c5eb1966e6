"""Scenarios that a program and its model both run through."""

import tests.operations.conftest  # noqa: F401  it puts the programs on the path
