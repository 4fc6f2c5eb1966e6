"""The process of one replica, once its options are read: nothing of what reads them, or prints tables, is in it."""

import asyncio
import contextlib
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from remediator import collector
from remediator.clock import SYSTEM
from remediator.core.kubernetes_version import too_old
from remediator.core.text import printable
from remediator.settings import Level, Settings

if TYPE_CHECKING:
    from remediator.app import Replica
    from remediator.kube.wire.client import Client
    from remediator.kube.wire.http import HttpTransport

REFUSED = 2  # what it ends with where it cannot run as it is asked to


class RunOptions(NamedTuple):
    """What the command line asks of a replica."""

    kubeconfig: Path | None
    settings: Settings
    log_level: Level
    log_json: bool


class Unrunnable(Exception):
    """One sentence that says what cannot be done, and what would help."""


def say(text: object) -> None:
    """One line on stderr, for whoever has started us."""
    sys.stderr.write(printable(f"remediator: {text}") + "\n")
    sys.stderr.flush()


def main(options: RunOptions) -> None:
    """Run until ended; one sentence and exit 2 where it cannot run so."""
    plain_tracebacks()
    settings = options.settings
    if settings.routes is not None:
        with _absent("charset_normalizer"), warnings.catch_warnings():  # to guess how a text is encoded: 2 MiB
            warnings.simplefilter("ignore")  # it says that nobody guesses; GitHub says how its texts are
            import requests  # noqa: F401
    if settings.routes is not None and not settings.github_app_id:
        with _absent("cryptography"):  # for signatures, which only an App needs: 8 MiB
            import jwt  # noqa: F401
    try:
        run(options)
    except Unrunnable as wrong:
        say(wrong)
        raise SystemExit(REFUSED) from None


@contextlib.contextmanager
def _absent(module: str) -> Iterator[None]:
    """While this is open a library does without a module that it takes where it is installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def plain_tracebacks() -> None:
    """The library of the log does without rich: 3 MiB and a tenth of a second for colours that we never ask for."""
    with _absent("rich"):
        import structlog  # noqa: F401


def run(options: RunOptions) -> None:
    """Run until ended. Raises Unrunnable."""
    # Only here, because other commands neither log nor count.
    from remediator import metrics

    metrics.configure(options.log_level, options.log_json, SYSTEM)
    asyncio.run(until_ended(_run(options)))


async def _run(options: RunOptions) -> None:
    from remediator.kube.wire.client import Client

    transport = await connect(options.kubeconfig)
    try:
        replica = _replica(Client(transport), options.settings)
        collector.keep()  # before anybody is served
        old = too_old(await answers(transport))
        if old:
            raise Unrunnable(old)
        await _until_handed_over(replica)
    except OSError as wrong:  # of what it listens on; what its parts raise comes as a group
        raise Unrunnable(wrong) from None
    finally:
        await transport.close()


async def _until_handed_over(replica: "Replica") -> None:
    """The first signal asks it to hand over and to end; one more ends it at once, as `until_ended` does."""
    work = asyncio.ensure_future(replica.run())
    _on_signal(lambda: replica.end() or work.cancel())
    await work


def _replica(client: "Client", settings: Settings) -> "Replica":
    # Only here, because all parts of a replica take half a second to import, which other commands need not wait for.
    from remediator.app import Replica

    try:
        return Replica(client, settings, SYSTEM)
    except (OSError, ValueError) as wrong:
        raise Unrunnable(wrong) from None


async def connect(kubeconfig: Path | None) -> "HttpTransport":
    """A connection from the kubeconfig, or from inside a Pod. Raises Unrunnable where neither works."""
    # Only here, because what speaks HTTP takes a fifth of a second to import, which other commands need not wait for.
    from remediator.kube.wire.http import HttpTransport, UnusableProxy

    try:
        return await (HttpTransport.from_kubeconfig(kubeconfig) if kubeconfig else HttpTransport.in_cluster())
    except UnusableProxy as failed:
        raise Unrunnable(failed) from None
    except Exception as failed:
        if kubeconfig is None:
            raise Unrunnable(
                f"no --kubeconfig given, and no service account of a Pod here ({failed}); give --kubeconfig FILE"
            ) from None
        why = f"kubeconfig {kubeconfig}: {str(failed) or type(failed).__name__}"
        raise Unrunnable(f"{why}; correct it, or give another with --kubeconfig or KUBECONFIG") from None


async def answers(transport: "HttpTransport") -> str:
    """Wait until the API server answers; say once that it does not. Return its version, "" where it tells none."""
    from remediator.kube.runtime.backoff import full_jitter
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import check, decode

    failures = 0
    while True:
        try:
            version = decode(check(await transport.request("GET", "/version", timeout=10)).body, dict)
        except errors.ApiError as failed:
            if failures == 0:
                say(f"{failed.message}; trying again until it answers")
            await asyncio.sleep(full_jitter(failures, base=0.8, cap=30.0, rand=random.random))
            failures += 1
        else:
            return str(version.get("gitVersion") or "")


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, or until SIGINT or SIGTERM cancels it; either way everything it started has ended."""
    task = asyncio.ensure_future(work)
    _on_signal(task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _on_signal(react: Callable[[], object]) -> None:
    ours = threading.current_thread() is threading.main_thread()  # no other is told of signals, or may ask for them
    for number in (signal.SIGINT, signal.SIGTERM) if ours else ():
        asyncio.get_running_loop().add_signal_handler(number, react)
