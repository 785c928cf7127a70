"""What is made of the chart of Volcano's module, for a Volcano that runs outside of the cluster."""

from pathlib import Path

from devtools.testbed.cluster import volcano


def test_definitions_are_all_those_of_the_chart(tmp_path: Path) -> None:
    for file, text in {
        "crd/bases/b.yaml": "---\nmetadata: {name: queues}\n",
        "crd/bases/a.yaml": "metadata: {name: groups}\n---\n",
        "crd/v1beta1/a.yaml": "metadata: {name: of-an-old-cluster}\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert [one["metadata"]["name"] for one in volcano.definitions(tmp_path)] == ["groups", "queues"]


def test_two_processes_for_this_cluster_with_the_configuration_of_the_chart() -> None:
    found = volcano.commands(Path("/programs"), Path("/chart"), Path("/kubeconfig"))
    assert [command[0] for command in found.values()] == ["/programs/vc-scheduler", "/programs/vc-controller-manager"]
    for command in found.values():
        assert command[command.index("--kubeconfig") + 1] == "/kubeconfig"
        assert "--leader-elect=false" in command, "it would need a namespace for its lease"
    scheduler, controllers = found.values()
    assert scheduler[scheduler.index("--scheduler-conf") + 1] == "/chart/config/volcano-scheduler.conf"
    assert controllers[controllers.index("--controllers") + 1] == "queue-controller,pg-controller"
