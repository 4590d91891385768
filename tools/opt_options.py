"""Owns the command line of `magweld-opt`: its flags as one typed value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from magweld.diagnostics import MagweldError

_BOOLEANS = {"0": False, "false": False, "1": True, "true": True}

_EPILOG = """\
--<pass>[=options] runs a pass, upstream's or magweld's; several run in the order in
which they stand. They cannot be mixed with --pass-pipeline.
"""


class UsageError(MagweldError):
    """A command line that makes no sense."""


@dataclass(frozen=True)
class OptOptions:
    """What `magweld-opt` was asked to do.

    Attributes:
        input: Name of the input file, `-` for stdin.
        output: Name of the output file, `-` for stdout.
        pipeline: Pipeline text; "" runs nothing.
        action: "run", "version", "list-passes" or "emit-irdl".
    """

    input: str
    output: str
    pipeline: str
    action: str
    split_input_file: bool
    verify_diagnostics: bool
    verify_each: bool
    allow_unregistered_dialect: bool
    print_before_all: bool
    print_after_all: bool
    print_generic: bool
    print_debuginfo: bool
    timing: bool
    dump_directory: Path | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse_arguments(arguments: Sequence[str]) -> OptOptions:
    """Parse a command line.

    Raises:
        UsageError: It makes no sense.
        SystemExit: `--help` was printed.
    """
    parsed, rest = _make_parser().parse_known_args(arguments)
    pass_flags = [_pass_of_flag(argument) for argument in rest]
    if pass_flags and parsed.pass_pipeline is not None:
        raise UsageError(f"--pass-pipeline and {rest[0]} exclude each other")
    return OptOptions(
        input=parsed.input,
        output=parsed.output,
        pipeline=parsed.pass_pipeline or ",".join(pass_flags),
        action=parsed.action,
        split_input_file=parsed.split_input_file,
        verify_diagnostics=parsed.verify_diagnostics,
        verify_each=parsed.verify_each,
        allow_unregistered_dialect=parsed.allow_unregistered_dialect,
        print_before_all=parsed.mlir_print_ir_before_all,
        print_after_all=parsed.mlir_print_ir_after_all,
        print_generic=parsed.mlir_print_op_generic,
        print_debuginfo=parsed.mlir_print_debuginfo,
        timing=parsed.mlir_timing,
        dump_directory=parsed.mlir_print_ir_tree_dir,
    )


def _pass_of_flag(argument: str) -> str:
    """Turn `--name=options` into the pipeline element `name{options}`."""
    if not argument.startswith("--") or argument == "--":
        raise UsageError(f"unexpected argument '{argument}'")
    name, equals, options = argument[2:].partition("=")
    return f"{name}{{{options}}}" if equals else name


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise argparse.ArgumentTypeError(f"expected 0 or 1, got '{text}'")
    return _BOOLEANS[text.lower()]


def _make_parser() -> _Parser:
    parser = _Parser(
        prog="magweld-opt",
        description="Parse MLIR, run passes of upstream and of magweld, print MLIR.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(action="run")
    add = parser.add_argument
    add("input", nargs="?", default="-", help="input file; - is stdin, the default")
    add("-o", dest="output", default="-", metavar="FILE", help="output file, - stdout")
    add("--pass-pipeline", metavar="TEXT", help="passes as builtin.module(a,b{k=v})")
    add("--split-input-file", action="store_true", help="split at lines of '// -----'")
    add(
        "--verify-diagnostics",
        action="store_true",
        help="compare diagnostics with expected-error {{...}} comments",
    )
    add(
        "--verify-each",
        type=_boolean,
        default=True,
        metavar="0|1",
        help="verify after every pass (default: 1)",
    )
    add(
        "--allow-unregistered-dialect",
        action="store_true",
        help="accept operations of dialects that nobody registered",
    )
    _add_printing(parser)
    _add_actions(parser)
    return parser


def _add_printing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "printing, to stderr unless it is the result"
    ).add_argument
    flags = {
        "--mlir-print-ir-before-all": "print the IR before every pass",
        "--mlir-print-ir-after-all": "print the IR after every pass",
        "--mlir-print-op-generic": "print operations in generic form",
        "--mlir-print-debuginfo": "print locations",
        "--mlir-timing": "print the time that each pass took",
    }
    for flag, text in flags.items():
        add(flag, action="store_true", help=text)
    add(
        "--mlir-print-ir-tree-dir",
        type=Path,
        metavar="DIR",
        help="write the IR after every pass to files below a directory",
    )


def _add_actions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("instead of running passes").add_argument
    actions = {
        "list-passes": "list magweld's passes with their options",
        "emit-irdl": "print magweld's dialects as IRDL, for mlir-opt --irdl-file",
        "version": "print the version",
    }
    for action, text in actions.items():
        flag = f"--{action}"
        add(flag, dest="action", action="store_const", const=action, help=text)
