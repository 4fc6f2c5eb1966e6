"""What the detectors that ask NVML have besides: where its module is, and the child that does the asking."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import _detector
from _detector import Check
from _nvml import Question, ask_nvml


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every detector that asks NVML."""
    options = _detector.parser(description, 85.0, "NVML; 5 more to end the child")
    options.add_argument(
        "--pynvml",
        type=Path,
        metavar="FOLDER",
        help="folder that holds the module pynvml, put first on the module path (default: where it is installed)",
    )
    options.add_argument("--probe", type=Path, help=argparse.SUPPRESS)  # the child that asks NVML
    return options


def main(options: argparse.Namespace, name: str, questions: Mapping[str, Question], check: Check) -> None:
    """Be the child that asks NVML, or check, say what came out and exit with it."""
    if options.probe:
        ask_nvml(options.probe, options.pynvml, questions)
    else:
        _detector.main(options, name, check)
