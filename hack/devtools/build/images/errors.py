"""The exception that the tool reports to its user."""

from __future__ import annotations

from devtools.testbed.base.errors import ClusterError


class ImagesError(ClusterError):
    """An image cannot be built or pushed; has the problem and its fix."""
