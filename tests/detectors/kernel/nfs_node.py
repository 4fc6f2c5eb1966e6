"""A node made of files whose one NFS mount is a real file system, which may hang."""

import json
import shutil
import time
from pathlib import Path

from tests.detectors.kernel.held import FuseMount
from tests.detectors.kernel.stuck import children_of
from tests.detectors.proc_tree import ProcTree

DEADLINE = 2.0


class NfsNode(ProcTree):
    """The FUSE mount is mounted as NFS from `port`; the node's process 1 is the one that holds the mount."""

    def __init__(self, root: Path, fuse: FuseMount, port: int):
        super().__init__(root)
        self.fuse, self.port = fuse, port
        self.name = f"NFS mount {fuse.point} of files:/data"
        self.mount(str(fuse.point), "files:/data", f"vers=4.2,hard,proto=tcp,port={port},addr=127.0.0.1")
        shutil.rmtree(self.proc / "1/root")
        (self.proc / "1/root").symlink_to(fuse.root)

    def look(self) -> tuple[int, str, float]:
        """Run the detector and return code, line and how long it took."""
        begun = time.monotonic()
        ran = self.run("nfs_mount", f"--deadline={DEADLINE}", forked=False)  # its children are found by their words
        assert ran.err == ""
        return ran.code, ran.line, time.monotonic() - begun

    def record(self) -> dict:
        """What the detector remembers of the child that it left behind, {} for nothing."""
        paths = list((self.state / "nfs_mount").glob("*.probe.json"))
        return json.loads(paths[0].read_text()) if paths else {}

    def children(self) -> list[int]:
        """The pids of the children that ask this mount."""
        return children_of(f"{self.proc}/1/root{self.fuse.point}")
