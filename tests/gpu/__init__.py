"""Detectors and operations on a real NVIDIA GPU: `make test-gpu`, or without anything but pytest and nvidia-ml-py
`python3 -m pytest --noconftest -m gpu -rs tests/gpu`. Best as root on the node itself, while nobody uses the GPU.

Elsewhere everything here is skipped. In a container some views are missing (the node's processes, the kernel's log):
what needs them is skipped, too, and says which view that is and what the detector made of its absence.
"""
