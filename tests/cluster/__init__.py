"""A real control plane on loopback: programs built from their Go modules, started and ended by tests."""
