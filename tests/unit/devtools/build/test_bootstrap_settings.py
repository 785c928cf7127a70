"""uv gets pip's index, certificates and proxy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from devtools.build import bootstrap
from devtools.build.bootstrap import NoUv, settings, variables

LISTING = """\
:env:.find-links='/wheels /more'
:env:.progress_bar='off'
download.index-url='https://download.example/simple'
global.cert='/etc/ca.pem'
global.index-url='https://global.example/simple'
global.trusted-host='a.example\\nb.example'
install.index-url='https://install.example/simple'
"""


def test_the_later_section_wins_and_other_commands_do_not_count() -> None:
    assert settings(LISTING) == {
        "cert": "/etc/ca.pem",
        "find-links": "/wheels /more",
        "index-url": "https://install.example/simple",
        "progress-bar": "off",
        "trusted-host": "a.example\nb.example",
    }


def test_the_environment_wins_and_an_empty_value_does_not_count() -> None:
    listing = ":env:.index-url='https://env.example'\nglobal.proxy=''\ninstall.index-url='https://install.example'\n"
    assert settings(listing) == {"index-url": "https://env.example"}


def test_each_setting_becomes_uvs_variable() -> None:
    assert variables(settings(LISTING), {}) == {
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_DEFAULT_INDEX": "https://install.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INSECURE_HOST": "a.example b.example",
    }


def test_several_indexes_are_equal_as_for_pip() -> None:
    assert variables({"extra-index-url": "https://a.example\nhttps://b.example"}, {}) == {
        "UV_INDEX": "https://a.example https://b.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_a_variable_that_is_set_for_uv_stays() -> None:
    assert variables({"index-url": "https://pip.example"}, {"UV_DEFAULT_INDEX": "https://uv.example"}) == {}


def test_a_setting_without_counterpart_is_named() -> None:
    with pytest.raises(NoUv, match="only-binary"):
        variables({"only-binary": ":all:"}, {})


def test_pip_lists_its_settings_in_this_form() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "https://it's.example/simple"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert settings(done.stdout)["index-url"] == "https://it's.example/simple"


def test_no_setting_is_both_translated_and_without_effect() -> None:
    assert not bootstrap.WITHOUT_EFFECT & bootstrap.VARIABLES.keys()
