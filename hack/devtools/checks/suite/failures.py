"""A plugin of pytest that writes a failure as soon as it happens: a step may go on for half an hour after it."""

from __future__ import annotations

import pytest

NAME = __name__


class Failures:
    """Writes the failures to the output of pytest, whose summary repeats them."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the report of a test's set-up, call or teardown that failed."""
        again = ", and is tried again" if report.outcome == "rerun" else ""  # by pytest-rerunfailures
        if report.failed or again:
            self._reporter.write_line("")
            self._reporter.write_line(f"FAILED {report.nodeid} ({report.when}){again}")
            self._reporter.write_line(report.longreprtext)


@pytest.hookimpl(trylast=True)  # pytest's own plugin registers the reporter in the same hook
def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in the process whose output is read; with xdist that is not a worker's."""
    if hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    config.pluginmanager.register(Failures(reporter))
