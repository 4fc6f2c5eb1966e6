"""`remediator rma`: what a vendor asks for when a part is to be replaced, in one file, and what of it is missing."""

import asyncio
import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import msgspec
import typer

from remediator.cli.common import Kubeconfig, amount, app, asking, out, refusal
from remediator.clock import SYSTEM
from remediator.core import lemon, names
from remediator.core.case import Case
from remediator.core.rma import READ, Bundle, RmaClaim, read_bundle
from remediator.core.rma_missing import missing
from remediator.core.rma_readme import files, readme, summary

if TYPE_CHECKING:
    from remediator.core.node import Node
    from remediator.kube.wire.client import Client

MiB = 1 << 20
LARGEST, UNPACKED, LARGEST_FILE, MOST_FILES = 256 * MiB, 1024 * MiB, 128 * MiB, 4096  # of a bundle that is read


@app.command()
def rma(
    what: Annotated[str, typer.Argument(metavar="NODE|CASE", help="A case, or a node: then its newest case.")],
    bundle: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="The bundle of the case, fetched from where its evidence says."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(dir_okay=False, help="The file to write. Left out: rma-CASE.tar.gz in this folder.")
    ] = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Write what a vendor asks for when a part is to be replaced. Reads the cluster, changes nothing there."""
    given = _read(bundle) if bundle is not None else None
    raise typer.Exit(asyncio.run(_rma(what, given, output, kubeconfig)))


async def _rma(what: str, bundle: Bundle | None, output: Path | None, kubeconfig: Path | None) -> int:
    now = SYSTEM.now()
    async with asking(kubeconfig, forbidden="the role remediator-viewer reads cases and nodes") as client:
        claim = await _claim(client, what, bundle)
    path = output or Path(f"rma-{claim.case.name}.tar.gz")
    _write(path, f"rma-{claim.case.name}", _package(claim, now), now)
    out.print(f"{path}: {summary(claim)}; {amount(len(claim.earlier), 'earlier case')}")
    for lack in missing(claim):
        out.print(f"  missing: {lack.what}: {lack.how}")
    return 0


async def _claim(client: "Client", what: str, bundle: Bundle | None) -> RmaClaim:
    """What is known of the case. Raises Exit where none is meant."""
    from remediator.kube.informers import Informers

    informers = Informers(client, SYSTEM, names.Namespaces())
    cases, memory = informers.cases, informers.fault_memory
    await informers.read()
    case = cases.get(what) or _newest(cases.by("node", what))
    if case is None:
        raise refusal(await _none(client, what, [case.name for case in cases]))
    if case.unreadable:
        raise refusal(f"case {case.name} cannot be read: a newer version wrote it; use the remediator of that version")
    alike = [*cases.by("node", case.node), *(other for others in memory.of_gpus(case).values() for other in others)]
    others = {other.uid: other for other in alike if other.uid != case.uid and lemon.did_something(other)}
    evidence, node = await _evidence(client, case), await _node(client, case.node)
    return RmaClaim(case, evidence, node, lemon.history(others.values()), bundle)


def _newest(cases: Iterable[Case]) -> Case | None:
    """Of the cases of a node the newest one that is open, else the newest that did something, else the newest."""
    return max(cases, key=lambda case: (case.open, bool(case.tries), case.created), default=None)


async def _none(client: "Client", what: str, cases: Iterable[str]) -> str:
    from remediator.cli.nearest import hint
    from remediator.kube.api.builtin import NODE

    nodes, _ = await client.heads(NODE)
    if what in nodes:
        return f"node {what} has had no case: a package is about one; `remediator explain {what}` says how it is"
    return f"no case and no node {what} in the cluster{hint(what, [*nodes, *cases])}"


async def _evidence(client: "Client", case: Case) -> Mapping[str, object]:
    """What the case keeps of it, also when it is over."""
    from remediator.kube import api

    return (await client.get(api.CASE, case.name)).status.evidence


async def _node(client: "Client", name: str) -> "Node | None":
    from remediator.kube.api import builtin, decode
    from remediator.kube.wire import errors

    try:
        return decode.node(await client.get(builtin.NODE, name))
    except errors.NotFound:
        return None


def _read(path: Path) -> Bundle:
    """The files of a bundle that a vendor is sent. Raises Exit for what is no bundle, or too large to be one."""
    if path.stat().st_size > LARGEST:
        raise refusal(f"--bundle {path} has more than {LARGEST // MiB} MiB: give a bundle of collect-diagnostics")
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        with gzip.open(path) as packed, tarfile.open(fileobj=_Unpacked(packed), mode="r:") as tar:
            return read_bundle(dict(_members(tar)), sha256)
    except (tarfile.TarError, EOFError, OSError, RecursionError, ValueError, zlib.error) as wrong:
        why = f"--bundle {path} cannot be read as a bundle ({wrong})"
        raise refusal(f"{why}: give the .tar.gz that collect-diagnostics has written, fetched as it was") from None


class _Unpacked(io.RawIOBase):
    """What comes out of gzip, as far as a bundle may go.

    Root on the node has written it: a header may say that a name has gigabytes, and a small file hold them.
    """

    def __init__(self, packed: gzip.GzipFile) -> None:
        self._packed = packed

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises ValueError where more are wanted than a file of a bundle has."""
        self._bound(self._packed.tell() + size)
        if not 0 <= size <= LARGEST_FILE:
            raise ValueError(f"a part of it has more than {LARGEST_FILE // MiB} MiB")
        return self._packed.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go there."""
        self._bound(offset)
        return self._packed.seek(offset, whence)

    def tell(self) -> int:
        """Where that is."""
        return self._packed.tell()

    def _bound(self, offset: int) -> None:
        if offset > UNPACKED:
            raise ValueError(f"it holds more than {UNPACKED // MiB} MiB")


def _members(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Its files that are taken, by their fixed names: nothing is written where the archive says."""
    size = 0
    for count, member in enumerate(tar, 1):
        size += member.size
        if count > MOST_FILES or size > UNPACKED:
            raise ValueError(f"it holds more than {MOST_FILES} files or {UNPACKED // MiB} MiB")
        if member.name not in READ or not member.isfile():
            continue
        if member.size > LARGEST_FILE:
            raise ValueError(f"{member.name} has more than {LARGEST_FILE // MiB} MiB")
        file = tar.extractfile(member)
        yield member.name, file.read() if file else b""


def _package(claim: RmaClaim, now: datetime) -> dict[str, bytes]:
    """The files of the package by name, the README first."""
    conditions = claim.node.conditions if claim.node else {}
    content = {
        **(claim.bundle.files if claim.bundle else {}),
        "evidence.json": _json(claim.evidence),
        "conditions.json": _json([conditions[name] for name in sorted(conditions)]),
    }
    return {"README.txt": readme(claim, now).encode(), **{name: content[name] for name in files(claim)}}


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _write(path: Path, folder: str, content: Mapping[str, bytes], now: datetime) -> None:
    """One file, which only its owner may read. Raises Exit where there is one already, or it cannot be written."""
    try:
        path.touch(0o600, exist_ok=False)
        with path.open("wb") as file:
            _tar(file, folder, content, now)
    except FileExistsError:
        raise refusal(f"--output {path} is there already: give another name, or delete it") from None
    except OSError as wrong:
        raise refusal(f"--output {path} cannot be written ({wrong.strerror}): give another place") from None


def _tar(file: IO[bytes], folder: str, content: Mapping[str, bytes], now: datetime) -> None:
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, text in content.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size, info.mtime, info.mode = len(text), int(now.timestamp()), 0o600
            tar.addfile(info, io.BytesIO(text))
