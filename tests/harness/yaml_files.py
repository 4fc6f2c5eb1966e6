"""YAML files of this repository, read by libyaml where PyYAML was built with it: in a tenth of the time."""

from pathlib import Path
from typing import Any

import yaml

from remediator_sim.manifests import LOADER


def read(path: Path) -> Any:
    """The one document in a file."""
    return parsed(path.read_text())


def parsed(text: str) -> Any:
    """The one document in a text."""
    return yaml.load(text, LOADER)


def read_all(path: Path) -> list[Any]:
    """The documents in a file that are not empty."""
    return [document for document in yaml.load_all(path.read_text(), LOADER) if document]
