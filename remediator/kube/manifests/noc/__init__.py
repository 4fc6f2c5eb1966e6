"""What manifests of PFN's node-operation-controller become here: objects of ours, and notes on what is different."""

from remediator.kube.manifests.noc.convert import Conversion, convert
from remediator.kube.manifests.noc.remark import Note

__all__ = ["Conversion", "Note", "convert"]
