from __future__ import annotations

from devtools.testbed import account

METRICS = """
# HELP apiserver_flowcontrol_dispatched_requests_total [BETA] Number of requests
apiserver_flowcontrol_dispatched_requests_total{flow_schema="dljob-bench-reads",priority_level="workload-low"} 12
apiserver_flowcontrol_dispatched_requests_total{flow_schema="dljob-bench-writes",priority_level="workload-low"} 1.5e+03
apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} 99
"""


def test_the_api_servers_count() -> None:
    assert account.counts(METRICS) == (12.0, 1500.0)
    assert account.counts("") == (0.0, 0.0)


def test_the_sizes_of_the_api_server_and_its_storage() -> None:
    metrics = (
        "process_resident_memory_bytes 6.29145600e+08\n"
        'apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} 1.048576e+06\n'
    )
    assert account.sizes(metrics) == {"api_server_bytes": 629145600.0, "storage_bytes": 1048576.0}
    assert account.sizes("") == {"api_server_bytes": 0.0, "storage_bytes": 0.0}


def test_reads_and_writes_are_counted_separately_for_this_account_only() -> None:
    for name in (account.READS, account.WRITES):
        (rule,) = account.flow_schema(name, 8000)["spec"]["rules"]
        assert rule["subjects"][0]["serviceAccount"] == {"namespace": "dljob-bench", "name": "peer"}
    reads, writes = (set(account.flow_schema(n, 1)["spec"]["rules"][0]["resourceRules"][0]["verbs"]) for n in (account.READS, account.WRITES))  # fmt: skip
    assert not reads & writes
