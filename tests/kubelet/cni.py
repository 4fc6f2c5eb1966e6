"""A CNI plugin, under the names `loopback` and `node`: a Pod's own network, a wire to its node and no further.

Standard library and `ip` only. Its configuration says `pods`, the first three numbers of the addresses, and `counter`,
a file that counts how many were given away.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

VERSION = "0.4.0"
GATEWAY = "169.254.1.1"


def main(command: str, config: dict[str, Any]) -> None:
    """Answer one call of the container runtime."""
    if command == "VERSION":
        answer({"supportedVersions": ["0.3.1", VERSION]})
    elif command == "ADD":
        answer(add(config))
    # Nothing to do for DEL: the wire goes with the network namespace of the Pod.


def add(config: dict[str, Any]) -> dict[str, Any]:
    """Bring an interface up and tell which it is."""
    inside, name = Path(os.environ["CNI_NETNS"]).name, os.environ["CNI_IFNAME"]
    if config["type"] == "loopback":
        ip("-n", inside, "link", "set", "lo", "up")
        interface, address = {"name": "lo", "sandbox": os.environ["CNI_NETNS"]}, "127.0.0.1/8"
    else:
        number = count(Path(config["counter"]))
        interface, address = {"name": name, "sandbox": os.environ["CNI_NETNS"]}, f"{config['pods']}.{number}/32"
        wire(inside, name, f"wire{number}", address)
    return {"interfaces": [interface], "ips": [{"version": "4", "interface": 0, "address": address}], "dns": {}}


def wire(inside: str, name: str, outside: str, address: str) -> None:
    """Join the Pod's network namespace to ours."""
    ip("link", "add", outside, "type", "veth", "peer", "name", name, "netns", inside)
    ip("address", "add", f"{GATEWAY}/32", "dev", outside)
    ip("link", "set", outside, "up")
    ip("route", "add", address, "dev", outside)
    ip("-n", inside, "address", "add", address, "dev", name)
    ip("-n", inside, "link", "set", name, "up")
    ip("-n", inside, "route", "add", f"{GATEWAY}/32", "dev", name)
    ip("-n", inside, "route", "add", "default", "via", GATEWAY)


def count(path: Path) -> int:
    """The next number, of two that ask at once another one each."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(".")
        file.flush()
        return file.tell()


def ip(*words: str) -> None:
    """Run `ip`; what it says when it fails is the answer."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        answer({"code": 100, "msg": f"ip {' '.join(words)}: {done.stderr.strip()}"})
        sys.exit(1)


def answer(result: dict[str, Any]) -> None:
    """What the container runtime reads."""
    json.dump({"cniVersion": VERSION, **result}, sys.stdout)


if __name__ == "__main__":
    main(os.environ["CNI_COMMAND"], json.load(sys.stdin))
