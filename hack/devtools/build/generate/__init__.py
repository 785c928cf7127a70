"""Generates what follows from the frameworks' declarations, ``roles/*/vars/main.yml``.

    model            a framework, read from its role
    openapi          builders of schemas and CEL rules
    template, options, status, replica_list, replica_map, replica_single
                     the parts of a job's schema
    cel              the declaration's own CEL rules
    schema           the schema of a kind, from these parts
    definition       crds/
    watches          watches.yaml
    role_files       tasks and meta of the roles
    rbac             the rules of deploy/kustomize for the kinds of jobs, and for what only one framework needs
    files            all of them, for this tree or for a role outside of it

``make generate`` writes the files, and ``make lint`` fails for a stale one.
"""
