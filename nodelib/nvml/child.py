"""The child that asks NVML everything that any detector wants to know: `python3 child.py [options] ANSWER`.

Run by client.py, never by hand: it may hang in the driver, and must then be left behind.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

from nodelib.contract.npd import since_boot
from nodelib.host.driver import enter, is_loaded, module, roots
from nodelib.nvml import ecc, nvlink, processes, recovery, settings, throttle, use
from nodelib.nvml.queries import Question, Teller, ask_nvml, load_pynvml


def questions(version: str) -> dict[str, Question]:
    """Return all questions, for a driver of `version`."""
    asked = (
        *(ecc.QUESTIONS, recovery.QUESTIONS, throttle.questions(version), nvlink.QUESTIONS, processes.QUESTIONS),
        *(settings.QUESTIONS, use.QUESTIONS),
    )
    return {name: question for table in asked for name, question in table.items()}


def load(options: argparse.Namespace) -> Any:
    """Return pynvml, which will find the node's own library; not where no driver is loaded: it might load one."""
    pynvml = load_pynvml(options.pynvml)
    if is_loaded(options.proc):
        enter(roots(options.proc, options.driver_root), options.proc / "1/root")
    return pynvml


def main() -> None:
    """Ask, unless `--limit` seconds go by: whoever waits may be gone by then, and a child should not stay for ever."""
    asked_at = since_boot()
    parser = argparse.ArgumentParser()
    parser.add_argument("--pynvml", type=Path)
    parser.add_argument("--proc", type=Path, default="/proc")
    parser.add_argument("--driver-root", type=Path)
    parser.add_argument("--boot", default="")
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("answer", type=Path)
    options = parser.parse_args()
    signal.setitimer(signal.ITIMER_REAL, options.limit)
    os.chdir(options.answer.parent)  # from there the answer is found whatever root folder this process has
    version = module(options.proc).version
    teller = Teller(Path(options.answer.name), boot=options.boot, asked_at=asked_at, driver=version)
    ask_nvml(teller, lambda: load(options), questions(version))


if __name__ == "__main__":
    main()
