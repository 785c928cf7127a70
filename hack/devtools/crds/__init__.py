"""Where the CustomResourceDefinitions in ``crds/`` come from.

The job kinds share most of their schemas (pod templates, run policies, status), and a rule mended in one file must not
stay broken in another. So ``crds/*.yaml`` is written from here, by ``make crds`` (``PYTHONPATH=hack python -m
devtools.crds``); with ``--check`` it only tells whether the files are up to date. One module per kind says what is its
own.
"""
