"""The embedded engine: it keeps what it watches in memory, queues what must be reconciled, and has roles run.

transform, triggers, outcome, conditions   pure: what is kept, what matters, what a run came to
queue, cache, versions                state, with injected clocks and no I/O
kube, discovery, informer, events, status, finalizers, crds   the API server
controller                            ties them together
"""
