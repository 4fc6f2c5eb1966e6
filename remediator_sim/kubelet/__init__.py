"""Simulated kubelets that run real programs."""
