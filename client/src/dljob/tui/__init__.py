"""The terminal view, ``dljob tui``. It needs Textual: ``pip install dljob[tui]``."""
