"""Commands whose ids and names are positional, and the flags that named them in older versions.

`run get r3` is the form that help shows. `run get --id r3` still works: a flag that has the name of
an argument gives that argument its value. This is done here once, for every command.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

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
DESCRIBED = "hiboss.described"  # in the context: options that only the daemon knows, each a Given


class Given(NamedTuple):
    """A word of the command line that may be an option which only the daemon knows."""

    flag: str
    value: str | None  # behind its `=`, or the next word
    word: str  # as it was written
    following: str | None  # without a value: the next word, if that may be an option, or its value


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
        """Collect an option that only the daemon knows; its value is the next word, unless that may be an option.

        Whether the option needs a value, only the daemon knows: described_options.py decides then.
        """
        assert self.ctx is not None
        if opt in self._long_opt or not getattr(self.ctx.command, "described", False):
            return super()._match_long_opt(opt, explicit_value, state)
        word = opt if explicit_value is None else f"{opt}={explicit_value}"
        value, following = explicit_value, None
        if value is None and state.rargs:
            if _may_be_option(state.rargs[0]):
                following = state.rargs[0]
            else:
                value = state.rargs.pop(0)
        self.ctx.meta.setdefault(DESCRIBED, []).append(Given(opt, value, word, following))

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


def _may_be_option(word: str) -> bool:
    """`--add-dir /srv/data` is none, in one word: no option has a space in its name."""
    return word.startswith("--") and not re.search(r"\s", word.partition("=")[0])


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
