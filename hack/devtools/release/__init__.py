"""What must hold before a tag is released."""
