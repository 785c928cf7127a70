"""`make images MANIFESTS=<dir>`: the local registry serves the image names that the manifests of a folder use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml
from devtools.build.collection.environment import environ
from devtools.build.images import context, definition, remote
from devtools.paths import ROOT
from devtools.testbed.base.settings import settings_from
from devtools.testbed.base.state import StateFile
from support.upstream_manifests import preferred

NAME = "registry.example.com/another/mxnet:1"


def test_make_images_serves_the_names_of_another_folder(images: None, tmp_path: Path) -> None:
    manifest = preferred("mxjob-linear-dist.yaml")
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["containers"][0]["image"] = NAME
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    command = ["make", "images", f"MANIFESTS={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, env=environ(MAKEFLAGS=""), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    served = done.stdout.splitlines()
    mxnet = definition.load("mxnet")
    assert {NAME, *mxnet.names} <= set(served)
    assert remote.content(StateFile(settings_from().state_dir).load().registry_port, NAME) == context.key(mxnet)
