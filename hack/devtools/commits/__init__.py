"""The rules for commit subjects, and where subjects come from: a message file or a range of commits."""
