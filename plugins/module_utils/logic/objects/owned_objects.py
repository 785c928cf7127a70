"""The objects that a job owns besides its pods and their Services: what the ``objects`` hook returns.

Each has a hash of its content in an annotation: the operator creates a missing object again, replaces one of other
content, and deletes one that the hook no longer returns. The annotation ``dljob.operator/lifetime`` of its manifest
says how long it lives: ``pods`` (the default) until the operator cleans up after the training, ``job`` until the job is
deleted, ``active`` while the job is neither suspended nor finished. If Kubernetes refuses an object other than those of
``job``, the job fails.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import flavor_labels
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import labels, owner_reference
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import (
    NEVER,
    OWNED_KINDS,
    REPLACE,
    owned_kind,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

Manifest = Mapping[str, Any]
Key = tuple[str, str]
"""The name of the kind in the registry of owned kinds, and that of the object."""


def metadata(job: DLJob, name: str) -> dict[str, Any]:
    """The metadata of an object that ``job`` owns."""
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": {**flavor_labels.of_job(job), **labels(job.uid)},
        "ownerReferences": [owner_reference(job)],
    }


def build(job: DLJob, framework: Framework, cluster: Cluster) -> tuple[Manifest, ...]:
    """The manifests of the ``objects`` hook with labels, owner and hash; raises :class:`InvalidFramework`."""
    if framework.hooks.objects is None:
        return ()
    return tuple(_owned(job, manifest, framework.owns) for manifest in framework.hooks.objects(cluster))


def _owned(job: DLJob, manifest: Manifest, owns: Collection[str]) -> Manifest:
    kind = str(manifest.get("kind"))
    # every job may own ConfigMaps, but the operator may replace only those that a framework declares
    if kind not in owns and not (kind == "ConfigMap" and manifest.get("immutable") is True):
        raise InvalidFramework(
            f"hooks.objects returned the kind {kind!r}: declare it in owns, which has {', '.join(owns) or 'none'}"
        )
    if manifest.get("apiVersion") != OWNED_KINDS[kind].api_version:
        raise InvalidFramework(f"hooks.objects: the apiVersion of {kind} is {OWNED_KINDS[kind].api_version}")
    given = manifest["metadata"]
    annotations = {c.ANNOTATION_LIFETIME: c.LIFETIME_PODS, **(given.get("annotations") or {})}
    if annotations[c.ANNOTATION_LIFETIME] not in c.LIFETIMES:
        raise InvalidFramework(f"hooks.objects: {c.ANNOTATION_LIFETIME} of {kind} must be {' or '.join(c.LIFETIMES)}")
    generated = annotations.get(c.ANNOTATION_GENERATE)
    if generated is not None and (kind != "Secret" or generated not in c.GENERATED):
        raise InvalidFramework(
            f"hooks.objects: {c.ANNOTATION_GENERATE} must be {' or '.join(c.GENERATED)}, on a Secret, not "
            f"{generated!r} on {kind}"
        )
    return marked(job, {**manifest, "metadata": {**given, "annotations": annotations}}, manifest)


def marked(job: DLJob, manifest: Manifest, hashed: Any) -> Manifest:
    """``manifest`` with the owner, the labels and the hash of ``hashed``, by which a changed content shows."""
    given = manifest["metadata"]
    ours = metadata(job, given["name"])
    return {
        **manifest,
        "metadata": {
            **ours,
            "labels": {**(given.get("labels") or {}), **ours["labels"]},
            "annotations": {
                **given["annotations"],
                c.ANNOTATION_SPEC_HASH: content_hash(hashed),
            },
        },
    }


def content_hash(content: Any) -> str:
    """16 characters that stay the same as long as the JSON of ``content`` does."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key_of(manifest: Manifest) -> Key:
    return owned_kind(manifest).name, manifest["metadata"]["name"]


def lives_with_job(manifest: Manifest) -> bool:
    """Whether the object outlives the training."""
    return bool(manifest["metadata"]["annotations"][c.ANNOTATION_LIFETIME] == c.LIFETIME_JOB)


def keys_of_job(manifests: Collection[Manifest]) -> frozenset[Key]:
    """The objects that outlive the training."""
    return frozenset(key_of(manifest) for manifest in manifests if lives_with_job(manifest))


def at_rest(manifests: Collection[Manifest]) -> tuple[Manifest, ...]:
    """Those that also exist while the job is suspended or finished."""
    return tuple(m for m in manifests if m["metadata"]["annotations"][c.ANNOTATION_LIFETIME] != c.LIFETIME_ACTIVE)


