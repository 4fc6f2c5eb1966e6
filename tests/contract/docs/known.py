"""How each program that pages name is tried, and the few commands that no test runs, with the reason."""

from collections.abc import Iterable, Mapping

from tests.contract.docs.pages import ALL, Command, Recipe, programs

# Tried by every `make test`: they need nothing but Python and what stands in for the rest.
EVERYWHERE = frozenset({"remediator", "python", "python3", "make", "curl", "sh"})
TOOLS = frozenset({"base64", "cat", "cp", "echo", "grep", "head", "mkdir", "openssl", "printf", "sed", "sort", "tail"})
# Tried by `make test-cluster`, which builds them: against the embedded server and the real one.
CLUSTER = frozenset({"kubectl"})

# Command as it is written → why no test runs it. make is asked for what it would do, so no target stands here.
APART: Mapping[str, str] = {
    "python -m tests.bench.claim --nodes 5000 --faults 200": "runs for minutes; tests/bench/test_claim.py is small",
    "python -m tests.bench.extender --requests 500": "takes most of a minute; tests/bench/test_extender.py is small",
    "python -m tests.bench.scale --nodes 1000 5000 15000": "takes two minutes; tests/bench/test_scale.py is small",
    "python -m tests.bench.lines": "counts other lines at each commit; tests/bench/test_lines.py is small",
    "python -m tests.bench.memory": "takes minutes; tests/bench/test_memory.py is small",
    "python -m tests.bench.detectors --rounds 1": "runs for minutes; tests/bench/test_detectors.py tries its counting",
    "python -m tests.bench.storm --nodes 5000 --faults 1000 --ended 20000": "takes minutes; test_storm.py is small",
    "python -m tests.bench.storm --nodes 5000 --faults 1000 --breaker": "takes a minute; test_storm.py is small",
    "python -m tests.bench.evictions --pods 5000 --drains 50": "takes minutes; tests/bench/test_evictions.py is small",
    "python -m tests.bench.growth": "runs for a quarter of an hour; tests/bench/test_growth.py is small",
    "python -m tests.bench.janitor": "takes minutes; tests/bench/test_janitor.py is small",
    "python -m tests.bench.janitor_watch": "takes minutes; tests/bench/test_janitor.py is small",
    "python -m tests.contract.page_pictures /usr/bin/chromium": "draws; tests/remediator/web/page/test_in_a_browser.py",
    "python -m tests.cluster.dashboards.pictures": "works for a minute; tests/cluster/dashboards draws one, shorter",
    "python -m tests.bench.watchdog": "measures for two minutes; tests/bench/test_watchdog.py is small",
    "python -m tests.bench.attacks": "takes two minutes; tests/bench/test_attacks.py has its attacks, short",
    "kubectl -n remediator-system port-forward service/remediator-extender 8443": "runs until it is ended",
    "kubectl -n remediator-system port-forward service/remediator-page 8446:443": "runs until it is ended",
    "kubectl label namespace ingress-nginx remediator.dev/reads-page=true": "names a namespace of an example",
    "kubectl debug node/gpu-17 -n kube-system --profile=sysadmin --image=busybox -it": "takes a terminal",
    "kubectl debug": "is said of the command above it, which is run",
    "kubectl drain": "is named, not meant to be run",
    "kubectl drain gpu-17 --dry-run=server --ignore-daemonsets": "lists what it would keep, with exit 1",
    "kubectl -n kube-system run bmc-check --rm -i --quiet --restart=Never "
    "--image=registry.invalid/remediator/node:0.1.0 -- python3 -I -S /opt/remediator/operations/power_cycle.py "
    "--dry-run < bmc-gpu-17.json": "needs a BMC; tests/operations/test_bmc_identity.py has one",
    "python3 -I -S operations/power_cycle.py --dry-run": "needs a BMC; tests/operations/test_bmc_identity.py has one",
    "kubectl apply -k my-cluster": "its file stands above it; tests/contract/test_hosts.py builds it",
    "kubectl create -f reboot-gpu-17.yaml": "its file stands above it, and is tried with every manifest of the pages",
    **{
        f"remediator {command} NODE": "no case of the pages waits for it; tests/remediator/test_cli_orders.py has some"
        for command in ("approve", "release", "retry")
    },
    **{
        f"remediator {words}": "asks before it disturbs; tests/remediator/test_cli_operate.py answers"
        for words in ("reboot NODE", "drain NODE", "reboot gpu-17")
    },
    **{
        f"remediator {words}": "takes a node out or puts one back; tests/remediator/test_cli_take_out.py does both"
        for words in ("take-out NODE --for 3d", "take-out NODE --for LENGTH", "put-back NODE", "put-back gpu-2")
    },
    "remediator retire NODE": "marks a Machine of Cluster API; tests/remediator/test_cli_retire.py has one",
    **{
        f"helm {words}": "needs images that a cluster can pull; tests/cluster/test_chart.py does it with made-up nodes"
        for words in (
            "test remediator --namespace remediator-system",
            "uninstall remediator --namespace remediator-system --timeout 65m",
            "install remediator build/chart --namespace remediator-system --create-namespace --values values.yaml",
            "upgrade remediator build/chart --namespace remediator-system --values values.yaml",
            "rollback remediator 1 --namespace remediator-system",
        )
    },
    "kubectl --namespace remediator-system get configmap remediator-defaults -o jsonpath='{.data.report}'": (
        "needs the chart; tests/cluster/test_chart.py reads it"
    ),
    "kubectl taint node NODE broken=true:NoSchedule": "tests/remediator/test_cli_uninstall.py taints one",
    **{
        f"kubectl delete {words}": "takes away what the other commands of the pages are tried on"
        for words in (
            "-k deploy",
            "-f deploy/controller.yaml -f deploy/endpoints.yaml -f deploy/node-problem-detector.yaml",
            "-f deploy/rbac.yaml -f deploy/rbac-users.yaml -f deploy/admission",
            "crd -l app.kubernetes.io/name=remediator",
        )
    },
    "kubectl -n remediator-system rollout restart deployment remediator": (
        "restarts the controller that the other commands of the pages are tried on"
    ),
    "remediator status --check": "no replica leads here; tests/remediator/test_cli_uninstall.py has one that does",
    "remediator uninstall": "asks before it cancels cases; tests/remediator/test_cli_uninstall.py answers",
    "kubectl remediator status": "needs the plugin on PATH; tests/remediator/test_cli_kubectl.py puts it there",
    "kubectl apply -f deploy/monitoring/podmonitor.yaml -f deploy/monitoring/prometheusrule.yaml": (
        "needs the kinds of the Prometheus Operator; tests/cluster/test_alerts.py evaluates the rules"
    ),
    "sed 's#https://runbooks.invalid/docs#https://git.example.org/remediator/blob/main/docs#' "
    "deploy/monitoring/prometheusrule.yaml | kubectl apply -f -": (
        "needs the kinds of the Prometheus Operator; tests/contract/test_alerts.py holds each address to begin so"
    ),
    "kubectl get nodeoperationtemplates,noderemediationtemplates,nodedisruptionbudgets -o yaml": (
        "needs the kinds of node-operation-controller"
    ),
    "kubectl taint node NODE nodeops.k8s.preferred.jp/operating-": "needs a node that it has tainted",
    "kubectl get noderepairs -A": "needs deploy/requests; tests/cluster/e2e/test_outside_requests.py applies it",
    "remediator --install-completion": "writes into the start-up file of your shell",
    "kubectl annotate pod -n training trainer-0 remediator.dev/evict=true": "names a Pod of an example",
}

