"""The embedded API server and the simulated kubelet, held to the real ones by tests/contract."""
