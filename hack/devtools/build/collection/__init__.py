"""The repository as an Ansible collection: its dependencies, the tarball and the wheel, and ansible-test."""