def missing(manifests: Collection[Manifest], observed: Observed) -> tuple[Manifest, ...]:
    """Those that do not exist; only of kinds that are watched."""
    return tuple(m for m in manifests if _is_watched(m) and key_of(m) not in observed.owned_objects)


def changed(manifests: Collection[Manifest], observed: Observed) -> tuple[Manifest, ...]:
    """Those that exist with other content and may be replaced."""
    return tuple(m for m in manifests if (found := observed.owned_objects.get(key_of(m))) and _differs(m, found))


def uids_of(manifests: Collection[Manifest], observed: Observed) -> dict[str, str]:
    """The uids of those that exist and are not being deleted, by kind and name as :attr:`.Plan.outdated` has them."""
    found = ((manifest, observed.owned_objects.get(key_of(manifest))) for manifest in manifests)
    return {text_of(manifest): present.uid for manifest, present in found if present and not present.deleting}


def text_of(manifest: Manifest) -> str:
    """Kind and name, as messages have them."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def _differs(manifest: Manifest, found: OwnedObject) -> bool:
    if manifest.get("immutable") or owned_kind(manifest).update == NEVER:
        return False
    return bool(found.hash != manifest["metadata"]["annotations"][c.ANNOTATION_SPEC_HASH])


def _is_watched(manifest: Manifest) -> bool:
    return owned_kind(manifest).watched


def unwatched(manifests: Collection[Manifest]) -> tuple[Manifest, ...]:
    """Those of a kind that no engine watches, because not every cluster serves it: Routes."""
    return tuple(m for m in manifests if owned_kind(m).is_route)


def made_with_pods(manifests: Collection[Manifest]) -> tuple[Manifest, ...]:
    """Those of a kind that no engine watches, because the operator may not list it: Secrets, the account of a launcher.

    They are created with every plan that creates pods. The writer then finds that the job has one already, or that the
    name belongs to somebody else, before a pod can mount it. Where one may be replaced, the writer compares its hash.
    """
    return tuple(m for m in manifests if not _is_watched(m) and not owned_kind(m).is_route)


def revocable(manifests: Collection[Manifest]) -> tuple[Manifest, ...]:
    """Those of :func:`made_with_pods` whose content follows the pods: what a launcher may do with them."""
    return tuple(m for m in made_with_pods(manifests) if owned_kind(m).update == REPLACE)


def with_rights(manifests: Collection[Manifest], unsettled: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """``unsettled``, the objects to write, with the :func:`revocable` ones where their order matters.

    A launcher's rights follow its workers, as the list of hosts in its ConfigMap does. The operator may not list Roles,
    so it writes both where the ConfigMap is missing or differs: first the rights, and the ConfigMap only once they are
    written, so that the next plan writes them again if that fails. Other objects wait for neither.
    """
    rights = revocable(manifests)
    hosts = tuple(x for x in unsettled if x["kind"] == "ConfigMap" and any(x is y for y in manifests))
    if not rights or not hosts:
        return tuple(unsettled)
    return (*(x for x in unsettled if not any(x is y for y in hosts)), *rights, *hosts)


def surplus(manifests: Collection[Manifest], observed: Observed) -> tuple[Deletion, ...]:
    """Deletions of the objects that the hook no longer returns, or returns under another name; none of one that
    terminates."""
    wanted = {key_of(manifest) for manifest in manifests}
    return tuple(
        deletion(key, found)
        for key, found in observed.owned_objects.items()
        if key not in wanted and not found.deleting and is_from_hook(key, found)
    )


def deletions_without_pods(observed: Observed) -> tuple[Deletion, ...]:
    """Deletions of what a job without pods does not need, where its spec is invalid and no hook returns anything."""
    return tuple(
        deletion(key, found)
        for key, found in observed.owned_objects.items()
        if found.lifetime == c.LIFETIME_ACTIVE and not found.deleting
    )


def is_from_hook(key: Key, found: OwnedObject) -> bool:
    """Whether a hook returned the object, not the reconcile itself (the Services of the pods, shared environments)."""
    # releases before the annotation: only a TensorBoard's Deployment, and its Service, which alone had a hash
    return bool(found.lifetime or key[0] == "Deployment" or (key[0] == "Service" and found.hash))


def deletion(key: Key, found: OwnedObject) -> Deletion:
    kind = OWNED_KINDS[key[0]]
    return Deletion(kind.kind, key[1], found.uid, kind.api_version)
