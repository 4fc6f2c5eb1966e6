"""Write the Dockerfiles, and the images as tars: `python -m deploy.images`."""

import argparse
import sys
from pathlib import Path

from deploy.images import build, dockerfile
from deploy.images.machine import Unbuildable
from deploy.images.programs import NotBuilt
from deploy.images.table import HERE, REQUIREMENTS, ROOT, shipped

REGISTRY = "docker.io"  # what a container runtime takes a name without a host to mean


def main() -> int:
    """The exit status; one line on stdout for each tar."""
    parser = argparse.ArgumentParser(prog="deploy.images", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the tars go (default: dist)")
    parser.add_argument("--tag", default="dev", help="the tag of both images (default: dev)")
    parser.add_argument("--text", action="store_true", help="write only the Dockerfiles and what belongs to them")
    asked = parser.parse_args()
    base, images = shipped()
    for image in images:
        for name, text in dockerfile.files(base, image, REQUIREMENTS.read_text()).items():
            (HERE / name).write_text(text)
    for image in () if asked.text else images:
        name, path = f"{REGISTRY}/{image.repository}:{asked.tag}", asked.output / f"{image.name}.tar"
        try:
            digest = build.tar(base, image, path, {name: build.run(image)})
        except (Unbuildable, NotBuilt) as error:
            print(f"{image.repository}: {error}", file=sys.stderr)
            return 1
        print(f"{path} {name} {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
