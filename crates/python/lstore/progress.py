"""Bars for work that takes long, in terminals and notebooks.

One thread draws them. It looks five times a second at what the connection is at, and ends when that was nothing for a while; so a
statement that is over before is not held up by it.
"""

from __future__ import annotations

import html
import sys
import threading
import time
from types import TracebackType
from typing import Any, Optional, Protocol

from ._lstore import NativeSession

#: Work that is over sooner shows nothing.
DELAY_S = 1.0
_LOOK_S = 0.2
_IDLE_LOOKS = 10
_WIDTH = 30


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def is_wanted() -> bool:
    """Whether somebody is there to look: a notebook, or a terminal behind standard error."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def bar(label: str, seconds: float, done: int, total: Optional[int]) -> str:
    """A line of text.

    >>> bar("COPY t", 2.25, 3, 4)
    'COPY t  ██████████████████████▌         75%  2.2 s'
    >>> bar("SELECT count(*) FROM t", 2.25, 0, None)
    'SELECT count(*) FROM t  2.2 s'
    """
    shown = " ".join(label.split())
    shown = shown if len(shown) <= 40 else shown[:39] + "…"
    if not total:
        return f"{shown}  {seconds:.1f} s"
    share = min(done / total, 1.0)
    eighths = round(share * _WIDTH * 8)
    full = "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")
    return f"{shown}  {full.ljust(_WIDTH)} {share:>4.0%}  {seconds:.1f} s"


class Display(Protocol):
    """Where bars are drawn."""

    def draw(self, label: str, seconds: float, done: int, total: Optional[int]) -> None:
        """Draws a bar, in place of the one before."""

    def clear(self) -> None:
        """Takes the bar away."""


class Terminal:
    """The last line of a terminal."""

    def draw(self, label: str, seconds: float, done: int, total: Optional[int]) -> None:
        """Draws a bar."""
        sys.stderr.write("\r\x1b[K" + bar(label, seconds, done, total))
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the bar away."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class Notebook:
    """An output of a cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def _show(self, text: str) -> None:
        import importlib

        # Without its types: whether they are there depends on what is installed.
        shown: Any = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = shown.display(shown.HTML(text), display_id=True)
        else:
            self._handle.update(shown.HTML(text))

    def draw(self, label: str, seconds: float, done: int, total: Optional[int]) -> None:
        """Draws a bar."""
        element = f'<progress max="{total}" value="{min(done, total)}"></progress> ' if total else ""
        self._show(f"{element}<code>{html.escape(bar(label, seconds, done, None))}</code>")

    def clear(self) -> None:
        """Takes the bar away."""
        self._show("")
        self._handle = None


class Watched:
    """What a connection is at, and the thread that draws it."""

    def __init__(self, session: NativeSession, display: Optional[Display] = None) -> None:
        self._session = session
        self._display = display
        self._work: list[tuple[str, float]] = []
        self._thread: Optional[threading.Thread] = None

    def at(self, label: str) -> "Watched":
        """The connection is at this while a `with` block lasts."""
        self._work.append((label, time.monotonic()))
        return self

    def __enter__(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._draw, name="lstore-progress", daemon=True)
            self._thread.start()

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._work.pop()

    def _draw(self) -> None:
        idle, shown = 0, False
        display = self._display or (Notebook() if in_notebook() else Terminal())
        while idle < _IDLE_LOOKS:
            time.sleep(_LOOK_S)
            try:
                label, begun = self._work[0]
            except IndexError:
                idle += 1
                if shown:
                    display.clear()
                shown = False
                continue
            idle, seconds = 0, time.monotonic() - begun
            if seconds >= DELAY_S:
                told = self._session.progress()
                label, done, total = told or (label, 0, None)
                display.draw(label, seconds, done, total)
                shown = True
