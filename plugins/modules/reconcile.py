#!/usr/bin/python
"""Documentation of the action plugin of the same name; there is no module to run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: reconcile
short_description: One pass over distributed training jobs of one framework
version_added: 0.1.0
description:
  - Compares each job with the pods and Services that it owns, creates and deletes what differs, and writes the job's
    status and Events, all in one task.
  - A framework is data. Its role declares it in O(framework) and hands it over; this page says what may stand there.
  - One pass goes one step. What needs a further one is told in RV(dljob.requeue_after), or follows from a change of an
    owned pod, for which an engine watches.
  - A job that is wrong is no failure of the task. The job's state, reason and Events tell its user.
  - Runs in the controller's own process and talks to the API server directly. No string of a job is ever evaluated as
    a template.
options:
  framework:
    description: The declaration of the framework. An unknown key, at any depth, fails the task by name.
    type: dict
    required: true
    suboptions:
      name:
        description: Name of the framework, for messages.
        type: str
        required: true
      kinds:
        description: Kinds of jobs that it takes. A job of another kind is refused; without a list none is.
        type: list
        elements: str
        default: []
      container:
        description:
          - Name of the container that runs the training. Every replica's template must have one of that name, and its
            exit code is the replica's.
        type: str
        required: true
      replica_types:
        description:
          - The roles that a process can play. Each key is the canonical spelling of a type, as the status shows it;
            jobs may write it in any case. Their order is the order of ranks.
          - "A value is a mapping of three keys, all of which may be left out: C(minimum) (default 0) and C(maximum)
            (default no limit), the bounds of the number of replicas, and C(long_running) (default V(false)), whether
            its processes go on until they are ended. The minimum does not hold for local jobs."
          - Once a job has succeeded, replicas of types that do not serve have 5 s to end by themselves before
            C(cleanPodPolicy) V(Running) deletes what still runs.
        type: dict
        required: true
      success_target:
        description:
          - Types whose replica 0 decides how the job ends; the first of them that the job has does. A job's own
            C(spec.terminationPolicy.chief) comes before them.
          - The first of O(framework.replica_types) where left out.
        type: list
        elements: str
      succeeds_by:
        description:
          - V(target), when the container of the success target has exited with 0. V(all), when every replica of its
            type has.
          - A local job always waits for all of them.
        type: str
        choices: [target, all]
        default: target
      modes:
        description:
          - What a job may write in C(spec.jobMode) besides V(local) and V(dist), each with which of the two it means.
          - The processes of a V(dist) job, the default, form one cluster. Those of a V(local) one train by themselves.
        type: dict
        default: {}
      environment:
        description:
          - The variables that a process reads to find the others, either as a mapping of fixed texts or as the full
            name of a filter that computes such a mapping.
          - "Texts may name these in braces, filled in for each replica: C({job}), C({namespace}), C({uid}),
            C({runtime_id}), C({kind}), C({kind_lower}) of the job; C({type}), C({type_lower}), C({type_upper}),
            C({index}), C({rank}), C({host}), C({port}) of the replica; C({count}), the number of replicas of its type;
            C({total}), that of all; C({rank0_host}) and C({rank0_port})."
          - A filter gets the cluster as one task sees it. The example of P(dljob.operator.mxnet_environment#filter)
            shows its shape.
          - Variables that the template sets itself are kept, and win.
        type: raw
        default: {}
      tensorboard:
        description:
          - A TensorBoard that a job may ask for in the field C(spec_field) of its spec, with C(logDir) and, to reach
            that, C(volumes) and C(volumeMounts), and with C(serviceType). It outlives the training and is deleted
            with the job.
          - A Deployment and a Service called C(name) are made for it. The container runs C(command), whose texts may
            have C({log_dir}), C({job}), C({runtime_id}) and C({program}), the text of the role's file C(program), in
            C(image), unless the field C(image_field) of the spec names one. It serves at C(port), which the Service
            offers at 80. C(labels) are those of both.
          - Changes of that field take effect at once, in place. A missing Deployment or Service is created
            again, also of a job that has ended; both are deleted when the job no longer asks for them.
          - Where the cluster serves C(route.openshift.io/v1) and the Python package C(openshift) is installed, a Route
            of the same name leads to the Service, with TLS up to the router.
        type: dict
      validation:
        description:
          - Full name of a filter that says what is wrong with a job, beyond what all frameworks have in common.
          - It gets the cluster as the filter of O(framework.environment) does, without C(task), and returns a list of
            sentences, each with the field and the fix. A job that has any ends Failed until it is edited.
        type: str
      flavors:
        description:
          - The ways in which jobs of this framework are written. The job's API group and the field that holds its
            replicas tell which one it speaks. The version does not, since a CRD may serve one object in several.
          - Of a group's flavors the last is its newest. A job of which no field tells is answered in its terms.
        type: list
        elements: dict
        required: true
        suboptions:
          groups:
            description: API groups that speak it.
            type: list
            elements: str
            required: true
          replicas_layout:
            description:
              - What the field holds that lists the replicas.
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
            description: Replica types that this flavor knows; all of O(framework.replica_types) where empty.
            type: list
            elements: str
            default: []
          required:
            description: Replica types of which a job in this flavor needs a replica, besides those with a minimum.
            type: list
            elements: str
            default: []
          port_fields:
            description: Fields of an entry, the last of which counts, that give the port at which its processes listen.
            type: list
            elements: str
            default: []
          default_port:
            description: That port where the entry gives none.
            type: int
            default: 2222
          port_name:
            description:
              - Name of a containerPort of the framework's container. A template that has one of that name sets the
                port by it, and to any other it is added, except with C(hostNetwork), where it would be taken from the
                node.
              - With an empty name nothing is read from the template's ports, and none is added.
            type: str
            default: ""
          names:
            description:
              - V(runtime-id) names pods C(<type>-<runtime id>-<index>-<five characters>), of which the last differ by
                attempt.
              - V(job) names them C(<job>-<type>-<index>), makes that name resolve among the job's pods, and adds a
                Service with the name of the success target.
            type: str
            choices: [runtime-id, job]
            default: runtime-id
          status:
            description:
              - Form of C(status.replicaStatuses) and C(status.state), and the form that environment filters are told.
              - V(v1alpha1), a list of C({ReplicasStates, state}), and the state Running until the end. V(v1), a mapping
                of type to C({active, succeeded, failed}) (with the layout V(single) one such entry), and the newest
                condition as the state.
            type: str
            choices: [v1alpha1, v1]
            default: v1alpha1
          status_type_field:
            description: Key that names the type in an entry of v1alpha1's list.
            type: str
            default: replica_type
          fails_by:
            description:
              - V(target), only a permanent error of the success target fails the job, and all other replicas are
                restarted.
              - V(any), each replica by its restart policy. Under Never it fails the job, under ExitCode it does with a
                permanent code.
            type: str
            choices: [target, any]
            default: target
          default_restart_policy:
            description: Restart policy of an entry that has none.
            type: str
            choices: [Always, OnFailure, Never, ExitCode]
            default: OnFailure
          default_clean_pod_policy:
            description: What is deleted of a job that has ended, where it does not say so itself.
            type: str
            choices: [All, Running, None]
            default: Running
          exit_codes:
            description:
              - Which exit codes are worth another try. All others but 0 are permanent.
              - C(retryable) is a list of codes and ranges such as V(128-255), its default. C(oom_retryable) (default
                V(false)) says whether a process that was killed for want of memory may be tried again.
            type: dict
            default: {retryable: [128-255], oom_retryable: false}
          labels:
            description:
              - Labels of the pods, besides the template's and the operator's own. Values may have the placeholders of
                O(framework.environment), and C({role}), which is C(master) for the success target and empty for all
                others.
              - A label that comes out empty by its placeholders is left out.
            type: dict
            default: {}
          default_program:
            description:
              - A program of the role's own, by replica type, for replicas without a container of the framework's. Such
                an entry may even lack its template. Entries of other types are then refused.
              - "C(files) maps file names to files of the role, which a ConfigMap called C(config_map) holds. It is
                mounted at C(mount_path) under the volume name C(volume)."
              - C(image) is the container's image, unless the field C(image_field) of the job's spec names one.
              - C(command) starts the program, unless the container has a command. Its texts may have the placeholders
                of O(framework.environment), and C({cluster_spec}), such as C(master|m:2222,ps|p:2222;q:2222).
              - C(flag) is a field of a replica spec that, when true, asks for the program in a container that there is.
              - C(file_setting) is V(grpcServerFilePath) where that setting of O(config_map) may name another program
                for the only one of C(files). It is a Python file (.py) of the operator's own file system.
            type: dict
            default: {}
          runtime_id_fields:
            description: Spellings of the field in C(spec) that gives the runtime id. Messages use the first.
            type: list
            elements: str
            default: [RuntimeId]
          spec_fields:
            description:
              - Fields of C(spec) that the framework's filters need. They find those that the job has under C(spec) of
                their input, as the user wrote them. A change of one starts all replicas anew.
            type: list
            elements: str
            default: []
          success_policies:
            description:
              - What a job may write in C(spec.successPolicy), each with a replica type. Where that type decides, the
                job then succeeds when all its replicas have, and not only the success target. Where another type
                decides it changes nothing.
            type: dict
            default: {}
          elastic:
            description:
              - How a job asks for replicas of one type that join, leave and fail independently of the others. A change
                of their number restarts no others. One that failed permanently (by Never, or by ExitCode) is not
                started again, and does not fail the job while another of them can still finish it.
              - C(field) is the field of C(spec), which is true or false, and C(type) the replica type. The environment
                must then not name these replicas to the others, so the field has to be one of C(spec_fields).
              - With C(when_any), a list of settings, the field is a map, and the replicas are elastic where the map has
                at least one of them.
              - C(succeeds_by) V(any) ends the job with the first of these replicas that succeeds, wherever the field is
                given (with or without one of those settings) and their type is the success target.
            type: dict
            default:
          environment_in:
            description: V(named), only the framework's container gets the environment. V(all), every container does.
            type: str
            choices: [named, all]
            default: named
  jobs:
    description:
      - The jobs, as the API server holds them.
      - By default those that an engine hands over. That is the variable C(dljob_batch), a list, or the single job that
        C(ansible_operator_meta) names, in its variable C(_<group>_<kind>).
    type: list
    elements: dict
  cluster_domain:
    description: DNS domain of the cluster.
    type: str
    default: cluster.local
  config_map:
    description:
      - Name of the ConfigMap that says which volumes of the node, mounts and environment variables a container gets
        that asks for an accelerator. It is looked for in the operator's own namespace, which E(POD_NAMESPACE) or the
        service account tells, and then in C(default).
      - It is read only where a pod is created that asks for a resource with a domain in its name, or a program whose
        C(file_setting) may stand there. Running pods are left alone when it changes.
      - Where it is wrong about what a job asks for, the job waits and its status says what to mend.
    type: str
    default: tf-job-operator-config
  cloud:
    description:
      - Whose GPU nodes these are, where no ConfigMap says what their pods need. Without it E(DLJOB_CLOUD) counts.
      - It concerns nodes that advertise C(alpha.kubernetes.io/nvidia-gpu). Where only C(nvidia.com/gpu) is advertised,
        pods ask for that instead, and its device plugin brings the driver along.
    type: str
    choices: ["", gke, azure]
    default: ""
  kubeconfig:
    description: Path of a kubeconfig file. Without it E(KUBECONFIG) or the pod's own account is used.
    type: path
  context:
    description: Context in the kubeconfig file; its current one by default.
    type: str
attributes:
  action:
    description: An action plugin, and nothing but one.
    support: full
  async:
    description: Can be run with C(async).
    support: none
  check_mode:
    description: The API server checks every object and keeps none; no status and no Event is written.
    support: full
  diff_mode:
    description: Every object that is created or deleted, and the status before and after, in YAML.
    support: full
author: dljob-operator developers (@dljob)
"""

