"""Files → a layer → an image in a tar (OCI image layout), the same bytes for the same files."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class File(NamedTuple):
    """One file of a layer: its absolute path, its bytes and its mode; all files belong to root.

    `source` is where this machine has it, empty for what was made.
    """

    path: str
    data: bytes
    mode: int = 0o644
    source: str = ""


def layer(files: Iterable[File], folders: Mapping[str, int] | None = None) -> bytes:
    """A tar of files in the order of their paths, with the folders that they need. `folders`: path → mode of others."""
    by_path = {file.path: file for file in files}
    modes = {str(above): 0o755 for path in by_path for above in PurePosixPath(path).parents} | dict(folders or {})
    modes.pop("/", None)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted([*modes, *by_path]):
            file = by_path.get(path)
            info = tarfile.TarInfo(path.lstrip("/"))
            info.type = tarfile.REGTYPE if file else tarfile.DIRTYPE
            info.mode, info.size = (file.mode, len(file.data)) if file else (modes[path], 0)
            tar.addfile(info, io.BytesIO(file.data if file else b""))
    return made.getvalue()


class Run(NamedTuple):
    """How a container of an image starts, unless its Pod says otherwise."""

    command: Sequence[str]
    user: str
    env: Mapping[str, str]


def write(path: Path, images: Mapping[str, Run], layers: Sequence[bytes]) -> str:
    """Write one tar with images that differ only in name and in how they start; the digest of its index.

    A name has a host and a tag, as a container runtime files it.
    """
    blobs = {_digest(one): one for one in layers}

    def keep(value: Any, kind: str) -> dict[str, Any]:
        data = json.dumps(value, sort_keys=True).encode()
        blobs[_digest(data)] = data
        return {"mediaType": kind, "digest": _digest(data), "size": len(data)}

    described = [{"mediaType": LAYER, "digest": _digest(one), "size": len(one)} for one in layers]
    manifests = []
    for name, run in images.items():
        config = keep(_config(run, layers), CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": described}
        manifests.append({**keep(manifest, MANIFEST), "annotations": _names(name)})
    index = json.dumps({"schemaVersion": 2, "manifests": manifests}, sort_keys=True).encode()
    files = [File(f"/blobs/{digest.replace(':', '/')}", data) for digest, data in blobs.items()]
    version = File("/oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(layer([*files, version, File("/index.json", index)]))
    return _digest(index)


def _config(run: Run, layers: Sequence[bytes]) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {
            "Cmd": list(run.command),
            "User": run.user,
            "Env": [f"{key}={value}" for key, value in run.env.items()],
        },
        "rootfs": {"type": "layers", "diff_ids": [_digest(one) for one in layers]},
    }


def _names(name: str) -> dict[str, str]:
    return {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
