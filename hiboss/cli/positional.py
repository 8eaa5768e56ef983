"""Commands whose ids and names are positional, and the flags that named them in older versions.

`run get r3` is the form that help shows. `run get --id r3` still works: a flag that has the name of
an argument gives that argument its value. This is done here once, for every command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer._click.exceptions import UsageError
from typer._click.parser import _OptionParser, _ParsingState
from typer.core import TyperCommand
from typer.models import CommandFunctionType

HELP = {"help_option_names": ["-h", "--help"]}
# The parameter of a command, and the flag it was before.
OLD_FLAGS = {"id_": "--id", "ids": "--id", "name": "--name", "address": "--address", "cron": "--cron"}
_VALUES = "old_flag_values"
EXTRA = "hiboss.extra_words"  # in the context: the words that no argument takes
DESCRIBED = "hiboss.described"  # in the context: options that only the daemon knows, with their values


class Command(TyperCommand):
    """A command that still takes the old flags of its arguments; help does not show them."""

    described = False  # it also takes options that the daemon describes (described_options.py)

    def old_flags(self) -> dict[str, Any]:
        """Each old flag that this command takes, with its argument."""
        options = {name for one in self.params for name in one.opts}
        found = {OLD_FLAGS.get(one.name or ""): one for one in _arguments(self)}
        return {flag: one for flag, one in found.items() if flag is not None and flag not in options}

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS] ID [TEXT]`; Typer would write `{ID}`."""
        return ["[OPTIONS]", *(str(one.metavar) for one in _arguments(self))]

    def make_parser(self, ctx: Any) -> _OptionParser:
        parser = _Parser(ctx)
        for param in self.get_params(ctx):
            param.add_to_parser(parser, ctx)
        for flag, argument in self.old_flags().items():
            parser.add_option(obj=argument, opts=[flag], dest=f"{_VALUES}:{flag}", action="append")
        return parser


class _Parser(_OptionParser):
    """Puts the values of old flags in the place of the positional ones, before these are counted."""

    def _match_long_opt(self, opt: str, explicit_value: str | None, state: _ParsingState) -> None:
        """Collect an option that only the daemon knows; its value is the next word, unless that is an option."""
        assert self.ctx is not None
        if opt in self._long_opt or not getattr(self.ctx.command, "described", False):
            return super()._match_long_opt(opt, explicit_value, state)
        value = explicit_value
        if value is None and state.rargs and not state.rargs[0].startswith("--"):
            value = state.rargs.pop(0)
        self.ctx.meta.setdefault(DESCRIBED, []).append((opt, value))

    def _process_args_for_args(self, state: _ParsingState) -> None:
        assert self.ctx is not None and isinstance(self.ctx.command, Command)
        arguments = _arguments(self.ctx.command)
        state.largs, state.rargs = state.largs + state.rargs, []
        for flag, argument in self.ctx.command.old_flags().items():
            values = state.opts.pop(f"{_VALUES}:{flag}", [])
            twice = len(values) > 1 or (values and len(state.largs) >= len(arguments))
            if argument.nargs == 1 and twice:
                name = str(argument.metavar).strip("[]")
                raise UsageError(f"{name} is given twice ({flag}); give it once", ctx=self.ctx)
            place = arguments.index(argument)
            state.largs[place:place] = values
        super()._process_args_for_args(state)
        self.ctx.meta[EXTRA] = list(state.largs)


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


class DescribedCommand(Command):
    described = True

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[--OPTION VALUE]…"]


class Commands(typer.Typer):
    """A Typer whose commands all are of our class."""

    def command(
        self, name: str | None = None, *, described: bool = False, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        kind = DescribedCommand if described else Command
        return super().command(name, cls=kind, context_settings=HELP, **settings)
