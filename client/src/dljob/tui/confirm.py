"""The question before an action."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from dljob.output import printable


class Confirm(ModalScreen[bool]):
    """True for yes. The focus begins on no."""

    CSS = """
    Confirm { align: center middle; }
    Confirm Vertical { width: 70; height: auto; padding: 1 2; border: thick $warning; background: $surface; }
    Confirm Horizontal { height: auto; align-horizontal: center; margin-top: 1; }
    Confirm Button { margin: 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question, and two buttons."""
        with Vertical():
            yield Static(Text(printable(self._question)))
            with Horizontal():
                yield Button("No", id="no", variant="primary")
                yield Button("Yes", id="yes", variant="warning")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click or Enter."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """A key."""
        self.dismiss(yes)
