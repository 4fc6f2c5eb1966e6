"""The routes file: what it may say, and how it is refused."""

from pathlib import Path

import msgspec
import pytest

from remediator.kube.api.ticket_route import TicketRouteSpec
from remediator.tickets.channels.boards import ProjectBoard
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes import Route
from remediator.tickets.channels.routes_file import Listed, load

GOOD = """
cluster: prod-a
default: {repository: org/ops, labels: [ops], assignees: [ann]}
routes:
  gpu: {repository: org/gpu-ops}
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "routes.yaml"
    path.write_text(text)
    return path


def test_a_route_is_found_by_name_and_what_nobody_knows_is_the_default(tmp_path: Path) -> None:
    routes = load(_file(tmp_path, GOOD), problem)
    default, gpu = Route("org/ops", ("ops",), ("ann",)), Route("org/gpu-ops")
    assert routes.find("") == (default, True)
    assert routes.find("gpu") == (gpu, True)
    assert routes.find("tpu") == (default, False)
    assert routes.cluster == "prod-a"
    assert not default.public


def test_a_route_confirms_that_everybody_may_read_its_repository(tmp_path: Path) -> None:
    routes = load(
        _file(tmp_path, "default: {repository: org/a}\nroutes: {b: {repository: Org/A, public: true}}"), problem
    )
    assert {name: route.public for name, route in routes.to("org/a").items()} == {"default": False, "b": True}
    assert routes.to("org/b") == {}


def test_commands_are_taken_only_where_a_route_says_so(tmp_path: Path) -> None:
    text = "default: {repository: org/a}\nroutes: {b: {repository: org/b, commands: true}}"
    assert load(_file(tmp_path, text), problem).commanded == ("org/b",)
    assert load(_file(tmp_path, GOOD), problem).commanded == ()


def test_the_digest_goes_where_its_route_leads(tmp_path: Path) -> None:
    assert load(_file(tmp_path, f"{GOOD}digest: gpu\n"), problem).digest == "gpu"
    assert load(_file(tmp_path, GOOD), problem).digest == ""


def test_a_board_has_the_columns_of_github_unless_told_otherwise(tmp_path: Path) -> None:
    text = "default: {repository: org/a, board: {project: org/7, person: Blocked}}"
    routes = load(_file(tmp_path, text), problem)
    assert routes.default.board == ProjectBoard("org", 7, "Status", "Todo", "In Progress", "Blocked", "Done")
    assert (routes.boards, load(_file(tmp_path, GOOD), problem).boards) == (True, False)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("default: {repository: org/a, board: {project: seven}}", "default.board.project"),
        ("default: {repository: org/a, board: {project: org/7, columns: {}}}", "columns"),
        ("default: {repository: org/a}\ndigest: gpu", "digest names route 'gpu'"),
        ("", "object"),
        ("routes: {}", "default"),
        ("default: {labels: [a]}", "repository"),
        ("default: {repository: just-a-name}", "default.repository"),
        ("default: {repository: org/a}\nroutes: {gpu: {repository: 'org/a b'}}", "routes.gpu.repository"),
        ("default: {repository: org/a, label: [x]}", "label"),
        ("default: {repository: org/a, public: 1}", "default.public"),
        ("default: {repository: org/a, labels: x}", "default.labels"),
        ("default: {repository: org/a, assignees: [a,b,c,d,e,f,g,h,i,j,k]}", "default.assignees"),
        (f"default: {{repository: org/a, labels: [{'x' * 51}]}}", "default.labels"),
        ("default: {repository: org/a, labels: ['']}", "default.labels"),
        ("default: {repository: org/a}\nrouts: {}", "routs"),
        ("default: [", "line 1: expected the node content"),
        ("default: {repository: org/a}\ncluster: !!timestamp 2024-13-45", "line 2: '2024-13-45' is no timestamp"),
        ("default: {repository: org/a}\ncluster: !!int x", "line 2: 'x' is no int"),
        ("default: {repository: org/a}\nroutes: {}\nroutes: {}", "line 3: the key 'routes' is given twice"),
        ("default: {repository: org/a}\n---\ncluster: a", "line 3: a second document"),
        ("[" * 3000, "more than 100 levels"),
    ],
)
def test_a_wrong_file_is_refused_by_file_field_and_remedy(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"routes\.yaml: ") as refused:
        load(_file(tmp_path, text), problem)
    assert named in str(refused.value)
    assert "correct" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.yaml"):
        load(tmp_path / "nowhere.yaml", problem)


def test_the_file_in_the_documentation_is_right(tmp_path: Path) -> None:
    document = (Path(__file__).parents[3] / "docs/tickets.md").read_text()
    example = "cluster:" + document.split("```yaml\ncluster:")[1].split("```")[0]
    assert load(_file(tmp_path, example), problem).find("gpu")[0].repository == "org/gpu-hardware"


REPOSITORIES = {"org/ml": True, "org/.github": True, "org/..a": True, f"org/{'x' * 100}": True}
REPOSITORIES |= {"org/.": False, "org/..": False, "org/": False, "org/a/b": False, "o.g/a": False}


@pytest.mark.parametrize(("name", "right"), REPOSITORIES.items())
def test_what_a_repository_is_called_is_one_form_in_routes_lists_and_objects(name: str, right: bool) -> None:
    def taken(value: object, form: object) -> bool:
        try:
            msgspec.convert(value, form)
        except msgspec.ValidationError:
            return False
        return True

    spec = {"match": {"severity": ["Critical"]}, "repository": name}
    found = (problem(Route(name)) == "", taken(name, Listed), taken(spec, TicketRouteSpec))
    assert found == (right, right, right)
