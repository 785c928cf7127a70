#!/usr/bin/python
"""Documentation of the action plugin of the same name; there is no module to run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: reconcile
short_description: Reconcile distributed training jobs
version_added: 0.1.0
description:
  - Compares each job with the pods and Services that it owns, creates and deletes objects where they differ, and writes
    the job's status and Events, all in one task.
  - A role declares its framework as data and passes the declaration in O(framework). For jobs of the kind DLJob, which
    name their framework, O(frameworks) takes its place.
  - A reconcile takes one step. The next one follows after RV(dljob.requeue_after), or when an owned pod changes, which
    an engine watches.
  - An invalid job does not fail the task. The job's state, reason and Events report the errors.
  - Runs on the Ansible controller and calls the API server directly. Strings of a job are never evaluated as
    templates.
options:
  framework:
    description:
      - The declaration of the framework. The task fails on an unknown key, at any depth, and names it.
      - In this collection C(make generate) writes the CRDs, C(watches.yaml), the RBAC rules and the other files of the
        role from it. The keys that only the generator reads have no effect on a reconcile.
      - Exactly one of O(framework) and O(frameworks) is required.
    type: dict
    suboptions:
      name:
        description: Name of the framework, for messages.
        type: str
        required: true
      title:
        description: Name of the framework in sentences, for the generator. The default is O(framework.name).
        type: str
      description:
        description: What a job is and when it succeeds, for the CRDs and their reference.
        type: str
      kinds:
        description:
          - Kinds of the framework's jobs. A job of another kind is invalid. An empty list allows all kinds.
          - "An item is a mapping with C(group), C(kind) and C(versions), of which the first is stored; each item is one
            CRD. C(short_names) are its names for kubectl. C(scale) is the replica type that C(kubectl scale) changes."
          - An item may also be the name of a kind alone. There is no CRD for it, and each flavor then needs C(groups).
        type: list
        elements: raw
        default: []
      container:
        description:
          - Name of the container that runs the training. Every replica's template must have one of that name, and its
            exit code is the replica's.
          - With V({first}) it is the first container of each template, whatever its name.
        type: str
        required: true
      replica_types:
        description:
          - The replica types. Each key is the canonical spelling of a type, which the status uses; jobs may write it in
            any case. The order of the types is the order of the ranks.
          - "A value is a mapping with these optional keys. C(minimum) (default 0) and C(maximum) (default no limit) are
            the bounds of the number of replicas. Above C(expected_maximum) (default no limit) an Event warns that
            programs of the framework may refuse to run. C(long_running) (default V(false)) is true where the processes
            run until they are terminated. C(starts_after) maps other types to C(ready) or C(completed): the first pod
            of this type is created when all replicas of those types have reached that state. The minimum does not
            apply to local jobs."
          - "C(starts_after_if) maps fields of C(spec), which are among O(framework.fields), to the values with which
            C(starts_after) applies; by default it always does."
          - "C(resizable) (default V(false)) is true where the other replicas learn of a change of the type's number
            while they run, as from a ConfigMap: it then restarts none of them."
          - "C(indexed) (default V(true)) is false where the name of the type's only replica is C(<job>-<type>), without
            an index. The type's C(maximum) is then 1."
          - Once a job has succeeded, replicas of types that are not C(long_running) have 10 s to exit before
            C(cleanPodPolicy) V(Running) deletes running pods.
          - "C(coordinates) (default V(false)) is true where the processes only coordinate those that compute, so that
            their exit with 0 says nothing of the others' results. Where such a type is the success target, replicas
            of types that are neither that nor C(long_running), and whose failure can fail the job, have 10 s to exit
            before the job succeeds. If one of them fails for good in that time, the job fails."
          - "C(hides_losses) (default V(false)) is true where the processes may exit with 0 because a replica of a
            C(long_running) type was lost. Where such a type is the success target and exits with 0 at most 5 s after
            such a loss, its replica starts again."
        type: dict
        required: true
      success_target:
        description:
          - Types whose replica 0 decides the outcome of the job. The first of them that the job has is used. A job's
            own C(spec.terminationPolicy.chief) takes precedence.
          - The default is the first of O(framework.replica_types).
        type: list
        elements: str
      succeeds_by:
        description:
          - V(target), the job succeeds when the container of the success target exits with 0. V(all), when all replicas
            of its type have succeeded.
          - A local job always waits for all replicas of that type.
        type: str
        choices: [target, all]
        default: target
      modes:
        description:
          - Further values of C(spec.jobMode), each with its meaning V(local) or V(dist).
          - The processes of a V(dist) job, the default, form one cluster. Those of a V(local) job train independently.
        type: dict
        default: {}
      hooks:
        description:
          - What the framework computes instead of declaring it. Each hook is the full name of a filter, of a collection
            or of the role's own C(filter_plugins). It is a pure function of a cluster spec, which the example of
            P(dljob.operator.mxnet_environment#filter) shows.
        type: dict
        default: {}
        suboptions:
          validate:
            description:
              - Validates a job, in addition to the checks that all frameworks have in common.
              - Its input is the cluster spec without C(task). It returns a list of errors, each a sentence with the
                field and the fix. A job with errors is Failed until it is edited.
            type: str
          environment:
            description:
              - The environment variables from which a process learns the addresses of the others, either as a mapping
                of strings or as a filter that returns a mapping of strings. A filter may return for a variable a
                mapping instead, which becomes its C(valueFrom).
              - "The strings of a mapping may contain these placeholders, which are replaced for each replica: C({job}),
                C({namespace}), C({uid}), C({runtime_id}), C({kind}), C({kind_lower}) of the job; C({type}),
                C({type_lower}), C({type_upper}), C({index}), C({rank}), C({host}), C({port}) of the replica;
                C({count}), the number of replicas of its type; C({total}), that of all types; C({rank0_host}) and
                C({rank0_port})."
              - A filter gets the cluster spec for one replica.
              - They replace variables of the same names in the template, except those in C(tuning_variables), and
                empty ones. A Warning Event and C(status.ignoredSettings) name the variables that were replaced.
            type: raw
            default: {}
          pod:
            description:
              - Returns a partial PodTemplateSpec with defaults for one replica (volumes, init containers, a command
                ...). Its input is the cluster spec for that replica.
              - The job's own template takes precedence. Containers, volumes, ports and variables are merged by name,
                volume mounts by path. A container's C(command) and C(args) count as one value.
              - Only labels replace those of the template.
            type: str
          objects:
            description:
              - Returns a list of manifests of the objects that the job owns besides its pods and their Services. Its
                input is the cluster spec without C(task). While the job runs, that has C(created) and C(running), the
                indexes of the replicas that have a pod, and that run, by type.
              - The operator adds namespace, owner reference and labels. It creates a missing object again, replaces one
                of other content, except those with C(immutable) set to true and kinds that allow no change, and deletes
                one that the hook no longer returns.
              - The annotation C(dljob.operator/lifetime) of a manifest is C(pods) (the default) or C(job). Objects of
                the first kind exist before the pods, and are deleted by the cleanup after the training. Those of the
                second kind outlive the training; if Kubernetes rejects one while the job runs, the job continues and
                reports it.
              - The operator does not watch Secrets, ServiceAccounts, Roles and RoleBindings. It creates them before it
                creates pods. Of these it changes only Roles, when it creates pods. Where the annotation
                C(dljob.operator/generate) of a Secret of the type C(kubernetes.io/ssh-auth) is C(ssh-key-pair), the
                operator generates its entries C(ssh-privatekey) and C(ssh-publickey) when it creates the Secret.
              - A Route is created only where the cluster serves C(route.openshift.io/v1).
            type: str
      permissions:
        description:
          - RBAC rules that only this framework needs. The generator writes them to an optional component for kustomize
            and the Helm chart, because most installations do not need them.
          - The component is C(<framework>-permissions), or with the key C(component) of a rule, such as
            C(exec-permissions), C(<framework>-<component>).
        type: list
        elements: dict
        default: []
      fields:
        description:
          - The framework's own fields of C(spec), each with its OpenAPI v3 schema, verbatim in the CRD. They replace
            derived fields of the same name.
          - The hooks get those that a job has in C(spec) of their input, without validation, and a change of one of
            them restarts all replicas. The key C(x-dljob-affects) of a schema, which is not part of the CRD, changes
            this. With V(objects) a change restarts no replica by itself; it changes what the hook C(objects) returns,
            and the image of a container that the hook C(pod) supplies. With V(nothing) the hooks do not get the field.
          - In a flavor, the fields of that flavor only.
        type: dict
        default: {}
      rules:
        description:
          - CEL rules on C(spec), for the CRD, in the notation of C(x-kubernetes-validations), which is C(rule) with
            C(message) or C(messageExpression), and C(fieldPath).
          - In a flavor, the rules apply only to jobs of that flavor. C({Worker}) is then the list of the replica counts
            of the type Worker, empty or with one item. In a framework with one flavor the same holds at the top level.
        type: list
        elements: dict
        default: []
      expressions:
        description:
          - Parts of CEL rules by name. C({name}) in a rule is replaced by the part.
        type: dict
        default: {}
      owns:
        description:
          - The kinds of objects that the hook C(objects) may return, and C(Job) where a batch Job runs a replica.
            Engines watch them, except Secrets, ServiceAccounts, Roles, RoleBindings and Routes, and the operator's
            ClusterRole permits them. An immutable ConfigMap needs no entry.
        type: list
        elements: str
        choices:
          - Service
          - ConfigMap
          - Secret
          - ServiceAccount
          - Role
          - RoleBinding
          - Deployment
          - Job
          - HorizontalPodAutoscaler
          - Route
        default: []
      files:
        description: Files of the role whose texts the hooks get in C(files) of the cluster spec.
        type: list
        elements: str
        default: []
      tuning_variables:
        description:
          - Names of variables of O(framework.hooks.environment) that only tune a process. Of these a variable of the
            template takes precedence. All others say which process it is and where the others are.
        type: list
        elements: str
        default: []
      operator_files:
        description:
          - By key of a ConfigMap that the hook C(objects) returns, the setting of O(config_map) that may replace its
            text by a Python file (.py) of the operator's own file system, which is V(grpcServerFilePath).
        type: dict
        default: {}
      flavors:
        description:
          - The API flavors of the framework. A framework with only one may have the flavor's keys at its top level
            instead.
          - The job's API group and the field that holds its replicas determine its
            flavor. The version does not matter, because a CRD may serve the same object in several versions, unless
            flavors have a O(framework.flavors[].version).
          - The last flavor of a group is its newest. It is used for a job without any known field.
        type: list
        elements: dict
        suboptions:
          extends:
            description:
              - Family whose keys the flavor has in common. V(kubeflow_v1) are the kinds of training-operator v1, and
                V(v1alpha1_list) those of the operators before it, with a list of replicas.
              - The flavor's own keys replace those of the family, but its labels are added.
              - C({group}), the API group, and C({kind_lower}), the kind in lower case, are filled in when the framework
                is loaded, in C(port_name) and in names and values of C(labels).
            type: str
            choices: [kubeflow_v1, v1alpha1_list]
          groups:
            description: API groups of the flavor. The default are the groups of O(framework.kinds).
            type: list
            elements: str
          version:
            description:
              - API version of the jobs of this flavor, where another flavor of the kind has the same field of replicas.
              - The operator records in C(status.apiVersion) in which version a job was created. Until then
                C(metadata.managedFields) tells it. All versions of the kind have the fields of all these flavors; a job
                with a field of another version fails.
            type: str
            default: ""
          starts_in_order:
            description: Types whose C(starts_after) applies to every job, whatever their C(starts_after_if) says.
            type: list
            elements: str
            default: []
          waits_in_pod:
            description:
              - Types whose pods themselves wait for those in C(starts_after), with an init container for example.
              - With a gang scheduler the first pod of such a type is created as soon as the others exist, so that the
                scheduler starts all of them together.
            type: list
            elements: str
            default: []
          batch_jobs:
            description:
              - Types whose only replica a C(batch/v1) Job runs. The Job is named C(<job>-<type>) and restarts its pods
                by C(backoffLimit); its failure fails the job.
              - C(indexed) of such a type is false, and O(framework.owns) lists C(Job).
            type: list
            elements: str
            default: []
          running_keeps:
            description:
              - Kinds of objects that serve the pods, C(Service) or one of O(framework.owns), that V(Running) of
                C(cleanPodPolicy) keeps until the job is deleted. By default it deletes them once no pod needs them.
            type: list
            elements: str
            default: []
          replicas_layout:
            description:
              - The layout of the field that holds the replicas.
              - V(list), a list of entries C({replicas, template}), each with its type in
                O(framework.flavors[].type_field).
              - V(map), a mapping of type to such an entry.
              - V(single), one such entry, of the framework's only type.
            type: str
            choices: [list, map, single]
            required: true
          replicas_fields:
            description:
              - Spellings of that field in C(spec). Messages use the first.
              - An empty text means that the spec itself is the list.
            type: list
            elements: str
            required: true
          type_field:
            description: Field of an entry that names its type, in any case. Only read where the layout is V(list).
            type: str
            default: replicaType
          types:
            description: Replica types of this flavor; all of O(framework.replica_types) where empty.
            type: list
            elements: str
            default: []
          default_type:
            description: Type of an entry that names none, for the CRD. Only where the layout is V(list).
            type: str
            default: ""
          most_replicas:
            description:
              - The largest number of replicas of a type with which a job of this flavor can start, for the CRD. It is
                smaller than the default where one variable lists all hosts, since a variable has at most 131071 bytes.
            type: int
            default: 1000000
          modes:
            description: As O(framework.modes), for jobs of this flavor. The reconcile accepts them in all flavors.
            type: dict
            default: {}
          fields:
            description: As O(framework.fields), for jobs of this flavor.
            type: dict
            default: {}
          rules:
            description: As O(framework.rules), for jobs of this flavor.
            type: list
            elements: dict
            default: []
          expressions:
            description: As O(framework.expressions), for rules of this flavor.
            type: dict
            default: {}
          required:
            description: Replica types of which a job needs at least one replica, besides those with a minimum.
            type: list
            elements: str
            default: []
          port_fields:
            description: Fields of an entry with the port on which its processes listen. The last one takes precedence.
            type: list
            elements: str
            default: []
          default_port:
            description: The port of entries without one.
            type: int
            default: 2222
          host_port:
            description:
              - The port of entries without one whose pods have C(hostNetwork).
              - V(default) is that of O(framework.flavors[].default_port).
              - V(job) is one from 20000 to 29999 that the job's UID determines. It is for frameworks of which processes
                of two jobs would share a port without an error.
            type: str
            choices: [default, job]
            default: default
          port_name:
            description:
              - Name of a containerPort of the framework's container. If the template has one of that name, its number
                is the port of the replicas. Otherwise the operator adds it, except with C(hostNetwork), where it would
                occupy a port of the node.
              - With an empty name, the operator neither reads nor adds a containerPort.
            type: str
            default: ""
          names:
            description:
              - V(runtime-id) names pods C(<type>-<runtime id>-<index>-<five characters>). The five characters differ by
                job, and are the same for every attempt.
              - V(job) names them C(<job>-<type>-<index>). That name resolves in the job's pods, and a Service has the
                name of the success target.
            type: str
            choices: [runtime-id, job]
            default: runtime-id
          service:
            description:
              - V(runtime-id) names the headless Service of all replicas C(<kind>-<runtime id>).
              - V(job) names it C(<job>). The job then has no other Service.
            type: str
            choices: [runtime-id, job]
            default: runtime-id
          status:
            description:
              - Format of C(status.replicaStatuses) and C(status.state). Environment filters get it as C(form).
              - V(v1alpha1), C(replicaStatuses) is a list of C({ReplicasStates, state}), and the state is Running until
                the job finishes. V(v1), C(replicaStatuses) is a mapping of type to C({active, succeeded, failed}) (with
                the layout V(single) only one such entry), and the state is the newest true condition.
            type: str
            choices: [v1alpha1, v1]
            default: v1alpha1
          status_type_field:
            description: Key that names the type in an entry of v1alpha1's list.
            type: str
            default: replica_type
          fails_by:
            description:
              - V(target), only a permanent error of the success target fails the job, and all other replicas restart.
              - V(any), a failed replica fails the job where its restart policy is Never, or ExitCode and the exit code
                is permanent.
            type: str
            choices: [target, any]
            default: target
          default_restart_policy:
            description: Restart policy of an entry that has none.
            type: str
            choices: [Always, OnFailure, Never, ExitCode]
            default: OnFailure
          default_restart_policies:
            description: The same by type, for types that have another default.
            type: dict
            default: {}
          restart_policies:
            description: The restart policies that an entry may have.
            type: list
            elements: str
            default: [Always, OnFailure, Never, ExitCode]
          default_clean_pod_policy:
            description: Which pods of a finished job are deleted, where the job has no C(cleanPodPolicy).
            type: str
            choices: [All, Running, None]
            default: Running
          exit_codes:
            description:
              - Which exit codes are retryable. All others except 0 are permanent.
              - C(retryable) is a list of codes and ranges such as V(128-255), its default. C(oom_retryable) (default
                V(false)) is whether the reason OOMKilled is retryable.
            type: dict
            default: {retryable: [128-255], oom_retryable: false}
          labels:
            description:
              - Labels of the pods, besides the template's and the operator's own. Values may contain the placeholders
                of O(framework.hooks.environment), and C({role}), which is C(master) for the success target and empty
                for all others.
              - A label that is empty because of its placeholders is left out, and so is one of the family that is null
                here.
              - The Service of a replica has them too, without C({role}), and the other objects of the job those that
                are the same for all replicas.
            type: dict
            default: {}
          template_optional:
            description:
              - Replica types whose replica spec needs no template, and whose template needs no container of the
                framework, because the hook C(pod) supplies it.
            type: list
            elements: str
            default: []
          replica_fields:
            description:
              - By replica type, own fields of its replica spec, each with its OpenAPI v3 schema for the CRD. The hooks
                get them in C(templates) of the cluster spec, unvalidated.
            type: dict
            default: {}
          runtime_id_fields:
            description: Spellings of the field in C(spec) that has the runtime id. Messages use the first.
            type: list
            elements: str
            default: [RuntimeId]
          succeeds_together:
            description:
              - Replica types of which all replicas must succeed where one of them is the success target because the job
                lacks the types before it, and the job names no replica in C(spec.terminationPolicy.chief).
            type: list
            elements: str
            default: []
          success_policies:
            description:
              - Values of C(spec.successPolicy), each with a replica type. If that type is the one of the success
                target, the job succeeds when all replicas of the type have succeeded. Otherwise the value has no
                effect.
            type: dict
            default: {}
          elastic:
            description:
              - How a job requests elastic replicas of one type, which join, leave and fail independently of the others.
                A change of their number restarts no other replicas. A permanently failed one (by Never, or by ExitCode)
                does not restart, and does not fail the job while another one can still finish it.
              - C(field) is the field of C(spec), which is true or false, and C(type) is the replica type. The
                environment of the other replicas must then not contain these replicas, so the field must be one of
                O(framework.fields) for the filters.
              - With C(when_any), a list of settings, the field is a map, and the replicas are elastic where the map has
                at least one of the settings.
              - With C(succeeds_by) V(any), the job succeeds with the first of these replicas, wherever the field is
                given (with or without one of those settings) and their type is the one of the success target.
            type: dict
            default:
          managers:
            description:
              - Values of C(spec.runPolicy.managedBy) that name the operator which this one replaces. A job with one of
                them is reconciled.
            type: list
            elements: str
            default: [kubeflow.org/training-operator]
          environment_in:
            description: V(named), only the framework's container gets the environment. V(all), every container does.
            type: str
            choices: [named, all]
            default: named
  frameworks:
    description:
      - Reconciles DLJobs, each with the framework that its C(spec.framework) names. The task loads the frameworks of
        all roles of this collection, of the roles in these folders, and of those in E(DLJOB_FRAMEWORKS), which
        separates folders by a colon.
      - A folder is that of a role, or one that has such folders. C(vars/main.yml) of a role declares its framework as
        for O(framework); it may lack C(kinds). It is read as it is, without templates. Filters that its hooks name
        may be in C(filter_plugins) of the role.
      - The task fails if a folder has no such role, or two roles declare frameworks of one name.
    type: list
    elements: path
  jobs:
    description:
      - The jobs, as the API server returns them.
      - The default are the jobs that an engine passes, in the variable C(dljob_batch), a list, or as the single job
        that C(ansible_operator_meta) names, in the variable C(_<group>_<kind>).
    type: list
    elements: dict
  cluster_domain:
    description: DNS domain of the cluster.
    type: str
    default: cluster.local
  config_map:
    description:
      - Name of the ConfigMap with the volumes of the node, mounts and environment variables for containers that request
        an accelerator. The operator reads it from its own namespace (E(POD_NAMESPACE), or else the namespace of its
        service account), or else from the namespace in E(DLJOB_CONFIG_NAMESPACE), and from no other.
      - It is read only when the reconcile creates a pod that requests a resource with a domain in its name, or a
        program with a C(file_setting). A change of the ConfigMap does not affect running pods.
      - Where it is invalid for a resource that a job requests, the job waits, and its status names the error and the
        fix.
    type: str
    default: tf-job-operator-config
  cloud:
    description:
      - The cloud that runs the GPU nodes. It selects a preset where there is no ConfigMap. The default is
        E(DLJOB_CLOUD).
      - It concerns nodes that advertise C(alpha.kubernetes.io/nvidia-gpu). Where only C(nvidia.com/gpu) is advertised,
        pods request that instead, and its device plugin mounts the driver.
    type: str
    choices: ["", gke, azure]
    default: ""
  kubeconfig:
    description: Path of a kubeconfig file. The default is E(KUBECONFIG), or in a pod its service account.
    type: path
  context:
    description: Context in the kubeconfig file. The default is its current context.
    type: str
attributes:
  action:
    description: This is an action plugin without a module.
    support: full
  async:
    description: Can be run with C(async).
    support: none
  check_mode:
    description: The API server validates every object and stores none; no status and no Event is written.
    support: full
  diff_mode:
    description: Every object that is created or deleted, and the status before and after, in YAML.
    support: full
author: dljob-operator developers (@dljob)
"""

