"""What the node's own nvidia-smi says of its GPUs: who needs a reset, who needs more, who is in use, what links them.

A GPU goes by the PCI address that nvidia-smi prints (00000000:1C:00.0). A question that this driver does not know, or a
value that says nothing, is no evidence. No answer at all is: Refused, for a driver that hangs does not take a reset.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.commands import CommandOutput, run

ASK_SECONDS = 100.0  # two calls to a GPU's own processor, each given up by the driver after 45 s
FORMAT = "--format=csv,noheader,nounits"
GONE = re.compile(r"GPU is lost|fallen off the bus|Unable to determine the device handle", re.IGNORECASE)
ADDRESS = re.compile(r"(?:[0-9a-f]{4}){1,2}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
NOTHING = ("", "n/a", "not supported", "none", "no", "0", "err!")


class SmiGpu(NamedTuple):
    """One GPU. `needs`: why a reset would help; `beyond`: why a reset cannot.

    `asks`: what is to be done around it, which is no reason for a reset and none against one. `elsewhere`: what is to
    be done to other nodes.
    """

    address: str
    uuid: str
    needs: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    def is_called(self, name: str) -> bool:
        """Whether `name` means this GPU: its uuid, or its PCI address in any of the usual spellings."""
        return name.lower() == self.uuid.lower() or plain(name) == plain(self.address)


class Holder(NamedTuple):
    """A process that computes on the GPU of this address."""

    address: str
    pid: str
    name: str


def plain(address: str) -> str:
    """Return a PCI address as the kernel spells it; anything else as it is.

    >>> plain("00000000:1C:00.0")
    '0000:1c:00.0'
    """
    match = ADDRESS.fullmatch(address)
    return (address if not match else address[-12:]).lower()


def waiting(line: str) -> str:
    """Return the address of a GPU that is told of only as waiting for a reset; "" for any other line."""
    match = ADDRESS.search(line) if "device handle" in line and "requires reset" in line else None
    return f"0000{match[0][-12:]}".upper() if match else ""


class Smi:
    """nvidia-smi on this node; with `driver_root` the one of a driver that lives in a folder of its own.

    `own`: the command that it is on the node itself.
    """

    def __init__(self, driver_root: str = "", own: tuple[str, ...] = ("nvidia-smi",)):
        self.command = ("chroot", driver_root, "nvidia-smi") if driver_root else own

    def ask(self, *options: str) -> CommandOutput:
        """Run it. Raises Refused when the driver does not answer or has lost a GPU."""
        result = run((*self.command, *options), ASK_SECONDS)
        if result.code is None:
            raise Refused(f"nvidia-smi does not answer within {ASK_SECONDS:g} s, so it will not reset: reboot the node")
        lost = next((line.strip() for line in result.text.splitlines() if GONE.search(line) and not waiting(line)), "")
        if lost:
            raise Refused(f"a reset cannot help, reboot the node: nvidia-smi says: {lost}")
        return result

    def rows(self, query: str) -> Iterator[list[str]]:
        """Yield the cells of each row of one query, the PCI address first; nothing when it does not know the query."""
        for line in self.ask(query, FORMAT).text.splitlines():
            cells = [cell.strip() for cell in line.split(",")]
            if ADDRESS.fullmatch(cells[0]) and len(cells) == query.count(",") + 1:
                yield cells


# Recovery actions of the driver that are a reset; any other is more than that.
RESETS = ("reset", "gpu reset", "gpu reset required", "drain and reset")
# Words of those that are neither: a fault of this GPU for which all traffic with its peers is to end, after which the
# driver asks for something else; and what other nodes of an NVLink domain need.
PEERS, DOMAIN = "p2p", "imex"
YES = ("yes", "1", "pending")


def _uncorrected(word: str) -> str:
    return f"{word} uncorrected memory errors" if word.isdecimal() else ""


ACTION = "--query-gpu=pci.bus_id,gpu_recovery_action"
# What shows a need: the query, and what a word that it is answered with means, "" for nothing. Newer drivers know more.
SIGNS: Mapping[str, Callable[[str], str]] = {
    "--query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total": _uncorrected,
    "--query-remapped-rows=gpu_bus_id,remapped_rows.pending": lambda word: "row remap pending" if word in YES else "",
    "--query-gpu=pci.bus_id,reset_status.reset_required": lambda word: "GPU requires reset" if word in YES else "",
    ACTION: lambda word: f"the driver asks for: {word}",
}


def look(smi: Smi) -> list[SmiGpu]:
    """Return every GPU that the driver lists, with its needs. Raises Refused when it lists none."""
    result = smi.ask("--query-gpu=pci.bus_id,uuid", FORMAT)
    rows = [[cell.strip() for cell in line.split(",")] for line in result.text.splitlines()]
    gpus = [SmiGpu(cells[0], cells[1]) for cells in rows if ADDRESS.fullmatch(cells[0]) and len(cells) == 2]
    silent = [
        SmiGpu(address, "", ("GPU requires reset",)) for address in map(waiting, result.text.splitlines()) if address
    ]
    if not gpus and not silent:
        raise Refused(f"nvidia-smi lists no GPU (exit {result.code}): {result.last}")
    answers = {query: dict(smi.rows(query)) for query in SIGNS}
    answers[ACTION] = answers[ACTION] or recovery_actions(smi.ask("-q").text)
    known = [judge(gpu, {query: values.get(gpu.address, "") for query, values in answers.items()}) for gpu in gpus]
    return sorted((*known, *silent), key=lambda gpu: gpu.address)  # the driver counts them in this order


def recovery_actions(report: str) -> dict[str, str]:
    """Return the driver's recovery action by GPU from the text of `nvidia-smi -q`, for one that does not query it.

    >>> recovery_actions("GPU 00000000:1C:00.0\\n    Product Name : A\\n    GPU Recovery Action : Reboot\\n")
    {'00000000:1C:00.0': 'Reboot'}
    """
    parts = re.split(rf"^GPU ({ADDRESS.pattern})[ \t]*$", report, flags=re.MULTILINE | re.IGNORECASE)
    matches = [re.search(r"^\s*GPU Recovery Action\s*:\s*(.*?)\s*$", text, re.MULTILINE) for text in parts[2::2]]
    return {address: match[1] for address, match in zip(parts[1::2], matches, strict=True) if match}


def judge(gpu: SmiGpu, values: Mapping[str, str]) -> SmiGpu:
    """Return `gpu` with what the answers to SIGNS say of it. Values come as nvidia-smi prints them."""
    needs, beyond, asks, elsewhere = [], [], [], []
    for query, value in values.items():
        word = value.strip("[] ").lower()
        if "requires reset" in word:
            needs.append("GPU requires reset")
        elif "lost" in word:
            beyond.append("GPU is lost")
        elif value.startswith("[") or word in NOTHING or "deprecated" in word:
            continue  # a failure of this one question, or one that this driver answers no more
        elif query == ACTION and PEERS in word:
            asks.append(SIGNS[query](value))
        elif query == ACTION and DOMAIN in word:
            elsewhere.append(SIGNS[query](value))
        elif query == ACTION and word not in RESETS:
            beyond.append(SIGNS[query](word))
        else:
            needs.append(SIGNS[query](word))
    once = tuple(dict.fromkeys(filter(None, needs)))
    return gpu._replace(needs=once, beyond=tuple(dict.fromkeys(beyond)), asks=tuple(asks), elsewhere=tuple(elsewhere))


def holders(smi: Smi) -> list[Holder]:
    """Return who computes on which GPU. Raises Refused when that cannot be determined."""
    query = "--query-compute-apps=gpu_bus_id,pid,process_name"
    result = smi.ask(query, FORMAT)
    if result.code:
        raise Refused(f"cannot determine who uses the GPUs (exit {result.code}): {result.last}")
    rows = [[cell.strip() for cell in line.split(",", 2)] for line in result.text.splitlines()]
    return [Holder(*cells) for cells in rows if len(cells) == 3 and ADDRESS.fullmatch(cells[0])]


def persistent(smi: Smi) -> set[str]:
    """Return the addresses of the GPUs in persistence mode, which counts as a use of the GPU."""
    return {cells[0] for cells in smi.rows("--query-gpu=pci.bus_id,persistence_mode") if cells[1] == "Enabled"}


def links(matrix: str) -> list[set[int]]:
    """Return, for each GPU by index, which others NVLink joins to it, from the text of `nvidia-smi topo -m`.

    >>> links("\\tGPU0\\tGPU1\\tGPU2\\nGPU0\\t X \\tNV4\\tSYS\\nGPU1\\tNV4\\t X \\tSYS\\nGPU2\\tSYS\\tSYS\\t X \\n")
    [{1}, {0}, set()]
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", matrix)
    rows = [line.split("\t") for line in text.splitlines() if re.match(r"GPU\d+\t", line)]
    return [{other for other, cell in enumerate(row[1 : len(rows) + 1]) if re.match(r"\s*NV\d", cell)} for row in rows]
