"""What can be said of a node, one word for each thing, and the texts of refusals."""

from collections.abc import Mapping
from enum import StrEnum

from remediator.scheduler.mps import Mps
from remediator.scheduler.shared.cards import CardsReason


class VerdictReason(StrEnum):
    """One word for each thing that can be said of a node; the same in answers, metrics and `explain`."""

    FIT = "Fit"
    REPAIRED = "RecentlyRepaired"
    FEW_FAILURES = "FewFailures"
    SOME_FAILURES = "SomeFailures"
    MANY_FAILURES = "ManyFailures"
    HEALTH_UNKNOWN = "HealthUnknown"
    DETECTORS_SILENT = "DetectorsSilent"
    UNKNOWN_NODE = "UnknownNode"
    WAITING = "WaitingForRepair"
    ONLY_SCORED = "UnhealthyOnlyScored"
    NO_FREE_GPUS = "NoFreeGpus"
    TOO_FEW_GPUS = "TooFewGpus"
    OTHER_ATTRIBUTES = "OtherAttributes"
    ATTRIBUTES_UNKNOWN = "AttributesUnknown"
    ATTRIBUTES_MALFORMED = "AttributesMalformed"
    UNPROVEN = "HealthUnproven"
    NO_GPU_MEMORY = CardsReason.NO_ROOM.value
    GPU_CARDS_TOO_SMALL = CardsReason.TOO_SMALL.value
    GPU_CARDS_UNKNOWN = CardsReason.UNKNOWN.value
    SHARED_AND_WHOLE = CardsReason.WHOLE.value
    GPU_MEMORY_MALFORMED = CardsReason.MALFORMED.value
    MPS_NOT_OFFERED = "MpsNotOffered"
    MPS_TOO_OLD = Mps.TOO_OLD.value
    MPS_UNHEALTHY = Mps.UNHEALTHY.value
    UNHEALTHY = "Unhealthy"
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    CLAIMED = "UnderRepair"
    QUARANTINED = "Quarantined"


# What the scheduler shows of a refused node. It counts nodes by text and joins the texts with commas, so no text may
# name a node or a number, or hold a comma. After that of a malformed annotation comes the mistake, one for all nodes.
UNRESOLVABLE: Mapping[VerdictReason, str] = {  # evicting Pods would not help
    VerdictReason.QUARANTINED: "node(s) quarantined by Remediator until a person releases them",
    VerdictReason.CLAIMED: "node(s) under repair by Remediator",
    VerdictReason.CORDONED: "node(s) cordoned by Remediator",
    VerdictReason.NOT_READY: "node(s) not ready",
    VerdictReason.UNHEALTHY: "node(s) found unhealthy by Remediator",
    VerdictReason.TOO_FEW_GPUS: "node(s) with too few GPUs in all",
    VerdictReason.OTHER_ATTRIBUTES: "node(s) without GPUs of the attributes that the Pod requires",
    VerdictReason.ATTRIBUTES_UNKNOWN: "node(s) whose labels do not say the GPU attributes that the Pod requires",
    VerdictReason.ATTRIBUTES_MALFORMED: "node(s) refused because an annotation of the Pod cannot be read",
    VerdictReason.UNPROVEN: "node(s) not proven to be healthy as the Pod requires",
    VerdictReason.GPU_CARDS_TOO_SMALL: "node(s) whose GPUs have too little memory in all",
    VerdictReason.GPU_CARDS_UNKNOWN: "node(s) of which nobody can tell what memory of their GPUs is free",
    VerdictReason.SHARED_AND_WHOLE: "node(s) that offer the same GPUs whole and by memory",
    VerdictReason.MPS_NOT_OFFERED: "node(s) that do not offer MPS as the Pod requires",
    VerdictReason.MPS_TOO_OLD: "node(s) whose GPUs are too old for the limits of MPS",
    VerdictReason.MPS_UNHEALTHY: "node(s) whose MPS daemon is not healthy",
    VerdictReason.GPU_MEMORY_MALFORMED: "node(s) refused because the GPU memory of the Pod cannot be split so",
}
HEALTH = frozenset({VerdictReason.NOT_READY, VerdictReason.UNHEALTHY})  # refused only while health refuses
HISTORY = (VerdictReason.FIT, VerdictReason.FEW_FAILURES, VerdictReason.SOME_FAILURES, VerdictReason.MANY_FAILURES)
WELL = frozenset({*HISTORY, VerdictReason.REPAIRED})  # detectors show that nothing is wrong now
FAILED: Mapping[VerdictReason, str] = {
    VerdictReason.NO_FREE_GPUS: "node(s) with too few free GPUs",
    VerdictReason.NO_GPU_MEMORY: "node(s) without enough free memory on one GPU",
}
