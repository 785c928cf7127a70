"""The local Kubernetes cluster: a real kind cluster, on the user's Docker or on one started here.

Run as ``PYTHONPATH=hack python -m devtools.cluster <command>``. DefaultProgram library and PyYAML only, so that a bare
machine can run it before anything is installed.
"""
