"""The hashed requirements, as text: which packages an image needs, and the lines that pin them."""

import re
from collections.abc import Mapping, Sequence

from packaging.markers import Marker

START = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: *; *(?P<marker>[^\\]+?))? *\\?$")


def pins(text: str, names: Sequence[str] = ()) -> Mapping[str, str]:
    """Package → version of those that this machine needs; only `names`, where there are any.

    Raises KeyError for a name that is not pinned.
    """
    starts = {found["name"]: found for found in map(START.match, text.splitlines()) if found}
    wanted = [starts[name] for name in names] if names else list(starts.values())
    return {one["name"]: one["version"] for one in wanted if not one["marker"] or Marker(one["marker"]).evaluate()}


def only(text: str, names: Sequence[str]) -> str:
    """The lines of requirements that pin `names`, hashes included, comments left out."""
    kept: list[str] = []
    keep = False
    for line in text.splitlines():
        start = START.match(line)
        keep = start["name"] in names if start else keep
        if keep and not line.strip().startswith("#"):
            kept.append(line)
    return "".join(f"{line}\n" for line in kept)
