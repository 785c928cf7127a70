"""CHANGELOG.md and changelogs/changelog.yaml, which antsibull-changelog writes from changelogs/fragments/."""
