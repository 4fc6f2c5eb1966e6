#!/usr/bin/env -S python3 -I -S -B
"""Condition NvlinkDomainFault: the driver of a GPU asks for something around the GPU: of its jobs, or of other nodes.

  recover IMEX domain   the domain has lost a member: find the node that failed first (GpuLost, GpuXid, not Ready), mend
                        it, then restart nvidia-imex on every node of the domain. On racks whose nodes share NVLink
                        (GB200 NVL72 and the like) all nodes of a domain say so together; nothing is wrong with this one
  drain P2P             this GPU has a fault for which all its traffic with peers is to end: end the jobs that use it
                        together with others, switch UVM persistence mode off, and ask again (nvidia-smi -q, GPU
                        Recovery Action): then the driver says what the GPU needs, or nothing more

Which nodes are of one domain: label nvidia.com/gpu.clique (GPU feature discovery), by which the shipped policy groups
them. Serial number and UUID are in <state>/evidence/nvlink_domain.json.

Two runs in a row must find it asked for; at first sight it is "cannot tell". A driver that does not know the field
(before 570) is fine, with a word on that. A GPU that is lost and an NVML that does not answer are "cannot tell":
GpuLost tells of them. "no permission" is cured by running as root. Another code with "does not report its ...", or NVML
that cannot be asked or makes no sense: --explain shows what it says; driver and pynvml (nvidia-ml-py) must fit each
other.

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
from nodelib.nvml.recovery import IMEX, P2P
from nodelib.nvml.wishes import Concern, detector

CONCERN = Concern(
    "nvlink_domain",
    "NvlinkDomainFault",
    frozenset({IMEX, P2P}),
    fine="the driver asks nothing of the NVLink domain",
)
DETECTOR = detector(CONCERN)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
