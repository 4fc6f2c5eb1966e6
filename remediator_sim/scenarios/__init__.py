"""`make demo`: the whole system on one machine in one minute, with faults on a script.

Everything is real but the machines: the embedded API server answers kubectl, the controller is the process that runs in
production, detectors and operations are the shipped programs. The script changes only what a node would show.
"""
