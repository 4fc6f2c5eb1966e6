"""The only place that knows Kubernetes: wire/ HTTP, runtime/ watch, queue and lease, api/ types, manifests/ CRDs."""