EXAMPLES = r"""
- name: Reconcile the jobs that the engine passes, of a framework with a leader and followers
  dljob.operator.reconcile:
    framework:
      name: echo
      kinds: [{group: example.com, kind: EchoJob, versions: [v1]}]
      extends: kubeflow_v1
      container: echo
      replica_types:
        Leader: {minimum: 1, maximum: 1}
        Follower: {}
      hooks:
        environment:
          ECHO_RANK: "{rank}"
          ECHO_SIZE: "{total}"
          ECHO_LEADER: "{rank0_host}:{rank0_port}"
      replicas_fields: [replicaSpecs]
      default_port: 7000

- name: Use a filter for the environment, and another API flavor
  dljob.operator.reconcile:
    framework:
      name: echo
      container: echo
      replica_types: {Leader: {minimum: 1, maximum: 1}, Follower: {}}
      hooks: {environment: example.com.echo_environment}
      flavors:
        - groups: [example.com]
          replicas_layout: list
          replicas_fields: [replicaSpecs, replica_specs]
          type_field: echoType
          port_fields: [echoPort]
          exit_codes: {retryable: [130, 137, 138, 143]}
          labels: {echo_job: "{job}", task_index: "{index}"}

- name: Reconcile DLJobs of the frameworks of this collection, and of one more
  dljob.operator.reconcile:
    frameworks: [/opt/frameworks/echo]

- name: Reconcile a given job once, without an engine
  dljob.operator.reconcile:
    framework: "{{ mxnet_framework }}"
    jobs: ["{{ applied.resource }}"]
  register: reconciled
"""

