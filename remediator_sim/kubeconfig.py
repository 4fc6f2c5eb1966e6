"""Kubeconfigs for bearers of a token."""

import json
from pathlib import Path


def write_kubeconfig(folder: Path, name: str, url: str, token: str, ca_file: Path | None) -> Path:
    """A kubeconfig in `folder` that reaches `url`; without a `ca_file` whoever answers there is believed."""
    trust = {"certificate-authority": str(ca_file)} if ca_file else {"insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url, **trust}}],
        "users": [{"name": name, "user": {"token": token}}],
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    return path
