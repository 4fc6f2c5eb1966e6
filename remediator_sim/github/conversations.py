"""The comments of a whole repository, reactions to them, and what who wrote them may do there."""

from datetime import timedelta

from remediator_sim.github.handlers import GitHubState
from remediator_sim.github.refusal import not_found
from remediator_sim.github.request import GithubAnswer, GithubRequest


def all_comments(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """The comments of every issue of a repository, by when they were made or changed last."""
    home, since = github.issues(request), request.moment("since")
    seen = home.as_of(request.at - timedelta(seconds=github.list_lag))
    pairs = [(issue, written) for issue in seen for written in issue.comments]
    pairs = [pair for pair in pairs if since is None or (pair[1].edited or pair[1].at) >= since]
    by_change = request.choice("sort", "created", "updated") == "updated"
    pairs.sort(key=lambda pair: ((pair[1].edited or pair[1].at) if by_change else pair[1].at, pair[1].id))
    if request.choice("direction", "asc", "desc") == "desc":
        pairs.reverse()
    return github.listed(request, pairs, lambda pair: github.bodies.comment(*pair))


def react(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """Add a reaction: 200 where it stands there already."""
    home, content = github.issues(request, write=True), request.body["content"]
    commented = github.store.commented(home.name, int(request.parts["comment"]))
    if commented is None:
        raise not_found()
    issue, written = commented
    ours = (github.store.bot, content)
    known = ours in written.reactions
    if not known:
        written = github.store.rewrite(issue, written, reactions=(*written.reactions, ours))
    return GithubAnswer(200 if known else 201, github.bodies.reaction(written, *ours))


def permission(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return GithubAnswer(200, github.bodies.permission(github.repo(request).name, request.parts["login"]))
