from __future__ import annotations

import os
import subprocess
import sys

from devtools.lab.bench import account, processes
from devtools.lab.bench.observer import conditions

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


def test_stat_of_a_process_with_an_awkward_name() -> None:
    line = "7 (a) b) (c) S 3 7 7 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7"
    assert processes.parse_stat(line) == (3, 100)


def test_the_tree_counts_children_and_those_that_have_ended() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))']); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        assert processes.cpu_seconds(process.pid) > 0.02
        assert process.pid in processes.tree(os.getpid())
        assert processes.memory(process.pid) > 2**20
        process.stdin.close()
    assert processes.tree(process.pid) == {}


def test_conditions_that_hold() -> None:
    status = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "False"}]}
    assert conditions(status) == {"Created"}
    assert conditions({}) == set()
