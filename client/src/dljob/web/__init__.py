"""The web page, ``dljob ui``. It needs Starlette, uvicorn and Jinja2: ``pip install dljob[web]``."""
