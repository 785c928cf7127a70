"""Images that cannot be pulled: the kubelet quotes the registry, so the words tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dljob.times import time_of
from dljob.why.facts import Container, Facts, first_time, message_of
from dljob.why.finding import Finding, first_match, found, rule
from dljob.why.model import Evidence, Severity

WAITING = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
           "RegistryUnavailable", "SignatureValidationFailed")  # fmt: skip
SLOW = 120.0
"""Seconds of a pull from which it is a cause. Images of a framework have several GiB."""

TABLE = (
    rule("image-name-invalid", "InvalidImageName", "the image name {image} of {who} is not valid",
         "Write the image as registry/name:tag, with lower-case letters."),
    rule("image-never-pulled", "ErrImageNeverPull", "the image {image} of {who} is not on the node, and "
         "imagePullPolicy is Never", "Set imagePullPolicy to IfNotPresent, or load the image on the node."),
    rule("image-rate-limit", "toomanyrequests|429 Too Many Requests|pull rate limit",
         "the registry limits how often {image} is pulled, for {who}",
         "Pull with an account (imagePullSecrets), or from a mirror.", Severity.WARNING),
    rule("registry-certificate", "x509:|certificate signed by|server gave HTTP response to HTTPS client",
         "the node does not trust the registry of {image}, for {who}",
         "Configure the registry's CA, or plain HTTP, in containerd on the nodes."),
    rule("image-unauthorized", r"pull access denied|insufficient_scope|authorization failed|unauthorized|"
         r"40[13] (?:Unauthorized|Forbidden)|no basic auth credentials|denied: ",
         "the registry refuses the image {image} to {who}: it is private, or does not exist",
         "Correct the name, or name a Secret with the login in imagePullSecrets."),
    rule("image-platform", "no match for platform|no matching manifest for", "the image {image} of {who} has no "
         "variant for the node's processor", "Build the image for that platform, or select other nodes."),
    rule("image-disk-full", "no space left on device", "the node of {who} has no space for the image {image}",
         "Free the disk of the node, or use another node.", Severity.WARNING),
    rule("image-signature", "SignatureValidationFailed", "the signature of the image {image} of {who} is refused",
         "Sign the image as the policy of the nodes wants."),
    rule("registry-unreachable", r"no such host|connection refused|i/o timeout|dial tcp|handshake timeout|"
         r"deadline exceeded|network is unreachable|no route to host|server misbehaving|RegistryUnavailable|"
         r"50[0234] (?:Internal|Bad|Service|Gateway)|connection reset|: EOF",
         "the node cannot reach the registry of {image}, for {who}",
         "Correct the registry's name; check DNS, proxy and firewall of the nodes.", Severity.WARNING),
    rule("image-not-found", "not found|manifest unknown|NotFound|does not exist",
         "the registry has no image {image}, for {who}", "Push the image, or correct its name and tag."),
    rule("image-pull", "", "the image {image} of {who} cannot be pulled", "Read the quoted error."),
)  # fmt: skip
SECRET = rule("pull-secret-missing", "FailedToRetrieveImagePullSecret",
              "a Secret in imagePullSecrets of {who} does not exist: the image is pulled without it",
              "Create the Secret in the namespace of the job, or correct its name.")  # fmt: skip
PULLING = rule("image-pulling", "Pulling", "the image {image} is still being pulled, for {who}",
               "Wait; a smaller image, or one that is already on the nodes, starts sooner.", Severity.INFO)  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    for pod in facts.live:
        failing = [one for one in pod.containers if one.waiting.get("reason") in WAITING]
        for container in failing:
            words = _words(facts, container)
            if match := first_match(TABLE, words.replace(container.image, "")):
                quoted = Evidence(f"Pod/{pod.name}", words)
                yield found(match[0], {"image": container.image}, quoted, _since(facts, container), pod.name)
        events = facts.events_of_pod(pod)
        if failing:
            for event in events:
                if SECRET.pattern.search(str(event.get("reason"))):
                    quoted = Evidence(f"Pod/{pod.name}", f"{event['reason']}: {message_of(event)}")
                    yield found(SECRET, {}, quoted, first_time(event), pod.name)
                    break
        elif pod.phase == "Pending" and events and events[-1].get("reason") == "Pulling":
            began = first_time(events[-1])
            if facts.age(began) >= SLOW:
                image = message_of(events[-1]).partition('"')[2].partition('"')[0]
                quoted = Evidence(f"Pod/{pod.name}", message_of(events[-1]))
                yield found(PULLING, {"image": image}, quoted, began, pod.name)


def _words(facts: Facts, container: Container) -> str:
    """Reason and message of the state; in the pause between two pulls also the last error of the Events."""
    words = f"{container.waiting.get('reason')}: {container.waiting.get('message') or ''}"
    if container.waiting.get("reason") != "ImagePullBackOff" or "ErrImagePull" in words:
        return words
    pulls = [message_of(one) for one in facts.events_of_pod(container.pod) if one.get("reason") == "Failed"]
    quoted = [one for one in pulls if container.image in one and one.startswith("Failed to pull")]
    return f"{words} {quoted[-1]}" if quoted else words


def _since(facts: Facts, container: Container) -> datetime | None:
    failed = [one for one in facts.events_of_pod(container.pod) if one.get("reason") == "Failed"]
    return first_time(failed[0]) if failed else time_of(container.pod.status.get("startTime"))
