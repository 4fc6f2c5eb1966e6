"""The child that asks NVML everything that any detector wants to know: `python3 _questions.py [options] ANSWER`.

Run by `_asking`, never by hand: it may hang in the driver, and must then be left behind.
"""

import argparse
import signal
from pathlib import Path

import _ecc
import _holders
import _nvlink
import _recovery
import _throttle
from _nvml import Question, Teller, ask_nvml
from _verdict import since_boot

TABLES = (_ecc.QUESTIONS, _recovery.QUESTIONS, _throttle.QUESTIONS, _nvlink.QUESTIONS, _holders.QUESTIONS)
QUESTIONS: dict[str, Question] = {name: question for table in TABLES for name, question in table.items()}


def main() -> None:
    """Ask, unless `--limit` seconds go by: whoever waits may be gone by then, and a child should not stay for ever."""
    asked_at = since_boot()
    parser = argparse.ArgumentParser()
    parser.add_argument("--pynvml", type=Path)
    parser.add_argument("--boot", default="")
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("answer", type=Path)
    options = parser.parse_args()
    signal.setitimer(signal.ITIMER_REAL, options.limit)
    ask_nvml(Teller(options.answer, boot=options.boot, asked_at=asked_at), options.pynvml, QUESTIONS)


if __name__ == "__main__":
    main()
