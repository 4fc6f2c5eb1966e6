#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuRecoveryRequired: the driver itself says that a GPU needs a reset, a reboot or more.

Since version 570 the driver decides after each error what has to be done, and NVML shows it (field 230, what Xid 154
logs). It knows more of the fault than any counter, so do what it asks for:

  GPU reset             drain the node's jobs off this GPU and reset it (nvidia-smi -r -i INDEX, or the operation
                        reset-gpu); where a process holds it that cannot be ended, reboot
  node reboot           drain the node and reboot it; a reset will not do
  bus reset             drain the node and reset the GPU's PCI bus, or reboot; a GPU reset will not do
  system reboot         drain the node and reboot it; where it comes back, power it off and on again

Not told of here are "drain and reset": jobs that run are safe, and the reset waits until the node is idle
(GpuEccFault); and what is to be done around the GPU, "drain P2P" (its jobs end first, then the driver says what it
needs) and "recover IMEX domain" (of other nodes), both NvlinkDomainFault. "unknown action N" is "cannot tell": newer
than this list, or its meaning differs from driver to driver; see the driver's release notes.

Where the same GPU asks again after that, run the maker's field diagnostic; serial number and UUID are in
<state>/evidence/gpu_recovery.json.

Two runs in a row must find something asked for, because a wish may be carried out and withdrawn at once; at first sight
it is "cannot tell". Runs to which NVML's one answer was good enough count as one, runs that could not tell as none. A
driver that does not know the field is fine, with a word on that. A GPU that is lost and an NVML that does not answer
are "cannot tell": GpuLost tells of them. "no permission" is cured by running as root.
Another code with "does not report its ...", or NVML that cannot be asked or makes no sense: --explain shows what it
says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 nothing asked for, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from nodelib.contract.detector import main
from nodelib.nvml.client import parser
from nodelib.nvml.recovery import BUS, REBOOT, RESET, SYSTEM
from nodelib.nvml.wishes import Concern, detector

CONCERN = Concern(
    "gpu_recovery",
    "GpuRecoveryRequired",
    frozenset({RESET, REBOOT, BUS, SYSTEM}),
    fine="the driver asks for no recovery",
    unclear=True,
)
DETECTOR = detector(CONCERN)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
