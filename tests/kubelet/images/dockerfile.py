"""What a Dockerfile of deploy/images puts into its image. A line that a tar cannot follow is an error."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "images"
REQUIREMENTS = "/tmp/requirements.txt"
PROGRAM = re.compile(r"--from=(\S+) /\1 /usr/local/bin/\1")
STEPS = re.compile(r"(pip install .* -r /tmp/requirements\.txt|python3 -m compileall .*)")  # a tar does both by itself
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: *; *(?P<marker>[^\\]+?))? *\\?$", re.MULTILINE)


@dataclass(frozen=True)
class Image:
    """The last stage of a Dockerfile. `copy` maps what lies in the checkout to its place in the image."""

    name: str
    copy: Mapping[str, str]
    programs: tuple[str, ...]
    packages: Mapping[str, str]
    user: str
    command: tuple[str, ...]

    @property
    def repository(self) -> str:
        """Its name in manifests, without a tag."""
        return f"registry.invalid/remediator/{self.name}"


def image(name: str) -> Image:
    """The image of `deploy/images/NAME.Dockerfile`."""
    return read(name, (FOLDER / f"{name}.Dockerfile").read_text())


def read(name: str, text: str) -> Image:
    """The image of a Dockerfile. Raises ValueError for an instruction that is not known here."""
    lines = [line for line in text.rpartition("\nFROM ")[2].splitlines()[1:] if line and not line.startswith("#")]
    instructions = [tuple(line.split(" ", 1)) for line in lines]
    unknown = [line for line, (word, rest) in zip(lines, instructions, strict=True) if not _known(word, rest)]
    if unknown:
        raise ValueError(f"{name}.Dockerfile: {unknown[0]}")
    copies = [rest for word, rest in instructions if word == "COPY"]
    programs = tuple(program[1] for rest in copies if (program := PROGRAM.fullmatch(rest)))
    copy = dict(rest.split() for rest in copies if not rest.startswith("--from"))
    (requirements,) = [source for source, target in copy.items() if target == REQUIREMENTS]
    packages = pins((ROOT / requirements).read_text())
    del copy[requirements]
    last = dict(instructions)
    return Image(name, copy, programs, packages, last["USER"], tuple(json.loads(last["CMD"])))


def _known(word: str, rest: str) -> bool:
    match word:
        case "COPY":
            return PROGRAM.fullmatch(rest) is not None or len(rest.split()) == 2
        case "RUN":
            return STEPS.fullmatch(rest) is not None
    return word in ("USER", "CMD")


def pins(text: str) -> Mapping[str, str]:
    """Package → version of hashed requirements, of those that this Python needs."""
    found = PIN.finditer(text)
    return {pin["name"]: pin["version"] for pin in found if not pin["marker"] or Marker(pin["marker"]).evaluate()}
