"""The example images: real training programs, under the image names that manifests use.

``python -m devtools.build.images build``. ``build/images`` has one folder per image (``image.toml``,
``Dockerfile``, pins) and one file per base image (``bases/``); adding an image is adding such a folder. Nothing in a
Dockerfile needs the network: wheels are downloaded on the host, and a base image that cannot be pulled is built from
Debian's packages.
"""

from devtools.build.images.build import build_and_push

__all__ = ["build_and_push"]
