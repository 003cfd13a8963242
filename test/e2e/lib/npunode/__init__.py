"""A real one-node Kubernetes in its own namespaces, with a mock NPU node under it."""
