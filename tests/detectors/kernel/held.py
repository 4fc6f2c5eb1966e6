"""File systems that a test brings to a halt and gives free again, each held by a program in a process of its own.

That process undoes everything at its end, which comes with `end`, with ours, or after LIMIT seconds.
"""

import contextlib
import select
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
LIMIT = 100.0  # seconds after which everything is given free, whatever became of the test
PATIENCE = 30.0  # seconds for one answer of a program


class Held:
    """A program that holds a mount. `root`: the way into its mount namespace; `point`: where the mount is in there."""

    def __init__(self, program: str, *arguments: str | Path):
        command = [sys.executable, "-E", "-s", "-S", "-B", str(PROGRAMS / f"{program}.py"), *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )
        self.root = Path(f"/proc/{self._process.pid}/root")
        try:
            assert self._answer() == "ready", f"{program} could not mount; its reason is on stderr"
        except BaseException:
            self.end()
            raise

    def tell(self, order: str) -> str:
        """Give an order and return what the program says to it."""
        self._process.stdin.write(f"{order}\n")
        return self._answer()

    def end(self) -> None:
        """Give everything free, and wait until that is done."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.stdout.close()

    def _answer(self) -> str:
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        assert ready, f"no answer in {PATIENCE:g} s"
        return self._process.stdout.readline().strip()


class FrozenDisk(Held):
    """An ext4 on a loop device. `folder`: its path for everybody; while it is frozen who writes there is stuck in D."""

    def __init__(self, folder: Path):
        image, point = folder / "image", folder / "disk"
        point.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        super().__init__("frozen_disk", image, point, LIMIT)
        self.folder = Path(f"{self.root}{point}")

    def freeze(self) -> None:
        """Stop every write until `thaw`."""
        assert self.tell("freeze") == "freeze"

    def thaw(self) -> None:
        """Let writes go on."""
        assert self.tell("thaw") == "thaw"


class FuseMount(Held):
    """A FUSE file system that answers nothing but statfs. `point`: where it is in the mount namespace of `root`."""

    def __init__(self, folder: Path):
        self.point = folder / "fuse"
        self.point.mkdir(parents=True)
        super().__init__("fuse_server", self.point, LIMIT)

    @property
    def asked(self) -> int:
        """How many times statfs has reached the server."""
        return int(self.tell("asked"))
