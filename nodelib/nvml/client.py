"""What the detectors that ask NVML have besides: where its module is, and the one child that asks for all of them."""

import argparse
import sys
from pathlib import Path

from nodelib.contract import detector
from nodelib.contract.npd import boot_id
from nodelib.host.child_process import GRACE, ChildAnswer, share
from nodelib.nvml.queries import nonsense, place_path

FRESH = 20.0  # seconds; less than any interval, more than lies between detectors that are started at the same time
CHILD = Path(__file__).resolve().with_name("child.py")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every detector that asks NVML."""
    options = detector.parser(description, 85.0, "NVML, the same in all that ask it; 5 more to end the child")
    options.add_argument(
        "--pynvml",
        type=Path,
        metavar="FOLDER",
        help="folder that holds the module pynvml, put first on the module path (default: where it is installed)",
    )
    options.add_argument(
        "--driver-root",
        type=Path,
        metavar="FOLDER",
        help="folder in which the driver's usr/lib lies, the same in all that ask NVML "
        "(default: the node's /run/nvidia/driver, then its /)",
    )
    options.add_argument(
        "--fresh",
        type=float,
        default=FRESH,
        metavar="SECONDS",
        help="how old an answer of NVML to another detector may be to be taken for ours (%(default)s; 0: ask anew)",
    )
    return options


def nvml(options: argparse.Namespace) -> ChildAnswer:
    """Return what NVML says of every GPU, to whichever detector it said it (queries.ask_nvml: the shape).

    What makes no sense is not passed on: `why` tells of it. Of a child that hangs, "at" says what it was asked.
    """
    boot = boot_id(options.proc)
    places = {"proc": options.proc, "pynvml": options.pynvml, "driver-root": options.driver_root}
    folders = [f"--{name}={place.absolute()}" for name, place in places.items() if place]
    own = [str(CHILD), *folders, f"--boot={boot}", f"--limit={options.deadline + GRACE:g}"]
    command = [sys.executable, "-E", "-s", "-S", "-B", *own]
    answer = checked(share(command, options.state, "nvml", options.deadline, boot=boot, fresh=options.fresh))
    return answer._replace(answers={**answer.answers, "at": _place(options.state)}) if answer.silent_since else answer


def checked(answer: ChildAnswer) -> ChildAnswer:
    """Return an answer in whose types one can trust: nothing but the reason where it makes no sense."""
    wrong = nonsense(answer.answers)
    return answer._replace(answers={}, why=f"its answer makes no sense: {wrong}") if wrong else answer


def _place(state: Path) -> str:
    try:
        return place_path(state / "nvml.answer.json").read_text("ascii", "replace").strip() or "start"
    except OSError:
        return "start"
