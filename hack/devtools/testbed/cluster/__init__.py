"""The local Kubernetes cluster: a real kind cluster, on the user's Docker or on `devtools.testbed.offline`'s.

Run as ``PYTHONPATH=hack python -m devtools.testbed.cluster <command>``. It imports only the standard library
and PyYAML, so that it runs on a machine where nothing has been installed yet.
"""
