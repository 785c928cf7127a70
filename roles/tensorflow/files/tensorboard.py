"""TensorBoard, as its own command runs it, with one header less.

It calls its first page's encoding "identity". The API server's proxy, through which one reaches a Service from outside,
knows no such encoding and breaks off. Where TensorBoard is too old or too new to be mended like this, it runs unmended.
No syntax that Python 2 does not know: it runs in whatever image the job names.
"""

import os
import sys


def without_identity(application):
    """The WSGI application, without the header that says nothing."""

    def answer(environ, start_response):
        def start(status, headers, *rest):
            kept = [h for h in headers if (h[0].lower(), h[1].lower()) != ("content-encoding", "identity")]
            return start_response(status, kept, *rest)

        return application(environ, start)

    return answer


def mended():
    """TensorBoard's own main function, its server mended; None where it is not the one that this knows."""
    try:
        from tensorboard import main, program

        # in the class itself: what starts it has got hold of it while it was imported
        known = program.WerkzeugServer.__init__

        def begin(self, wsgi_app, flags):
            known(self, without_identity(wsgi_app), flags)

        program.WerkzeugServer.__init__ = begin
        return main.run_main
    except (ImportError, AttributeError):
        return None


if __name__ == "__main__":
    run = mended()
    if run is None:
        os.execvp("tensorboard", ["tensorboard"] + sys.argv[1:])
    run()
