"""The table of what is in the images."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUIREMENTS = ROOT / "requirements.txt"


@dataclass(frozen=True)
class Base:
    """What both images stand on: names of images for docker, names of tools for a tar."""

    image: str
    go: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Image:
    """One image. `copy` maps what lies in the checkout to its place; no `packages` means all of requirements.txt."""

    name: str
    about: str
    command: tuple[str, ...]
    user: str
    copy: Mapping[str, str]
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = field(default=())

    @property
    def repository(self) -> str:
        """Its name in manifests, without a tag."""
        return f"remediator/{self.name}"


def read(text: str) -> tuple[Base, tuple[Image, ...]]:
    """The base and the images of a table."""
    table = tomllib.loads(text)
    base = table.pop("base")
    images = tuple(
        Image(name=name, **{key: _frozen(value) for key, value in rows.items()}) for name, rows in table.items()
    )
    return Base(base["from"], base["go"], tuple(base["tools"])), images


def shipped() -> tuple[Base, tuple[Image, ...]]:
    """Ours."""
    return read((HERE / "images.toml").read_text())


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
