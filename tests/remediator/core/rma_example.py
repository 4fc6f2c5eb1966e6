"""A GPU whose memory is worn out, as a vendor is told of it: docs/rma.md shows it, and tests change parts of it."""

import json
from datetime import UTC, datetime, timedelta

from remediator.core.case import Attempt, AttemptOutcome, Case, PastCase, Phase, Trigger
from remediator.core.gpus import gpus_of
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.rma import RmaClaim, read_bundle

NOW = datetime(2026, 11, 26, 14, 30, tzinfo=UTC)
SINCE = NOW - timedelta(hours=3)
SERIAL, UUID, SLOT = "1563521020401", "GPU-9f3c01ab-77aa-1234-0c55-5d1e0c0e6f10", "0000:3b:00.0"
TEXT = f"{SLOT} (GPU-9f3c01ab, serial {SERIAL}): row remapping has failed"
GPU = {"address": SLOT, "index": 3, "uuid": UUID, "serial": SERIAL, "part": "692-2G520-0200-000"}
OTHER = {"address": "0000:5d:00.0", "index": 4, "uuid": "GPU-1b2c3d4e-0000", "serial": "1563521020402"}
MORE = {"Name": "NVIDIA H100 80GB HBM3", "VbiosVersion": "96.00.89.00.01", "RemappedRows": "[0, 8, 0, 1]"}
REPORT, EVENT_LOG = b"\x1f\x8b report", b"1 | 11/26/2026 | 11:30:02 | Critical Interrupt | Bus Fatal Error | Asserted\n"
FILES = {
    "nvidia-bug-report.log.gz": REPORT,
    "nvidia-smi.txt": b"Attached GPUs : 8\n",
    "sel.txt": EVENT_LOG,
    "nvml.json": json.dumps([GPU | {"more": MORE | {"MigMode": "NVMLError_NotSupported: Not Supported"}}]).encode(),
    "kernel.log": b"NVRM: Xid (PCI:0000:3b:00): 64\n",
    "proc/driver/nvidia/version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\nGCC version: 13\n",
    "proc/meminfo": b"MemTotal: 2113 GB\n",
}
EVIDENCE = {
    "bootID": "b1",
    "kernel": "6.8.0-64-generic",
    "machine": {"vendor": "Supermicro", "model": "SYS-821GE-TNHR", "serial": "A512345X4C03917", "bios": "2.4"},
    "detectors": [{"detector": "gpu_worn", "condition": "GpuMemoryWorn", "gpus": [{"address": SLOT}]}],
    "gpus": [GPU | {"inforom": "G520.0200.00.05"}, OTHER],
    "bundle": "https://s3.example.com/bundles/gpu-17/gpu-17-gpu-memory-worn-3f9c01ab7e.tar.gz",
}
CASE = Case(
    name="gpu-17-gpu-memory-worn-3f9c01ab7e",
    uid="c1",
    node="gpu-17",
    node_uid="n1",
    policy="gpu-memory-worn",
    trigger=Trigger("GpuMemoryWorn", "True", "GpuRemapFailed", TEXT, SINCE),
    created=SINCE,
    phase=Phase.ESCALATED,
    attempts=(
        Attempt(
            *("gpu-17-cordon-81d2e7a09c", "cordon", 0, SINCE, SINCE, AttemptOutcome.SUCCEEDED, "gpu-17 is cordoned"),
        ),
    ),
    gpus=gpus_of(EVIDENCE, "GpuMemoryWorn", TEXT),
)
PAST = PastCase(
    "gpu-12-gpu-ecc-0c55aa1234", "gpu-12", "gpu-ecc", NOW - timedelta(days=20), ("reset-gpu",), Phase.RECOVERED
)
NODE = Node(
    name="gpu-17",
    uid="n1",
    labels={"topology.kubernetes.io/rack": "r12", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    conditions={
        "Ready": NodeCondition("Ready", Status.TRUE, "KubeletReady", SINCE, NOW),
        "GpuLost": NodeCondition("GpuLost", Status.FALSE, "GpusPresent", SINCE, NOW),
        "GpuMemoryWorn": NodeCondition("GpuMemoryWorn", Status.TRUE, "GpuRemapFailed", SINCE, NOW, TEXT),
    },
)
CLAIM = RmaClaim(CASE, EVIDENCE, NODE, (PAST,), read_bundle(FILES))
