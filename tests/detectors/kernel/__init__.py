"""Detectors against what the kernel really does: threads that SIGKILL does not end, file systems that do not answer.

No virtual machine is needed, only root: each file system lives in a mount namespace of its own, held by a program
(programs/) that also undoes everything when it is told to, when whoever started it is gone, or when its time is up.
"""
