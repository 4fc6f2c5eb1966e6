"""A real control plane on loopback: programs built from their Go modules, started and ended by tests."""

import pytest

REAL = pytest.param("real", marks=pytest.mark.cluster)  # the server that tests are given, where it is the real one
