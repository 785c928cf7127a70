"""What tests share: builders of jobs, a cluster in memory, real jobs, the manifests of others."""
