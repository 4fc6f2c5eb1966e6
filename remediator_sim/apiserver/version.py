"""The version of Kubernetes that the embedded server and its nodes say they are."""

KUBERNETES = "v1.37.1"