# What the embedded server does not serve: tried on the real one only.
NOT_EMBEDDED: Mapping[str, str] = {
    "kubectl debug ": "kubectl makes its Pod in protobuf",
    "kubectl create clusterrole": "kubectl makes roles and their bindings in protobuf",
    " scale deployment ": "deployments have no subresource scale",
}


def on_embedded(recipe: Recipe) -> bool:
    """Whether the embedded server can answer every command of the recipe."""
    return not any(part in command.text for command in recipe.commands for part in NOT_EMBEDDED)


def needs(command: Command) -> set[str]:
    """The programs that a command starts; what kubectl runs on a node needs no kubectl here."""
    found = set(programs(command.text))
    return found - CLUSTER if is_on_node(command) else found


def asks_a_server(command: Command) -> bool:
    """Whether an API server, or the controller, must be there to answer."""
    reads_files = command.text.startswith(("remediator lint", "remediator extender", "remediator convert"))
    return bool(needs(command) & {"curl", "remediator"}) and (not reads_files or "--kubeconfig" in command.text)


def is_on_node(command: Command) -> bool:
    """Whether kubectl only carries a command to a node, where a simulated one stands."""
    words = command.text.split()
    return "--" in words and bool({"exec", "debug"} & set(words[: words.index("--")]))


def strangers(recipes: Iterable[Recipe]) -> list[str]:
    """Commands that neither a test runs nor the table above excuses, with their place."""
    tried = EVERYWHERE | TOOLS | CLUSTER
    return [
        f"{recipe.title}: {command.text}"
        for recipe in recipes
        for command in recipe.commands
        if command.text not in APART and not needs(command) <= tried
    ]


def tried(recipe: Recipe, available: frozenset[str]) -> list[Command]:
    """The commands of a recipe that can be run where these programs are."""
    return [one for one in recipe.commands if one.text not in APART and needs(one) <= available | TOOLS]


def wanting(available: frozenset[str]) -> list[Recipe]:
    """Recipes of which something can be run where these programs are, each text once."""
    return list({tuple(tried(one, available)): one for one in ALL if tried(one, available)}.values())
