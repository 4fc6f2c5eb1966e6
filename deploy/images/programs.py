"""Build the programs of the control plane once: `python -m deploy.images.programs`.

With `--long` also those that take minutes and that only `make test-long` needs. Each ends up in a folder of the user's
cache that is named by what it was made from, so that a second run costs nothing and a changed go.mod, go.sum or flag
makes a new one.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MODULES = Path(__file__).parent / "modules"
STRIPPED = "-s -w"
STAMP = "k8s.io/component-base/version"
KWOK, KUEUE = "sigs.k8s.io/kwok", "sigs.k8s.io/kueue"
MONITORING = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring"
STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def pinned(module: str, package: str) -> str:
    """The version of a Go package that the go.mod of `module` pins, for example v1.37.1. Raises ValueError for none."""
    version = re.search(rf"\s{re.escape(package)} (v\S+)", (MODULES / module / "go.mod").read_text())
    if version is None:
        raise ValueError(f"{module}/go.mod: pins no {package}; add it with go get")
    return version[1]


def stamped(version: str) -> str:
    """The linker flags that make a program of Kubernetes report its version."""
    major, minor, _ = version.removeprefix("v").split(".")
    return f"{STRIPPED} -X {STAMP}.gitVersion={version} -X {STAMP}.gitMajor={major} -X {STAMP}.gitMinor={minor}"


KUBERNETES = pinned("kubernetes", "k8s.io/kubernetes")
STAMPED = stamped(KUBERNETES)
OLDER = "kubernetes-1.34"  # the last whose kube-scheduler breaks ties and ranks Pods as before 1.35


class Program(NamedTuple):
    """One program: the folder in `modules` that pins it, its Go package, what the linker is told.

    `long`: only tests that are `long` need it.
    """

    name: str
    module: str
    package: str
    ldflags: str
    long: bool = False

    @property
    def folder(self) -> Path:
        """Where the cache keeps it; other contents of the module or other flags give another folder."""
        made_of = [path.read_bytes() for path in sorted((MODULES / self.module).iterdir())]
        digest = hashlib.sha256(b"\0".join([*made_of, self.ldflags.encode()])).hexdigest()
        return cache() / f"{self.name}-{digest[:12]}"


PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", STRIPPED),
        Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", STAMPED),
        Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", STAMPED),
        Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", STAMPED),
        Program(
            "kube-scheduler-1.34",
            OLDER,
            "k8s.io/kubernetes/cmd/kube-scheduler",
            stamped(pinned(OLDER, "k8s.io/kubernetes")),
        ),
        Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", STAMPED),
        Program("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", STAMPED),
        Program("kwok", "kwok", f"{KWOK}/cmd/kwok", STRIPPED),
        Program("kueue", "kueue", f"{KUEUE}/cmd/kueue", STRIPPED, long=True),
        Program(
            "node-problem-detector",
            "node-problem-detector",
            "k8s.io/node-problem-detector/cmd/nodeproblemdetector",
            STRIPPED,
        ),
        Program("alertmanager", "alertmanager", "github.com/prometheus/alertmanager/cmd/alertmanager", STRIPPED),
        Program("helm", "helm", "helm.sh/helm/v4/cmd/helm", STRIPPED),
        Program("controller-gen", "prometheus-operator", "sigs.k8s.io/controller-tools/cmd/controller-gen", STRIPPED),
        Program("grafana-dashboards", "grafana", ".", STRIPPED),
        Program("actionlint", "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", STRIPPED),
    )
}


class NotBuilt(Exception):
    """A program is not there and cannot be made; the message says what to do about it."""


def cache() -> Path:
    """The folder of the user's cache for the built programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "remediator"


def binary(name: str) -> Path:
    """The built program of that name. Raises NotBuilt before `python -m deploy.images.programs` has run."""
    program = PROGRAMS[name]
    path = program.folder / name
    if not path.is_file():
        option, target = (" --long", "test-long") if program.long else ("", "test-cluster")
        raise NotBuilt(f"{name} is not built: run `python -m deploy.images.programs{option}` (or make {target})")
    return path


