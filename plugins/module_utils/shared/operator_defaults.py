"""What the administrator sets for all jobs: the values of command-line options and of environment variables.

The command line checks its options with these functions, and the action plugin the variables by which it gets them.
Each raises ValueError with a sentence that begins with the value. The action plugin takes the default where a variable
is not set; on the command line an empty value is one only where the function says what it means.
"""

from __future__ import annotations

import re

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    CLOUDS,
    KUEUE_WORKLOADS,
    SERVICES,
    TERMINATION_MESSAGE_POLICIES,
)

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def cloud(text: str) -> str:
    """One of CLOUDS, or "" for another one."""
    if text not in ("", *CLOUDS):
        raise ValueError(f"{text!r} is neither {' nor '.join(CLOUDS)}; leave it empty on other clouds")
    return text


def force_delete_after(text: str) -> int | None:
    """Seconds after the grace period of a pod on a lost node, None for ""."""
    if text and not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of seconds; leave it empty for never")
    return int(text) if text else None


def termination_message_policy(text: str) -> str:
    """One of TERMINATION_MESSAGE_POLICIES."""
    if text not in TERMINATION_MESSAGE_POLICIES:
        raise ValueError(f"{text!r} is neither {' nor '.join(TERMINATION_MESSAGE_POLICIES)}")
    return text


def services(text: str) -> str:
    """One of SERVICES."""
    if text not in SERVICES:
        raise ValueError(f"{text!r} is neither {' nor '.join(SERVICES)}")
    return text


def kueue(text: str) -> bool:
    """Whether the operator creates Kueue's Workloads: KUEUE_WORKLOADS, or "" for not."""
    if text not in ("", KUEUE_WORKLOADS):
        raise ValueError(f"{text!r} is not {KUEUE_WORKLOADS}; leave it empty for Kueue's own integration")
    return bool(text)


def cluster_domain(text: str) -> str:
    """A DNS domain, or "" for none."""
    if text and not _DOMAIN.fullmatch(text):
        raise ValueError(f"{text!r} is no DNS domain, such as cluster.local")
    return text


def image(text: str) -> str:
    """The name of a container image."""
    if not text or any(character.isspace() for character in text):
        raise ValueError(f"{text!r} is no name of an image")
    return text


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is not a number of 1 or more")
    return int(text)


def user_id(text: str) -> int | None:
    """The id of a user other than root, None for "none"."""
    if text == "none":
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise ValueError(f"{text!r} is neither none nor a user id from 1 to {2**31 - 1}")
    return int(text)
