"""Generates what follows from the frameworks' declarations, ``roles/*/vars/main.yml``.

    model            a framework, read from its role
    openapi          builders of schemas and CEL rules
    pod_schema, template
                     the fields of pods, and the template of a replica
    entries, layouts the replicas of a job: a list, a map, or one entry
    options          the other fields of a spec; run_policy.yaml is one of them
    status           what is around the spec; status.yaml
    schema           the schema of a kind, from these parts and the declared fields and rules
    any_framework    the same for DLJobs
    definition       crds/
    watches          watches.yaml
    role_files       tasks and meta of the roles
    rbac, user_roles, admission
                     the rules of deploy/kustomize for the kinds of jobs, and for what only one framework needs
    files            all of them, for this tree or for a role outside of it

``make generate`` writes the files, and ``make lint`` fails for a stale one.
"""
