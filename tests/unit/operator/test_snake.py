from __future__ import annotations

import pytest

from dljob_operator.snake import keys_to_snake, snake_case

# What ansible-operator 1.42.3 makes of these names; the odd ones among them too, since roles see them.
_AS_ANSIBLE_OPERATOR = {
    "replicas": "replicas",
    "cleanPodPolicy": "clean_pod_policy",
    "ttlSecondsAfterFinished": "ttl_seconds_after_finished",
    "serverURLs": "server_urls",
    "URLServer": "url_server",
    "httpGet": "http_get",
    "HTTPGet": "http_get",
    "PsRootPort": "_ps_root_port",
    "egressIPs": "egress_ips",
    "podIP": "pod_ip",
    "sizeK8sBuckets": "size_k8s_buckets",
    "k8s_var": "k8s_var",
    "_CanYou_Handle_mixedVars": "_can_you_handle_mixed_vars",
    "app-name": "app_name",
    "nvidia.com/gpu": "nvidia.com/gpu",
    "openAPIV3Schema": "open_apiv3_schema",
    "stubPKCS10Request": "stub_pkcs10_request",
    "888": "888",
    "aB": "ab",
    "HTTP": "__http",
    "HTTPS": "http_s",
    "IPsegress": "_ips_egress",
    "x__y": "x__y",
}


@pytest.mark.parametrize(("name", "snake"), _AS_ANSIBLE_OPERATOR.items())
def test_a_name_becomes_what_ansible_operator_makes_of_it(name: str, snake: str) -> None:
    assert snake_case(name) == snake


def test_keys_are_changed_however_deep_and_values_are_not() -> None:
    spec = {"runPolicy": {"nodeSelector": [{"diskType": "someValue"}]}, "count": 3}
    assert keys_to_snake(spec) == {"run_policy": {"node_selector": [{"disk_type": "someValue"}]}, "count": 3}
