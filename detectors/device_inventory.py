#!/usr/bin/env -S python3 -I -S -B
"""Condition DeviceInventory: what there is on this node, counted kind by kind. True means: it was counted.

The controller keeps the most that a node ever had in its NodeInventory, and says by the Condition DevicesMissing what
a node lacks of that: so a device that does not come back from a reboot, or comes back with a slower link, is missed,
though nothing on the node remembers it. The line, for example `gpus=8 nics=9 ports=8 port-rates=3200 nic-rates=25
nvme=8 pcie-lanes=272 cpus=192 ram=2048 mounts=3/3 addresses=2 routes=1 digest=0123456789ab`:

  gpus         NVIDIA GPUs on the PCI bus; one that has fallen off is not counted
  nics         network cards on the PCI bus, without virtual functions
  ports        ports of RDMA devices
  port-rates   Gb/s of these ports together; one that is not active has 0
  nic-rates    Gb/s of the physical Ethernet interfaces together; not where a card with a driver has none here: a Pod
               may have it
  nvme         NVMe disks
  pcie-lanes   lanes of the PCIe links of GPUs, NVSwitches, RDMA cards, NVMe disks and the switches above them, all
               together; not their speed, for idle GPUs lower it
  cpus         processors that are online
  ram          GiB, by the blocks that the kernel lists, without those of NUMA nodes that have no processors: a driver
               adds the memory of a GPU to them, and takes it away
  mounts       of the mounts that are declared those that are there: /etc/fstab (without noauto), mount units of systemd
               that a target wants, and --mount; without those of NFS
  nfs-mounts   of those of them that are NFS those that are there
  addresses    of physical interfaces and what is built on them, IPv4 and IPv6 each once
  routes       default routes, IPv4 and IPv6
  digest       changes where a GPU, card or disk is another one

A kind that a node has not is left out. One that could not be read now has a ? for its number (`gpus=?`): the node lacks
none of it, and gives no proof of it either. --explain says why. Nothing is remembered here.

Exit codes: 1 counted, 2 cannot tell (nothing could be counted).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.inventory import count, line


def check(run: Run[Nothing]) -> Findings:
    """One count."""
    kinds, why = count(run.options.proc, run.options.sys, run.options.mount)
    counts = any(kind.count is not None for kind in kinds.values())
    verdict = Verdict.FAULT if counts else Verdict.UNKNOWN  # FAULT is True: it has counted
    found = line(kinds) if counts else f"nothing can be counted: {next(iter(why.values()), '')}"
    shown = {name: f"{kind} {', '.join(kind.which)}".strip() for name, kind in kinds.items()}
    return Findings(verdict, found, explain=lambda: explain(shown, why, verdict))


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--mount", action="append", default=[], metavar="FOLDER", help="a mount that must be there; may be repeated"
    )
    return options.parse_args(arguments)


DETECTOR = Detector("device_inventory", "DeviceInventory", check)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
