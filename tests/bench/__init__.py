"""Benchmarks on a real control plane: what they measure, and what they leave out, stands in README.md."""
