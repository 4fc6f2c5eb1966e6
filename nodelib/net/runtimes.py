"""The container runtimes of a node: where their sockets are, and what they say when asked."""

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path

from nodelib.host.root import within
from nodelib.net.cri import Runtime, ask_runtime
from nodelib.net.probe_result import together

SOCKETS = (
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",
)


def add_socket_option(options: argparse.ArgumentParser) -> None:
    """Add --socket to a detector's options."""
    options.add_argument(
        "--socket",
        action="append",
        default=[],
        type=node_path,
        metavar="PATH",
        help="a container runtime's socket on the node; may be given many times "
        f"(default: those there are among {', '.join(SOCKETS)})",
    )


def node_path(text: str) -> str:
    """Check an option's value."""
    if not text.startswith("/") or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no path on the node: begin it with /")
    return text


def ask_runtimes(root: Path, declared: Collection[str], known: Collection[str], deadline: float) -> dict[str, Runtime]:
    """Ask, at the same time, the declared runtimes, or else those that are there or answered before, by path."""
    paths = sorted(declared or {path for path in SOCKETS if path in known or within(root, path).exists()})
    replies = together(lambda path: ask_runtime(within(root, path), deadline), paths)
    return dict(zip(paths, replies, strict=True))


def network(runtimes: Mapping[str, Runtime]) -> tuple[bool | None, str]:
    """Tell whether the network is ready, None for nobody knows, and the reason where it is not or nobody knows."""
    conditions = [
        runtime.conditions["NetworkReady"] for runtime in runtimes.values() if "NetworkReady" in runtime.conditions
    ]
    if any(condition.ready for condition in conditions):
        return True, ""
    if conditions:
        return False, sorted(condition.reason for condition in conditions)[0] or "no reason given"
    causes = [f"{path}: {runtime.reply.why or 'says nothing of it'}" for path, runtime in sorted(runtimes.items())]
    return None, "; ".join(causes) or "no socket of a container runtime is there (--socket PATH)"
