"""`make demo`: the whole system on one machine in one minute, with faults that are injected.

Everything is real but the machines: the embedded API server answers kubectl, the controller is the process that runs in
production, detectors and operations are the shipped programs. The scenarios change only what a node would show.
"""
