"""An image of the table → its Dockerfile, what docker must not read for it, and its requirements. Pure text."""

import json
from collections.abc import Mapping

from deploy.images.programs import PROGRAMS
from deploy.images.requirements import only
from deploy.images.table import REQUIREMENTS, Base, Image

HEAD = """\
# {about}. Written by `make images` from deploy/images/images.toml: change it there.
#   docker build -f deploy/images/{name}.Dockerfile -t {repository}:TAG .
"""


def files(base: Base, image: Image, requirements: str) -> Mapping[str, str]:
    """File name → text of all that belongs to an image."""
    found = {
        f"{image.name}.Dockerfile": dockerfile(base, image),
        f"{image.name}.Dockerfile.dockerignore": ignore(image),
    }
    return {**found, f"{image.name}.txt": only(requirements, image.packages)} if image.packages else found


def dockerfile(base: Base, image: Image) -> str:
    """The Dockerfile; it is built in the root of the checkout."""
    folders = [target for target in image.copy.values() if target.startswith("/opt/")]
    steps = [
        f"FROM {base.image}",
        f"COPY {_requirements(image)} /tmp/requirements.txt",
        "RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt",
        *(f"COPY --from={program} /{program} /usr/local/bin/{program}" for program in image.programs),
        *(f"COPY {source} {target}" for source, target in image.copy.items()),
        f"RUN python3 -m compileall -q --invalidation-mode unchecked-hash {' '.join(folders)}",
        f"USER {image.user}",
        f"CMD {json.dumps(list(image.command))}",
    ]
    head = HEAD.format(about=image.about.capitalize(), name=image.name, repository=image.repository)
    return head + "".join(_stage(base, program) for program in image.programs) + "\n".join(steps) + "\n"


def ignore(image: Image) -> str:
    """What docker sends to its builder: what is copied, and no more."""
    modules = [f"deploy/images/modules/{PROGRAMS[program].module}" for program in image.programs]
    wanted = [_requirements(image), *modules, *image.copy]
    return "\n".join(["*", *(f"!{one}" for one in wanted), "**/__pycache__"]) + "\n"


def _stage(base: Base, name: str) -> str:
    program = PROGRAMS[name]
    build = f'go build -mod=readonly -trimpath -ldflags "{program.ldflags}" -o /{name} {program.package}'
    return (
        f"FROM {base.go} AS {name}\n"
        "WORKDIR /module\n"
        f"COPY deploy/images/modules/{program.module} .\n"
        f"RUN CGO_ENABLED=0 {build}\n\n"
    )


def _requirements(image: Image) -> str:
    return f"deploy/images/{image.name}.txt" if image.packages else REQUIREMENTS.name
