"""Processes that outlive the play which starts them: the operator of molecule's scenarios."""
