"""A custom kind that has one of everything that our own kinds use."""

from typing import Any

from tests.contract.api.calls import Api
from tests.harness.waiting import until

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["node"],
    "properties": {
        "node": {**TEXT, "minLength": 1, "maxLength": 63},
        "mode": {**TEXT, "enum": ["Enforce", "DryRun"], "default": "Enforce"},
        "wait": {**TEXT, "pattern": r"^\d+[smh]$"},
        "rungs": {**WHOLE, "minimum": 1, "maximum": 10},
        "limit": {"x-kubernetes-int-or-string": True},
        "since": {**TEXT, "format": "date-time"},
        "caseUID": {
            **TEXT,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "caseUID cannot change"}],
        },
        "verify": {
            "type": "object",
            "default": {},
            "properties": {"settle": {**TEXT, "default": "5m"}, "probe": TEXT},
        },
        "when": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {"type": "object", "required": ["condition"], "properties": {"condition": TEXT, "for": TEXT}},
        },
        "labels": {"type": "object", "additionalProperties": TEXT},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "low": {**WHOLE},
        "high": {**WHOLE},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not pass high"},
        {
            "rule": "!has(self.rungs) || self.rungs != 7",
            "messageExpression": "'seven rungs on ' + self.node + ' are not served'",
            "fieldPath": ".rungs",
            "reason": "FieldValueForbidden",
        },
    ],
}
STATUS = {
    "type": "object",
    "properties": {"phase": TEXT, "observedGeneration": WHOLE, "claims": {"type": "array", "items": TEXT}},
}
COLUMNS = [
    {"name": "NODE", "type": "string", "jsonPath": ".spec.node"},
    {"name": "PHASE", "type": "string", "jsonPath": ".status.phase"},
    {"name": "RUNGS", "type": "integer", "jsonPath": ".spec.rungs", "priority": 1},
    {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


class Widgets:
    """A cluster-scoped kind named after `plural`, with a status subresource."""

    def __init__(self, plural: str) -> None:
        self.plural, self.group, self.kind = plural, f"{plural}.example.com", plural.capitalize()
        self.path = f"/apis/{self.group}/v1/{plural}"
        self.crd_path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{self.group}"

    async def create(self, api: Api) -> None:
        """Create the CRD and wait until its kind is served."""
        (await api.post(self.crd_path.rpartition("/")[0], self.crd())).ok(201)
        await until(lambda: self.established(api))

    async def established(self, api: Api) -> bool:
        """Whether it is served, and discovery says so: the two are not told by one controller."""
        conditions = (await api.get(self.crd_path)).ok().get("status", {}).get("conditions") or []
        said = {one["type"]: one["status"] for one in conditions}
        if said.get("Established") != "True" or (await api.get(self.path)).status != 200:
            return False
        found = (await api.get(f"/apis/{self.group}/v1")).body.get("resources", [])
        return self.plural in {one["name"] for one in found}

    def crd(self) -> dict[str, Any]:
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": COLUMNS,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
        }
        names = {
            "plural": self.plural,
            "kind": self.kind,
            "shortNames": [f"{self.plural}sh"],
            "categories": [f"{self.plural}toys"],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}"},
            "spec": {"group": self.group, "scope": "Cluster", "names": names, "versions": [version]},
        }

    def body(self, name: str, **spec: Any) -> dict[str, Any]:
        """One object; its spec names a node unless told otherwise."""
        version = f"{self.group}/v1"
        return {
            "apiVersion": version,
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {"node": "gpu-1", **spec},
        }


def schema_of_spec(crd: dict[str, Any]) -> dict[str, Any]:
    """The part of a CRD that says what a spec may be."""
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
