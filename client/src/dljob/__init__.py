"""Distributed training jobs on Kubernetes, seen and steered from a laptop.

Imports nothing of the operator, and needs no Ansible.
"""

from __future__ import annotations

__version__ = "0.1.0"
