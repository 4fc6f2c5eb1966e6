"""Everything that was found, whole, as one tar: kept in a folder of the node, or sent to an object store.

Both may hang, on a disk that is sick or a network that is gone: a child does it, and is left behind if it must be.
"""

import http.client
import io
import os
import re
import signal
import ssl
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from nodelib.net.answers import why

KEPT = 5  # bundles of one node
LEFT = 1 << 30  # bytes of a disk that a bundle must leave
SECONDS, KEEP_SECONDS = 30.0, 15.0  # to send it, and to keep it on the node
LARGEST = 256 << 20  # bytes of a bundle that is kept or sent
TRIES, PAUSE = 3, 2.0  # of a store that does not answer or is too busy, and seconds after the first
URLS = ("http://", "https://")
READ, SAID = 4096, 200  # bytes of a refusal that are read, and characters that are said of it
SHORTEST_SECRET = 16  # characters; what is shorter in a signed URL are numbers, dates and names


def pack(parts: Mapping[str, bytes], now: float) -> bytes:
    """Return a tar, compressed, with a file for each part."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), int(now), 0o600
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def seconds_for(target: str) -> float:
    """Return how long a bundle may take to get there, at most."""
    return SECONDS if target.startswith(URLS) else KEEP_SECONDS


def deliver(bundle: bytes, target: str, name: str, node: str, root: Path) -> str:
    """Keep or send a bundle and return where it is now. Raises OSError, also when it is not done in time."""
    if len(bundle) > LARGEST:
        raise OSError(
            f"the bundle has {len(bundle) >> 20} MiB, and more than {LARGEST >> 20} are neither kept nor sent"
        )
    if target.startswith(URLS):
        url = target.replace("{node}", node).replace("{name}", name)
        parts = _address(url)
        return within(seconds_for(target), lambda: _send(bundle, parts))
    if not target.startswith("/"):
        scheme, of_url, _ = target.partition("://")
        secret = not set("@?#").isdisjoint(target)  # a user before the host, or what signs it
        shown = f"{scheme}://..." if of_url else "..." if secret else target
        raise OSError(f"BUNDLE is {shown!r}: give an absolute path on the node or a URL (http, https) to PUT to")
    of_the_node = root / "proc/1/root"  # no mount of its own: one that cannot be made would keep the Pod from starting
    base = of_the_node if of_the_node.is_dir() else root
    return within(seconds_for(target), lambda: _keep(bundle, base / target.lstrip("/"), name, target))


def _keep(bundle: bytes, folder: Path, name: str, target: str) -> str:
    """Write it in one step, and drop the oldest beyond those that are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize - len(bundle) < LEFT:
        raise OSError(f"the disk of {target} is nearly full: set BUNDLE to a URL")
    draft = folder / f".{name}.part"
    draft.touch(0o600)  # the kernel log is in it, which not everybody may read
    draft.write_bytes(bundle)
    draft.replace(folder / f"{name}.tar.gz")
    written = sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for old in written[:-KEPT]:
        old.unlink(missing_ok=True)
    return f"{target.rstrip('/')}/{name}.tar.gz"


class Busy(OSError):
    """A store did not take it, and may take it soon."""


def _address(url: str) -> SplitResult:
    """Raise OSError where nothing can be sent there; without what is in the URL, which may be secret."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.port != 0 and "@" not in parts.netloc and re.fullmatch("[!-~]+", url):
            return parts
    except ValueError:  # of the port, or the brackets of an address
        pass
    raise OSError("the URL of BUNDLE is none of the form https://HOST:PORT/PATH?QUERY, or names a user")


def _send(bundle: bytes, parts: SplitResult) -> str:
    """PUT it, a few times where the store is busy or away, and return the URL without what signs it."""
    for pause in (PAUSE * 2**number for number in range(TRIES - 1)):
        try:
            return _put(bundle, parts)
        except Busy:
            time.sleep(pause)
    return _put(bundle, parts)


def _put(bundle: bytes, parts: SplitResult) -> str:
    """Once. Raises Busy, OSError."""
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    connection = _connection(parts)
    try:
        connection.request("PUT", path, bundle, {"Content-Type": "application/gzip"})
        reply = connection.getresponse()
        refusal = f"{parts.netloc} answers {reply.status} to PUT: {_cleared(reply.read(READ), parts.query)[:SAID]}"
    except (OSError, http.client.HTTPException) as error:
        raise Busy(f"{parts.netloc} does not answer to PUT: {why(error)}") from None
    finally:
        connection.close()
    if reply.status == 429 or reply.status >= 500:
        raise Busy(refusal)
    if reply.status >= 300:
        raise OSError(refusal)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _cleared(answer: bytes, query: str) -> str:
    """What a store, or a proxy before it, says, without what signs the URL: some repeat what they were sent."""
    text = answer.decode(errors="replace")
    for word in (query, *(pair.partition("=")[2] for pair in query.split("&"))):
        text = text.replace(word, "[secret]") if len(word) >= SHORTEST_SECRET else text
    return text


def _connection(parts: SplitResult) -> http.client.HTTPConnection:
    """It follows no redirect and asks no proxy: what signs the URL is for this host alone."""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.netloc, timeout=SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(parts.netloc, timeout=SECONDS)


def within(seconds: float, work: Callable[[], str]) -> str:
    """Do `work` in a child and return what it returns. Raises OSError with what it raised, or when time is up."""
    said = os.memfd_create("said")
    child = os.fork()
    if child == 0:
        _be_the_child(said, work)
    until = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() >= until:
            os.kill(child, signal.SIGKILL)
            raise OSError(f"not done within {seconds:g} s")
        time.sleep(0.02)
    text = os.pread(said, 4096, 0).decode(errors="replace")
    if ended[1]:
        raise OSError(text or "the child ended early")
    return text


def _be_the_child(said: int, work: Callable[[], str]) -> None:
    try:
        text, code = work(), 0
    except Exception as error:
        text, code = f"{type(error).__name__}: {error}", 1
    os.write(said, text.encode()[:4096])
    os._exit(code)
