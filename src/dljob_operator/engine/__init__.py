"""The embedded engine: it caches the watched objects, queues jobs to reconcile, and runs roles through the runner.

transforms, predicates, outcome, conditions, requests         pure functions
queue, cache, resource_versions                               state, with injected clocks and no I/O
kube, discovery, informer, events, status, finalizers, crds   the API server
controller                                                    connects them
"""