EXAMPLES = r"""
- name: A framework with a leader and followers, the jobs handed over by the engine
  dljob.operator.reconcile:
    framework:
      name: echo
      kinds: [EchoJob]
      container: echo
      replica_types:
        Leader: {minimum: 1, maximum: 1}
        Follower: {}
      environment:
        ECHO_RANK: "{rank}"
        ECHO_SIZE: "{total}"
        ECHO_LEADER: "{rank0_host}:{rank0_port}"
      flavors:
        - groups: [example.com]
          replicas_layout: map
          replicas_fields: [replicaSpecs]
          default_port: 7000
          names: job
          status: v1

- name: Its environment computed by a filter, and an older way of writing its jobs
  dljob.operator.reconcile:
    framework:
      name: echo
      container: echo
      replica_types: {Leader: {minimum: 1, maximum: 1}, Follower: {}}
      environment: example.com.echo_environment
      flavors:
        - groups: [example.com]
          replicas_layout: list
          replicas_fields: [replicaSpecs, replica_specs]
          type_field: echoType
          port_fields: [echoPort]
          exit_codes: {retryable: [130, 137, 138, 143]}
          labels: {echo_job: "{job}", task_index: "{index}"}

- name: One pass over a given job, without an engine
  dljob.operator.reconcile:
    framework: "{{ mxnet_framework }}"
    jobs: ["{{ applied.resource }}"]
  register: reconciled
"""

