"""The only place that knows Kubernetes' wire: transport, codec, reflector, work queue, elector, API types."""
