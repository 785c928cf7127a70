"""The repository as an Ansible collection: what it stands on, what is made of it, and the ecosystem's own checks."""
