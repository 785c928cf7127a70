"""A test runs every command in the documents: the one named in RUN_BY, or this one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from devtools.build import stamp
from devtools.build.collection.environment import environ
from support.documents import DOCUMENTS, ROOT, commands
from support.live_jobs import Cluster, v1_job

LIFECYCLE = "tests/integration/test_cluster_lifecycle.py::test_up_use_kill_up_down_leaves_the_machine_as_it_was"
DEMO = "tests/e2e/test_demo.py::test_demo_trains_and_leaves_nothing"
HERE = "here"
DEPLOYED = "tests/e2e/test_deployment.py::test_a_job_runs"
PRINTED = "tests/e2e/test_kubectl.py::test_as_the_documents_print_it"
BASE = "a registry or a base image that tests do not have; the same with the base made here is run"
RELEASE = "it publishes: only a maintainer types it"
MENTION = "no command to type: the name of a program or of what it does"

RUN_BY = {
    r"make": HERE,
    r"make demo( KEEP=1)?": DEMO,
    r"make test": ".ci/run",
    r"make test-quick": "tests/unit/devtools/checks/suite/test_suite_parts.py::test_the_quick_run_is_linters_and_unit_tests",
    r"make test-full": "tests/unit/devtools/checks/suite/test_suite_parts.py::test_the_longest_tests_are_for_the_full_run",
    r"make test PART=\S+": "tests/unit/devtools/checks/suite/test_suite_parts.py::test_a_part_alone_runs_its_files_and_no_others",
    r"make (venv|lint)": ".ci/run",
    r"make (generate|crds)": "tests/integration/docs/test_commands.py::test_what_is_generated_is_as_it_should_be",
    r"make hooks": "tests/integration/tooling/test_hooks.py::test_git_refuses_a_commit_whose_subject_is_not_imperative",
    r"make commits": "tests/unit/forge/test_subjects.py::test_make_checks_the_commits_since_the_base",
    r"make changelog": "tests/integration/tooling/test_changelog.py::test_a_fragment_goes_into_the_section_of_the_version",
    r"PYTHONPATH=hack .venv/bin/python -m devtools.build.generate --role \S+ --output \S+": "tests/unit/devtools/build/generate/test_files.py::test_a_role_outside_of_the_tree",
    r"PYTHONPATH=hack python -m devtools.build.release check v0\.1\.0": "tests/unit/devtools/build/test_release.py::test_the_command_reads_the_files_of_this_tree",
    r"PYTHONPATH=tests python -m support\.stability \d+": "tests/unit/stability/test_stability.py::test_the_command_prints_the_figures",
    r"PYTHONPATH=tests python -m unit\.perturbation": "tests/unit/perturbation/test_campaign.py::test_every_position_is_tried_and_counted",
    r"git (tag|push) .*": RELEASE,
    r"make mutation( .*)?": "tests/unit/devtools/checks/mutation/test_command.py::test_a_mutant_that_a_test_notices_is_killed",
    r"make sanity": "tests/integration/collection/test_checks.py::test_sanity",
    r"make test-oldest": "tests/integration/collection/test_oldest.py::test_units_with_the_oldest_versions",
    r"make test-previous": ".github/workflows/test.yml",
    r"make version": "tests/integration/docs/test_commands.py::test_what_is_generated_is_as_it_should_be",
    r"make docs-site": "tests/integration/docs/test_site.py::test_every_document_is_a_page",
    r"make docs": "tests/integration/docs/test_commands.py::test_what_is_generated_is_as_it_should_be",
    r"make bundle( IMG=\S+)?": "tests/unit/devtools/build/olm/test_bundle.py::test_files_are_what_their_sources_say",
    r"git archive HEAD \| docker build -f build/bundle\.Dockerfile .*": "tests/unit/devtools/build/olm/test_bundle.py::test_the_images_labels_are_the_annotations",
    r"make (cluster|cluster-down|kwok-nodes N=\d+)": LIFECYCLE,
    r"make cluster K8S=\S+": "tests/unit/devtools/testbed/base/test_settings.py::test_the_version_of_kubernetes",
    r"make cluster-status": HERE,
    r"make images( MANIFESTS=\S+)?": "tests/e2e/test_images.py::test_make_images_serves_the_names_of_another_folder",
    r"pip install '?dljob-operator(\[fast\]')?|dljob-operator run --install-crds": "tests/e2e/test_wheel.py::test_installed_alone_it_lacks_nothing_and_a_job_succeeds",
    r"make wheel": "tests/integration/collection/test_wheel.py::test_its_collection_is_the_tarballs",
    r"make run|\.venv/bin/dljob-operator run --install-crds|dljob-operator run": (
        "tests/integration/engine/test_cli.py::test_it_installs_its_kinds_is_ready_runs_and_ends_well"
    ),
    r"dljob-operator convert( --to kubeflow\.org/v1 FILE\.\.\.)?": "tests/unit/operator/test_convert.py::test_the_command",
    r"dljob-operator preflight( -o json --namespace NAMES --service-account NAMESPACE:NAME)?": (
        "tests/unit/operator/preflight/test_preflight.py::test_all_can_be_adopted"
    ),
    r"dljob-operator run --install-crds --cleanup-on-exit": (
        "tests/integration/engine/test_cleanup.py::test_what_it_created_goes_and_what_was_there_stays"
    ),
    r"dljob-operator run --metrics-bind-address :8080": (
        "tests/integration/engine/test_cli.py::test_it_installs_its_kinds_is_ready_runs_and_ends_well"
    ),
    r"\. \.cluster/env": HERE,
    r"PYTHONPATH=hack .venv/bin/python -m devtools.testbed.cluster push \S+": LIFECYCLE,
    r"PYTHONPATH=hack .venv/bin/python -m devtools.testbed.cluster \{.*\}": LIFECYCLE,
    r"PYTHONPATH=hack .venv/bin/python -m devtools.testbed.cluster pin": "tests/unit/devtools/testbed/base/test_upstream_module.py::test_the_command_pins_every_version",
    r"docker build --network host -t \S+ \.": "tests/e2e/test_training.py::test_example_trains",
    r"docker push": MENTION,
    r"python -m (mpi4py|paddle\.distributed\.launch) train\.py": MENTION,
    r"molecule test|make molecule.*": "tests/e2e/test_molecule.py::test_scenarios",
    r"ENGINE=image make molecule": "tests/e2e/test_molecule.py::test_the_image_does_what_the_process_does",
    r"make fuzz( FUZZ=.*)?": "tests/e2e/test_fuzz.py::test_the_operator_survives_generated_jobs",
    r"make matrix( MATRIX=.*)?": "tests/e2e/test_framework_versions.py::test_the_matrix_in_small",
    r"make images SET=full": "tests/e2e/test_framework_versions.py::test_the_example_trains",
    r"make soak( SOAK=.*)?": "tests/e2e/test_soak.py::test_every_job_ends_as_it_should",
    r"make bench-growth": "tests/e2e/test_bench.py::test_the_growth_in_small",
    r"make bench( .*)?": "tests/e2e/test_bench.py::test_a_quick_run_measures_every_peer_in_every_workload",
    r"make chaos( .*)?": "tests/e2e/test_chaos.py::test_a_short_run_finds_no_violation",
    r"make (image|deploy|undeploy)|kubectl apply --server-side -k deploy/kustomize/default": DEPLOYED,
    r"make image BASE_IMAGE=\S+": BASE,
    r"kubectl (create clusterrole(binding)?|delete clusterrolebinding,clusterrole) dljob-adoption.*": (
        "tests/integration/rights/test_missing_rights.py::test_a_pod_of_another_operator_needs_the_permission_of_the_migration_guide"
    ),
    # the test's training-operator runs with an empty configuration, which is deleted when it ends
    r"kubectl (delete|patch) validatingwebhookconfiguration validator\.training-operator\.kubeflow\.org.*": (
        "tests/e2e/test_migration.py::test_jobs_go_on_with_the_same_pods_and_back_again"
    ),
    r"make deploy OVERLAY=namespaced": (
        "tests/e2e/test_deployment.py::test_a_job_beside_it_runs_and_one_elsewhere_is_left_alone"
    ),
    r"PYTHONPATH=hack .venv/bin/python -m devtools.build.images build operator --no-push": BASE,
    r"helm (install|test) dljob-operator .*|helm uninstall|helm package": (
        "tests/e2e/test_deployment.py::test_install_run_upgrade_and_uninstall"
    ),
    r"dljob-operator serve -- ansible-operator run \.\.\.": (
        "tests/integration/engine/test_bridge.py::test_a_pods_status_is_a_reason_to_run"
    ),
    r"ansible-operator run --watches-file=watches\.ansible-operator\.yaml": (
        "tests/unit/devtools/build/generate/test_watches.py::test_ansible_operator_alone_gets_no_kind_of_a_version_twice"
    ),
    r"kubectl create configmap --from-file": MENTION,
    r"kubectl delete (crd|-k)": MENTION,
    r"kubectl delete --cascade=orphan": (
        "tests/e2e/test_startup_and_names.py::test_a_job_goes_on_once_the_name_that_it_needs_is_free"
    ),
    r"kubectl get services -l training\.kubeflow\.org/job-name=NAME": (
        "tests/e2e/test_service_names.py::test_with_one_service_a_replica_every_name_of_v1_resolves_in_the_namespace"
    ),
    r"kubectl get pods|kubectl delete pod|kubectl exec|kubectl describe": MENTION,
    r"kubectl replace --force": "tests/e2e/test_recreation.py::test_kubectl_replaces_a_running_job",
    r"kubectl get --raw /api/v1/namespaces/NAMESPACE/pods/POD:6789/proxy/readyz": MENTION,
    r"kubectl apply( -k)?": MENTION,
    r"kubectl patch pod --subresource resize": "tests/e2e/test_new_pod_fields.py::test_a_pod_that_is_resized_in_place_stays",
    r"kubectl scale": "tests/e2e/test_pytorch.py::test_a_worker_comes_in_the_middle",
    r"kubectl get mxjobs": "tests/integration/docs/test_commands.py::test_a_name_without_its_group_may_miss_the_job",
    r"kubectl apply -f examples/mxnet-digits\.yaml": DEMO,
    r"kubectl wait mxjobs\.kubeflow\.org/mxnet-digits --for=condition=Succeeded --timeout=300s": PRINTED,
    r"kubectl logs mxnet-digits-worker-0": PRINTED,
    r"kubectl dljob list -A": "tests/unit/client/test_cli.py::test_list",
    r"kubectl dljob why mxnet-digits": DEMO,
    r"kubectl dljob logs -f mxnet-digits": "tests/e2e/test_client.py::test_logs_of_all_replicas_until_the_job_ends",
    r"kubectl dljob top --by namespace,user": "tests/e2e/test_client.py::test_who_holds_what",
    r"kubectl dljob usage( (-A|--by namespace,user).*)?": "tests/e2e/test_usage.py::test_a_suspended_job_uses_nothing",
    r"kubectl dljob history( (-A|--user \S+|report).*)?": "tests/e2e/test_history.py::test_no_job_is_lost_and_none_is_there_twice",
    r"dljob-operator history migrate": "tests/unit/operator/history/test_store.py::test_a_prepared_database_needs_no_right_to_change_tables",
    r"python -m devtools\.lab\.history_queries": "tests/unit/operator/history/test_measured_queries.py::test_both_ways_of_asking_give_the_same_report",
    r"(kubectl -n dljob-system create secret generic dljob-history|helm upgrade dljob-operator .*) .*": "tests/unit/test_chart_settings.py::test_the_template_passes_the_history_only_where_it_has_a_database",
    r"pip install 'dljob(-operator)?\[history\]'": "tests/unit/client/test_history.py::test_the_built_package_has_the_queries_and_names_the_extra",
    r"kubectl dljob ui": "tests/unit/client/test_web.py::test_pages_hear_of_changes",
    r"kubectl -n dljob-system port-forward service/dljob-ui 8080:80|kubectl create token NAME": "tests/e2e/test_web_deployment.py::test_the_page_in_a_pod",
    r"kubectl dljob tui": "tests/unit/client/test_tui.py::test_jobs_come_change_and_go",
    r"kubectl apply --server-side --force-conflicts -f crds/": HERE,
    r"kubectl get (mxjobs\.kubeflow\.org|dljobs( -A)?)": HERE,
    r"kubectl (get|describe) mxjobs\.kubeflow\.org NAME( -o yaml)?": HERE,
    r"kubectl get dljobs\.dljob\.operator": "tests/integration/docs/test_commands.py::test_a_name_without_its_group_may_miss_the_job",
    r"kubectl get dljob NAME": "tests/integration/crds/test_dljob_schema.py::test_good",
    r"\.venv/bin/ansible-playbook playbooks/reconcile\.yml -e manifest=examples/mxnet-digits\.yaml --check --diff": HERE,
    r"ansible-playbook playbooks/reconcile\.yml": "tests/e2e/test_local.py::test_one_pass_creates_and_a_second_changes_nothing",
    r"ansible-doc -t (module|role) \S+": HERE,
    r"\.venv/bin/pytest tests/e2e -k retryable": "tests/e2e/test_outcomes.py::test_retryable_exit_code_is_tried_again",
}
"""Pattern of the whole command to the test that runs it."""

REPOSITORY = stamp.read().urls["Repository"]

FOUND = sorted({(command, str(path.relative_to(ROOT))) for path in DOCUMENTS for command in commands(path)})


def run_by(command: str) -> str | None:
    return next((by for pattern, by in RUN_BY.items() if re.fullmatch(pattern, command)), None)


@pytest.mark.parametrize(("command", "document"), FOUND, ids=[f"{d}: {c}"[:70] for c, d in FOUND])
def test_somebody_runs_it(command: str, document: str) -> None:
    by = run_by(command)
    assert by, f"{document}: nothing runs {command!r}; name a test in RUN_BY, or let this one run it"
    if "::" in by:
        path, _, name = by.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
    elif by not in (HERE, MENTION, BASE, RELEASE):
        assert (ROOT / by).is_file()


def test_every_command_that_is_run_is_documented() -> None:
    documented = [command for command, _ in FOUND]
    unused = [p for p in RUN_BY if not any(re.fullmatch(p, command) for command in documented)]
    assert unused == []


@pytest.mark.parametrize("target", sorted({c.split()[1] for c, _ in FOUND if c.startswith("make ")}))
def test_the_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:.* ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def typed_in_a_shell(command: str, home: Path, namespace: str) -> subprocess.CompletedProcess[str]:
    """Run it in a shell as a reader would, in ``namespace``; ``home`` has a copy of the kubeconfig."""
    context = (
        f"kubectl config set-context --current --namespace {namespace} >/dev/null; " if "kubectl" in command else ""
    )
    shell = f". .cluster/env && cp $KUBECONFIG $HOME/config && export KUBECONFIG=$HOME/config && {context}{command}"
    env = environ(HOME=str(home), MAKEFLAGS="")
    return subprocess.run(["bash", "-ec", shell], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", sorted({c for c, _ in FOUND if run_by(c) == HERE}))
def test_it_works(command: str, kubeconfig: Path, tmp_path: Path, namespace: str, crds: None) -> None:
    Cluster(kubeconfig, namespace).create(v1_job("documented"))
    done = typed_in_a_shell(command.replace("NAME", "documented"), tmp_path, namespace)
    assert done.returncode == 0, done.stdout + done.stderr
    if "NAME" in command or command.startswith("kubectl get"):
        assert "documented" in done.stdout


def test_a_name_without_its_group_may_miss_the_job(
    kubeconfig: Path, tmp_path: Path, namespace: str, crds: None
) -> None:
    Cluster(kubeconfig, namespace).create(v1_job("documented"))
    for command in ("kubectl get mxjobs", "kubectl get dljobs.dljob.operator"):
        assert "documented" not in typed_in_a_shell(command, tmp_path, namespace).stdout
    for command in ("kubectl get mxjobs.kubeflow.org", "kubectl get dljobs"):
        assert "documented" in typed_in_a_shell(command, tmp_path, namespace).stdout


def test_what_is_generated_is_as_it_should_be() -> None:
    """`make version`, `make generate`, `make bundle` and `make docs` would change nothing."""
    for package in ("stamp", "generate", "olm", "reference"):
        command = ["python", "-m", f"devtools.build.{package}", "--check"]
        env = environ(PYTHONPATH="hack")
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_files_that_a_document_links_to_or_names_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    linked = [link for link in re.findall(r"\]\(([^)#\s]+)\)", text) if "://" not in link]
    assert [link for link in linked if not (document.parent / link).exists()] == []
    absolute = re.findall(rf"\]\({re.escape(REPOSITORY)}/blob/main/([^)#\s]+)", text)
    assert [path for path in absolute if not (ROOT / path).exists()] == []
    named = re.findall(
        r"`((?:tests|roles|plugins|docs|examples|build|molecule|src|hack|deploy|playbooks)/[\w./-]+)(?:::\w+)?`", text
    )
    # example files of the chapter on adding a framework
    missing = [name for name in named if not (ROOT / name).exists() and "/echo/" not in name]
    assert missing == []


def test_each_symptom_names_tests_that_exist() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:]
    assert len(sections) > 10
    for section in sections:
        title = section.splitlines()[0]
        named = re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", section)
        assert named, f"{title}: no test is named"
        path = ""
        for given, name in named:
            path = given or path
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{title}: {path} has no {name}"