RETURN = r"""
changed:
  description: Whether anything was written, or in check mode would have been.
  type: bool
  returned: always
dljob:
  description: The results of the jobs, for the engine.
  type: dict
  returned: success, and failure where it is a job's
  contains:
    requeue_after:
      description: Seconds until the next reconcile, the minimum of the jobs' own; V(0) is immediate.
      type: float
      sample: 58.5
    jobs:
      description: One entry per job.
      type: list
      elements: dict
      contains:
        namespace:
          description: Namespace of the job.
          type: str
        name:
          description: Name of the job.
          type: str
        uid:
          description: UID of the job.
          type: str
        ok:
          description: False where the reconcile failed and must be repeated, for example without a connection.
          type: bool
        changed:
          description: Whether anything was written for it.
          type: bool
        message:
          description: A message, for example why the job is invalid or which objects the API server rejected.
          type: str
        requeue_after:
          description: Seconds until the next reconcile if no watch event triggers one earlier; none if not needed.
          type: float
        continues:
          description:
            - Whether the next reconcile continues the writes of this one. Where an engine watches, one reconcile
              creates at most 1000 pods and writes for at most four seconds, or half a second once a user changes or
              deletes the job.
          type: bool
        postponed:
          description:
            - Whether the job was not reconciled, because the other jobs of its batch took longer than ten seconds. Only
              for an engine, which returns it to its line in the queue; its backoff stays as it was.
          type: bool
        seconds:
          description:
            - How long the reconcile took. After one of eight seconds or more, an engine with several workers leaves one
              of them to other namespaces, for six minutes.
          type: float
        wrote:
          description:
            - The objects that the reconcile wrote, each as its UID and its new resourceVersion, null where it was
              deleted. An engine waits until its cache includes them before it reconciles the job again.
          type: list
          elements: list
          returned: when the reconcile could write
        warnings:
          description: Permissions that the operator lacks, each with the RBAC rule to add. An engine logs them.
          type: list
          elements: str
          returned: when the reconcile could write
  sample:
    requeue_after: null
    jobs:
      - namespace: default
        name: digits
        uid: e800b1ed-9c6c-11e8-962f-704d7b2c0a63
        ok: true
        changed: true
        message: ""
        requeue_after: null
        continues: false
        postponed: false
        seconds: 0.021
        wrote: [[e800b1ed-9c6c-11e8-962f-704d7b2c0a63, "491499"]]
        warnings: []
msg:
  description: The messages of the jobs whose reconcile failed. The task fails only if all jobs failed.
  type: str
  returned: when the reconcile of a job failed
"""
