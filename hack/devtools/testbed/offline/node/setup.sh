#!/bin/bash
# Runs inside the node's root file system (chroot), after packages, kind's files and ours are in place: what kind's own
# base image does to a fresh Debian, for Debian's runc and network plugins.
set -eu

# systemd as the init of a container: none of the machine's own services
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
  /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/basic.target.wants/* \
  /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl*
echo 'ReadKMsg=no' >>/etc/systemd/journald.conf
ln -sf "$(command -v systemd)" /sbin/init

# the places where kind has its own builds
ln -sf /usr/sbin/runc /usr/local/sbin/runc
rm -rf /opt/cni
mkdir -p /opt/cni
ln -s /usr/lib/cni /opt/cni/bin

systemctl enable kubelet.service containerd.service undo-mount-hacks.service kindnet-lite.path
systemctl mask systemd-binfmt.service # it would register with the whole kernel
mkdir -p /etc/kubernetes/manifests

# Containers start from containerd's default spec. kind adds a hook that hides the machine's product id; nothing here
# reads that, and its five processes take 6 % of the processor time of starting a pod. The version of the specification
# is that of hack/go/containerd/main.go, whose sandboxes do not start from this file.
ctr oci spec | jq 'del(.process.rlimits) | .ociVersion = "1.0.2"' >/etc/containerd/cri-base.json

rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*.log
