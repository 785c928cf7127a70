"""Generates the CustomResourceDefinitions in ``crds/``.

The job kinds share most of their schemas (pod templates, run policies, status), and generating them keeps the shared
parts equal. ``make crds`` (``PYTHONPATH=hack python -m devtools.crds``) writes ``crds/*.yaml``; with ``--check`` it
only reports whether the files are up to date. One module per kind defines what is specific to the kind.
"""