RETURN = r"""
changed:
  description: Whether anything was written, or in check mode would be.
  type: bool
  returned: always
dljob:
  description: What became of the jobs. An engine reads it.
  type: dict
  returned: success, and failure where it is a job's
  contains:
    requeue_after:
      description: Seconds after which to run again in any case, the least of the jobs' own; V(0) is at once.
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
          description: False where the pass failed as a whole and must be done again, such as without a connection.
          type: bool
        changed:
          description: Whether anything was written for it.
          type: bool
        message:
          description: What there is to say, such as why the job is invalid or what Kubernetes would not write.
          type: str
        requeue_after:
          description: Seconds after which to look at it again even if nothing happens; none where that is not needed.
          type: float
        wrote:
          description:
            - The objects that the pass wrote. Each is its UID and the resourceVersion that it has since, null where it
              was deleted. An engine waits until its watch has shown them before it looks at the job again.
          type: list
          elements: list
          returned: when the pass got as far as writing
        warnings:
          description: What the operator may not do or see, each with the rule that its role lacks. An engine logs it.
          type: list
          elements: str
          returned: when the pass got as far as writing
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
        wrote: [[e800b1ed-9c6c-11e8-962f-704d7b2c0a63, "491499"]]
        warnings: []
msg:
  description: The messages of the jobs whose pass failed. The task itself fails only where that is every one of them.
  type: str
  returned: when a job's pass failed
"""
