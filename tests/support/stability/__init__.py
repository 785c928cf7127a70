"""An explicit-state model of one job, its operator and its surroundings, for the property "eventually stable".

From every state that API server, kubelet, tenants and a faulty operator can reach, the job reaches its desired state once
its surroundings are quiet, and stays there without further writes. The operator's part of the model is the product itself:
``parse_job``, ``build_observed_state``, ``plan`` and ``conclude``.

- ``state.py``: a state of the model, hashable, with times relative to now
- ``scenarios.py``: the jobs that are explored
- ``api_server.py``: applies the writes of a plan to a state
- ``reconciler.py``: the operator: complete, interrupted, stale and denied reconciles
- ``surroundings.py``: kubelet, tenants and time
- ``policies.py``: what the rules, limits and start orders of a job ask for
- ``invariants.py``: what must hold at each write
- ``convergence.py``: the path of a state to its fixed point, and whether that is the desired state
- ``explorer.py``: visits states by a fixed seed; ``python -m support.stability`` reports its figures

The model leaves out JAXJobs, XGBoostJobs and PaddleJobs, replicas that a batch Job runs, adopted pods, and jobs of more than
four replicas. It has no invalid edits, sidecars, nodes that never report a pod's end, observations older than one
transition, nor two objects of one name in succession.
"""
