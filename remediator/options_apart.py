"""The options of `remediator run`, read by a child: what reads them takes 15 MiB, which a replica never needs again."""

import os
import pickle
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remediator.process import RunOptions

COMPLETION = "_REMEDIATOR_COMPLETE"  # a shell asks how a word may go on


def wanted() -> bool:
    """Whether the command line is that of a replica."""
    return sys.argv[1:2] == ["run"] and COMPLETION not in os.environ


def read() -> "RunOptions | None":
    """What the command line says; None in the child, which has to go on with it.

    Raises SystemExit, with the code of the child, where it asks for no replica: it has shown help, or has refused.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        _hand_over(writes)
        return None
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        pickled = pipe.read()
    _, status = os.waitpid(child, 0)
    if not pickled or status:  # a child that was killed has perhaps written a part
        raise SystemExit(os.waitstatus_to_exitcode(status))
    options: RunOptions = pickle.loads(pickled)
    return options


def _hand_over(writes: int) -> None:
    """Let the command line write what it was given, rather than run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # our parent obeys it, for both
    from remediator.cli import run

    def write(options: "RunOptions") -> None:
        try:
            with os.fdopen(writes, "wb") as pipe:
                pickle.dump(options, pipe)
        except BrokenPipeError:
            raise SystemExit(1) from None  # nobody waits for it any more

    run.begin = write