def stages() -> list[Path]:
    """KWOK's descriptions of how nodes and Pods live, in the order of their names."""
    return sorted((binary("kwok").parent / "stages").glob("*.yaml"))


def manifests() -> Path:
    """Kueue's own manifests: the folder `config` of its module."""
    return binary("kueue").parent / "config"


def monitoring() -> list[Path]:
    """The definitions of the Prometheus Operator's kinds, as its own types give them."""
    return sorted((binary("controller-gen").parent / "definitions").glob("*.yaml"))


def missing(long: bool = False) -> list[Program]:
    """The programs that are still to be built; with `long` also those that only tests that are `long` need."""
    wanted = [program for program in PROGRAMS.values() if long or not program.long]
    return [program for program in wanted if not (program.folder / program.name).is_file()]


def build(program: Program) -> None:
    """Build one program into its folder, which appears only when it is complete. Raises CalledProcessError."""
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".building-") as temporary:
        made = Path(temporary) / program.name
        made.mkdir()
        flags = ["-mod=readonly", "-trimpath", "-ldflags", program.ldflags, "-o", str(made / program.name)]
        _go(program.module, "build", *flags, program.package)
        copy = COPIED.get(program.name)
        if copy is not None:
            copy(made)
        if not program.folder.exists():
            made.rename(program.folder)


def main(long: bool = False) -> int:
    """Build what is missing, one line on stderr for each program; the exit status."""
    wanted = missing(long)
    if wanted and not shutil.which("go"):
        names = ", ".join(program.name for program in wanted)
        print(f"Building {names} needs Go 1.26 or newer on PATH: get it from https://go.dev/dl/.", file=sys.stderr)
        return 1
    for program in wanted:
        print(f"building {program.name} ({program.package})", file=sys.stderr)
        try:
            build(program)
        except subprocess.CalledProcessError:
            print(f"Building {program.name} failed; what Go said of it stands above.", file=sys.stderr)
            return 1
    return 0


def _go(module: str, *arguments: str) -> str:
    """Run Go in one module folder, without a C compiler; what it printed."""
    done = subprocess.run(
        ["go", *arguments],
        cwd=MODULES / module,
        env={**os.environ, "CGO_ENABLED": "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def _source(module: str, package: str) -> Path:
    """Where Go keeps the source of a package that `module` pins."""
    return Path(_go(module, "list", "-m", "-f", "{{.Dir}}", package))


def _copy_stages(made: Path) -> None:
    """The stages lie in KWOK's module, not in its program; Go's module cache is read-only, ours need not be."""
    source, target = _source("kwok", KWOK) / "kustomize" / "stage", made / "stages"
    target.mkdir()
    for stage in STAGES:
        for path in (source / stage).glob("*.yaml"):
            if path.name != "kustomization.yaml":
                (target / path.name).write_bytes(path.read_bytes())


def _copy_manifests(made: Path) -> None:
    """As the stages of KWOK."""
    source = _source("kueue", KUEUE) / "config"
    for path in sorted(source.rglob("*.yaml")):
        target = made / "config" / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def _define_monitoring(made: Path) -> None:
    """The operator's module has types without definitions: these are made from the types, as the operator does."""
    words = ("crd", f"paths={MONITORING}/v1", f"output:crd:dir={made / 'definitions'}")
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run([made / "controller-gen", *words], cwd=MODULES / "prometheus-operator", env=environment, check=True)


COPIED: dict[str, Callable[[Path], None]] = {
    "kwok": _copy_stages,
    "kueue": _copy_manifests,
    "controller-gen": _define_monitoring,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m deploy.images.programs", description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="Also what only make test-long needs.")
    sys.exit(main(parser.parse_args().long))
