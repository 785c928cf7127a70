"""The one exception that a user of the tool gets to see."""

from __future__ import annotations

from devtools.cluster.errors import ClusterError


class ImagesError(ClusterError):
    """An image that cannot be built or pushed: what is wrong, and what would fix it."""
