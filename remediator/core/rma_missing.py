"""What a vendor will ask for and an RMA package does not have, and how to get it. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from remediator.core.rma import EVENT_LOG, REPORT, Part, RmaClaim, boards


class Missing(NamedTuple):
    """What the package lacks, and how to get it."""

    what: str
    how: str


BY_HAND = "docs/operations.md#running-one-by-hand"
QUERY = "nvidia-smi --query-gpu=pci.bus_id,serial,uuid,vbios_version,inforom.img --format=csv"
OF_PART: Mapping[Part, tuple[Missing, ...]] = {
    Part.GPU: (
        Missing("log of the field diagnostic", "drain the node, then run the program that the vendor gives you for it"),
    ),
    Part.DISK: (Missing("serial number, firmware and SMART data of the disk", "on the node: smartctl -x DEVICE"),),
    Part.MEMORY: (
        Missing("slot, serial and part number of the DIMM", "on the node: dmidecode -t memory"),
        Missing("result of the memory test", "drain the node, then run the test of its firmware"),
    ),
    Part.CARD: (
        Missing("serial number and firmware of the card", "on the node: mlxlink -d DEVICE -m -c, or ethtool -m DEVICE"),
    ),
    Part.CHASSIS: (
        Missing("serial and part number of what failed", "on the node: ipmitool fru print; or its label"),
        Missing("readings of the sensors", "on the node: ipmitool sdr elist"),
    ),
    Part.MACHINE: (),
}


def missing(claim: RmaClaim) -> tuple[Missing, ...]:
    """What a vendor will ask for and the package does not have."""
    return (*_of_evidence(claim), *_of_machine(claim), *_of_boards(claim), *_of_bundle(claim), *OF_PART[claim.part])


def _of_evidence(claim: RmaClaim) -> Iterator[Missing]:
    if not claim.evidence:
        yield Missing("evidence of the case", f"run collect-diagnostics on the node: {BY_HAND}")


def _of_machine(claim: RmaClaim) -> Iterator[Missing]:
    if not claim.machine.get("serial"):
        yield Missing("serial number of the machine", "on the node: dmidecode -t system; or the label on its case")


def _of_boards(claim: RmaClaim) -> Iterator[Missing]:
    if claim.part is not Part.GPU:
        return
    parts = boards(claim)
    if not claim.case.gpus:
        yield Missing("which GPU is at fault", "the case names none; compare the Condition's text with: nvidia-smi -L")
    if not parts or not all(board.serial for board in parts):
        yield Missing("serial number of the board", f"on the node: {QUERY}; of one that is lost: its label")
    if not parts or not all(board.part for board in parts):
        yield Missing("part number of the board", "on the node: nvidia-smi -q | grep 'Part Number'; or its label")
    if not parts or not all(board.inforom for board in parts):
        yield Missing("version of the InfoROM", f"on the node: {QUERY}")


def _of_bundle(claim: RmaClaim) -> Iterator[Missing]:
    if claim.bundle is None:
        kept = f"fetch {claim.place}" if claim.place else f"none was kept; run collect-diagnostics: {BY_HAND}"
        yield Missing("bundle of the case", f"{kept}; then give it with --bundle FILE")
    if claim.is_another_bundle:
        how = (
            f"the file has another sha256 than the case says: fetch {claim.place} again, unless you collected it later"
        )
        yield Missing("bundle of the case", how)
    files, lacks = (claim.bundle.files, claim.bundle.lacks) if claim.bundle else ({}, {})
    if claim.part is Part.GPU and REPORT not in files:
        how = "drain the node, then on it: nvidia-bug-report.sh --safe-mode"
        yield Missing("nvidia-bug-report", _because(lacks.get(REPORT, ""), how))
    if EVENT_LOG not in files:
        how = "on the node: ipmitool sel elist; or the log of its BMC's web page"
        yield Missing("event log of the BMC (SEL)", _because(lacks.get(EVENT_LOG, ""), how))


def _because(reason: str, how: str) -> str:
    return f"{how} (the bundle says: {reason})" if reason else how
