"""No field of a policy's spec is accepted by the API server and then forgotten."""

from pathlib import Path

from remediator.kube import api
from remediator.kube.api.decode import policies


def test_every_field_of_a_policy_is_read_where_it_is_decoded() -> None:
    source = Path(policies.__file__).read_text()
    forgotten = [name for name in api.RemediationPolicySpec.__struct_fields__ if f"spec.{name}" not in source]
    assert forgotten == ["all_nodes"]  # only the CEL rule beside nodeSelector asks for it
