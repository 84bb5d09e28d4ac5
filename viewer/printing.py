"""How templates become Python: all that they print passes one function, and what they call is called as it stands.

Jinja2 makes a `Markup` of every value, looks a name up in two ways, and asks each function whether it wants to know
where it is called from. A page of a run prints a thousand values and calls three hundred functions: without that it
takes little more than half the time.
"""

import re
from typing import Any

from jinja2 import Environment, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, Macro
from markupsafe import Markup, escape

from ledger.words.text import visible

_is_plain = re.compile("[ !#-%(-;=?-~]*").fullmatch
"""Of the printable characters of ASCII all but the five that mean something in HTML."""


def inert(value: object) -> str:
    """Text escaped, with its control and direction characters shown; markup as it is."""
    if type(value) is str:
        return value if _is_plain(value) else escape(visible(value))
    if isinstance(value, Markup):
        return value
    if type(value) is int or type(value) is float:
        return str(value)
    return escape(visible(value) if isinstance(value, str) else value)


class _Code(CodeGenerator):
    """Prints through `inert`, whatever a template says of escaping; `a.b` is an attribute, and `a["b"]` an item."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write("environment.inert(")

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        """Jinja2 would try both for each."""
        self.visit(node.node, frame)
        self.write(f".{node.attr}")


class _Context(Context):
    """Calls a function without asking it; only a macro is told that what it makes is markup."""

    def call(self, function: Any, /, *args: Any, _loop_vars: Any = None, _block_vars: Any = None, **named: Any) -> Any:
        """As Jinja2's own, which hands the variables of loops and blocks to functions that want them."""
        if type(function) is Macro:
            return function(self.eval_ctx, *args, **named)
        return function(*args, **named)


class PrintingEnvironment(Environment):
    """Jinja2 in which everything is escaped."""

    code_generator_class = _Code
    context_class = _Context
    inert = staticmethod(inert)

    def make_globals(self, d: Any) -> Any:
        """The environment's own, unless a template has some beside them: a chain of mappings is slow to look into."""
        return super().make_globals(d) if d else self.globals
