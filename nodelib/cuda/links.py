"""How fast data goes between host and GPU, and between two GPUs, and whether it arrives as it was sent. No judging."""

import ctypes
import os
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

from nodelib.cuda.driver_api import Broken, Context, CudaDevice
from nodelib.cuda.work import MASKS, Say

SIZE = 64 << 20  # bytes of one copy, at most
COPIES, TRIES = 4, 3  # copies in one measurement; the best of some measurements counts


def measure(devices: Sequence[CudaDevice], megabytes: int, say: Say) -> None:
    """Tell the speed of each link, one after the other: they may share a switch. Raises Broken with what is wrong."""
    contexts: list[Context] = []
    size = min(SIZE, megabytes << 20)
    for device in devices:
        say(at=f"context of {device.address}")
        contexts.append(device.open())
    for context in contexts:
        say(at=f"host and {context.device.address}")
        _stay_near(context.device.address)
        _with_host(context, size, say)
    for source, target in permutations(contexts, 2):
        say(at=f"{source.device.address} to {target.device.address}")
        _between(source, target, size, say)


def _with_host(context: Context, size: int, say: Say) -> None:
    context.use()
    memory, there, back = context.allocate(size), context.pinned(size), context.pinned(size)
    pattern = (MASKS[0].to_bytes(8, "little") + MASKS[1].to_bytes(8, "little") + bytes(range(240))) * (size // 256)
    ctypes.memmove(there, pattern, size)
    to = _best(context, size, lambda: context.write(memory, there, size))
    out = _best(context, size, lambda: context.read_into(back, memory, size))
    if ctypes.string_at(back, size) != pattern:
        raise Broken(f"{context.device.address}: what goes to it over PCIe does not come back as it was", "link")
    say(address=context.device.address, to=to, out=out)
    context.free(memory)
    context.unpin(there)
    context.unpin(back)


def _between(source: Context, target: Context, size: int, say: Say) -> None:
    names = {"source": source.device.address, "target": target.device.address}
    if not source.device.reaches(target.device):
        say(**names, speed=0.0)
        return
    target.use()
    arrived, result = target.allocate(size), target.upload(bytes(16) + b"\xff" * 8)
    source.use()
    source.join(target)
    memory = source.allocate(size)
    pairs, mask = ctypes.c_uint64(size // 16), ctypes.c_uint64(MASKS[0])
    source.launch("fill", source.blocks, memory, pairs, mask)
    speed = _best(source, size, lambda: source.send(arrived, target, memory, size))
    source.free(memory)
    target.use()
    target.launch("check", target.blocks, arrived, pairs, mask, result)
    target.wait()
    if any(target.read(result, 8)):
        raise Broken(f"what {names['source']} sends to {names['target']} does not arrive as it was", "link")
    target.free(arrived, result)
    say(**names, speed=speed)


def _best(context: Context, size: int, copy: Callable[[], None]) -> float:
    """Return GB/s."""

    def copies() -> None:
        for _ in range(COPIES):
            copy()

    return round(COPIES * size / min(context.seconds(copies) for _ in range(TRIES)) / 1e9, 1)


def _stay_near(address: str) -> None:
    """Run where this GPU is near: memory is had from there. Where that cannot be, links look slower than they are."""
    try:
        listed = Path(f"/sys/bus/pci/devices/{address}/local_cpulist").read_text().strip()
        os.sched_setaffinity(0, cpus(listed))
    except (OSError, ValueError):
        return


def cpus(listed: str) -> set[int]:
    """Return the processors of a list of the kernel.

    >>> sorted(cpus("0-2,8"))
    [0, 1, 2, 8]
    """
    ranges = [part.partition("-") for part in listed.split(",") if part]
    return {cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}
