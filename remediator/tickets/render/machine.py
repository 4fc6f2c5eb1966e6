"""About the machine of an issue: where it is, its GPUs, what was lost. "" if there is nothing to show."""

from collections.abc import Iterable

from remediator.core.case import Case
from remediator.core.jobs_at_stake import BlastRadius
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.render.facts import IssueFacts, Outage
from remediator.tickets.render.markdown import code, moment, table

GPUS, OUTAGES, BUNDLES = 16, 10, 4


def machine(facts: IssueFacts) -> str:
    """Where the node is, and the GPUs that this is about, as somebody must find them who stands before the rack."""
    place = ", ".join(f"{word} {code(value, 64)}" for word, value in facts.node)
    rows = [(code(gpu.uuid, 96), code(gpu.serial, 96), code(gpu.slot, 32)) for gpu in facts.gpus]
    gpus = table(("GPU", "serial number of its board", "slot (PCI address)"), rows, GPUS) if rows else ""
    bundles = ", ".join(code(bundle, 512) for bundle in facts.bundles[:BUNDLES])
    parts = [place and f"Node: {place}.", gpus, bundles and f"Bundle of evidence: {bundles}."]
    return "\n\n".join(["### Machine", *(part for part in parts if part)]) if any(parts) else ""


def lost(cases: Iterable[LinkedCase], facts: IssueFacts) -> str:
    """Jobs that were hit, and GPU-hours: of work that was done, and of GPUs that were out of service since."""
    hit = [linked.case.blast for linked in cases if linked.case.blast is not None and _hit(linked.case)]
    lines = [line for blast in hit if (line := _work(blast))]
    lines += [_outage(outage) for outage in facts.outages[:OUTAGES]]
    more = len(facts.outages) - OUTAGES
    lines += [f"- … and {more} more nodes"] if more > 0 else []
    return "\n".join(["### Lost so far", "", *lines]) if lines else ""


def _hit(case: Case) -> bool:
    """Whether something was done to the node by now, so that what worked on it has ended."""
    return bool(case.tries)


def _work(blast: BlastRadius) -> str:
    if blast.unknown or not blast.count:
        return ""
    jobs = "1 job was hit" if blast.count == 1 else f"{blast.count} jobs were hit"
    return f"- {jobs}: {blast.gpu_hours} GPU-hours of their work (seen at {moment(blast.at)})"


def _outage(outage: Outage) -> str:
    span = f"{outage.gpus} GPUs of {code(outage.node)} out of service since {moment(outage.since)}"
    if outage.over:
        return f"- {outage.gpu_hours} GPU-hours: {span} until {moment(outage.until)}"
    counted = f"counted until {moment(outage.until)}" if outage.until > outage.since else "for less than an hour"
    return f"- {outage.gpu_hours} GPU-hours: {span}, {counted}"
