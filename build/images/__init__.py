"""The example images: real training programs, under the names that manifests ask for.

Run as ``PYTHONPATH=build python -m images build``. One folder an image (``image.toml``, ``Dockerfile``, pins), one
file a base image (``bases/``); adding an image is adding such a folder. Nothing in a Dockerfile needs the network:
wheels are downloaded on the host, and where a base image cannot be pulled it is made from Debian's packages.
"""

from images.build import build_and_push

__all__ = ["build_and_push"]
