"""Containers that ended with an error: by the kubelet's reason, what the program said last, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dljob.why.finding import Rule, first_match, rule

_OF = "container {container} of {who} ended with exit code {code}"

TABLE = (
    rule("out-of-memory", r"reason OOMKilled", "container {container} of {who} was killed: it used more memory than its limit{limit}",
         "Raise resources.limits.memory, or use less memory: smaller batches, fewer loader processes."),
    rule("exec-format", "exec format error", "the program of container {container} of {who} is for another processor, or no program",
         "Build the image for the node's platform; a script needs #! in its first line."),
    rule("not-executable", r"(?:StartError|ContainerCannotRun|RunContainerError).*permission denied",
         "the program of container {container} of {who} may not be executed", "chmod +x it in the image, or name an interpreter before it."),
    rule("working-directory", r"(?:StartError|ContainerCannotRun|CreateContainerError).*(?:chdir to cwd|workingDir)",
         "the working directory of container {container} of {who} does not exist", "Correct workingDir, or create it in the image."),
    rule("program-missing", r"executable file not found|(?:StartError|ContainerCannotRun).*no such file or directory",
         "the image of container {container} of {who} lacks its program", "Correct command, or use an image that has the program."),
    rule("exit-126", r"exit code 126\b", f"{_OF}: the shell may not execute a file", "chmod +x the file, or name an interpreter before it."),
    rule("exit-127", r"exit code 127\b", f"{_OF}: the shell does not find a command", "Correct the command, or install it in the image."),
    rule("gpu-out-of-memory", r"CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED: Out of memory",
         "the GPU of {who} has too little memory", "Use a smaller batch or model shards, or GPUs with more memory."),
    rule("gpu-missing", r"no CUDA-capable device|Found no NVIDIA driver|CUDA driver version is insufficient|libcuda\.so",
         "there is no usable GPU in {who}", "Request a GPU in resources.limits; check driver and device plugin of the node."),
    rule("port-in-use", r"address already in use|EADDRINUSE", "a port that {who} needs is in use",
         "Do not use hostNetwork, or give each job on a node a port of its own."),
    rule("name-not-resolved", r"failure in name resolution|name or service not known|nodename nor servname|no such host|"
         r"could not resolve host|getaddrinfo|UnknownHostException", "{who} could not resolve a name",
         "Check the job's Service and the cluster's DNS; wait for the names in the program."),
    rule("collective-failed", r"NCCL error|ncclSystemError|ncclInternalError|ncclRemoteError|collective operation timeout|"
         r"Gloo connectFullMesh failed|connectFullMesh|Connection closed by peer", "{who} lost the connection to other replicas",
         "Look for the replica that ended first; check NetworkPolicy, NCCL_SOCKET_IFNAME and /dev/shm."),
    rule("shared-memory", r"unable to open shared memory|insufficient shared memory|killed by signal: Bus error",
         "there is too little shared memory in {who}", "Mount an emptyDir with medium: Memory at /dev/shm."),
    rule("disk-full", r"no space left on device|ENOSPC|disk quota exceeded", "a disk of {who} is full", "Use a larger volume, or write less."),
    rule("module-missing", r"ModuleNotFoundError|ImportError: ", "the image of {who} lacks a Python module",
         "Install the module in the image."),
    rule("permission-denied", r"permission denied|PermissionError|EACCES", "a permission is missing in {who}",
         "Correct owner and mode of the file, runAsUser and fsGroup of the template.") ,
    rule("exit-137", r"exit code 137\b", f"{_OF}: it was killed by SIGKILL",
         "Look for lack of memory on the node, a failed liveness probe, or a grace period that was too short."),
    rule("exit-139", r"exit code 139\b", f"{_OF}: it crashed (SIGSEGV)",
         "Compare the versions of driver, CUDA and native libraries in the image."),
    rule("exit-134", r"exit code 134\b", f"{_OF}: it aborted (SIGABRT)", "Read the end of its log: a check or an assertion failed."),
    rule("exit-143", r"exit code 143\b", f"{_OF}: it was asked to stop (SIGTERM)",
         "Look for who stopped it: a drain, a preemption, a probe or a deletion."),
    rule("exit-code", "", f"{_OF}", "Read the end of its log: kubectl logs {pod} -c {container}."),
)  # fmt: skip
GENERIC = ("exit-code",)


def words_of(terminated: Mapping[str, Any]) -> str:
    """The end in one line: code, reason, and what it said last."""
    said = " ".join(str(terminated.get("message") or "").split())
    text = f"exit code {terminated.get('exitCode')}, reason {terminated.get('reason') or 'unknown'}"
    return f"{text}: {said[-600:]}" if said else text


def classify(terminated: Mapping[str, Any]) -> tuple[Rule, Mapping[str, str]]:
    """The row of a container's end."""
    return first_match(TABLE, words_of(terminated)) or (TABLE[-1], {})
