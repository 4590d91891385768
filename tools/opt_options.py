"""Owns the command line of `magweld-opt`: its flags as one typed value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from magweld.diagnostics import MagweldError, did_you_mean
from magweld.passes.infrastructure.phases import Phase
from magweld.targets.catalog import HOST

_BOOLEANS = {"0": False, "false": False, "1": True, "true": True}

# Options of the pipelines that the phases are made of.
_PHASE_OPTIONS = {
    "device": "device to plan for (default: that of the target)",
    "library": "auto, never or always: whether libraries may compute operators",
    "fusion": "all, registers or none: which operators may share a kernel",
    "loops": "true or false: whether alike iterations become loops",
    "memory-budget": "bytes for intermediate tensors (default: 0, no limit)",
    "vector-bits": "width of a vector register (default: this machine's)",
    "vector-registers": "number of vector registers (default: this machine's)",
}

_EPILOG = """\
--<pass>[=options] runs a pass, upstream's or magweld's; several run in the order in
which they stand. They cannot be mixed with --pass-pipeline. --compile-to runs the
compiler's own steps from one phase to another.
"""


class UsageError(MagweldError):
    """A command line that makes no sense."""


@dataclass(frozen=True)
class Compilation:
    """Phases to go through.

    Attributes:
        until: Phase to stop at.
        after: Phase of the module; None for that which it looks like.
        target: Text of the target.
        options: What else the flags say: options of the target's pipeline by name.
    """

    until: Phase
    after: Phase | None
    target: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OptOptions:
    """What `magweld-opt` was asked to do.

    Attributes:
        input: Name of the input file, `-` for stdin.
        output: Name of the output file, `-` for stdout.
        pipeline: Pipeline text; "" runs nothing.
        compilation: What phases to go through instead of a pipeline.
        action: "run", "version", "list-passes", "list-phases" or "emit-irdl".
    """

    input: str
    output: str
    pipeline: str
    compilation: Compilation | None
    dump_pass_pipeline: bool
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
    parser = _make_parser()
    # argparse takes an argument with a space that it does not know for a file name.
    passes = [argument for argument in arguments if _names_pass(parser, argument)]
    others = [argument for argument in arguments if argument not in passes]
    parsed, rest = parser.parse_known_args(others)
    if rest:
        raise UsageError(f"unexpected argument '{rest[0]}'")
    if passes and parsed.pass_pipeline is not None:
        raise UsageError(f"--pass-pipeline and {passes[0]} exclude each other")
    compilation = _compilation(parsed)
    if compilation and (passes or parsed.pass_pipeline is not None):
        other = passes[0] if passes else "--pass-pipeline"
        raise UsageError(f"--compile-to and {other} exclude each other")
    return OptOptions(
        input=parsed.input,
        output=parsed.output,
        pipeline=parsed.pass_pipeline or ",".join(map(_pass_of_flag, passes)),
        compilation=compilation,
        dump_pass_pipeline=parsed.dump_pass_pipeline,
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


def _compilation(parsed: argparse.Namespace) -> Compilation | None:
    given = {flag: getattr(parsed, flag.replace("-", "_")) for flag in _PHASE_OPTIONS}
    options = tuple((flag, text) for flag, text in given.items() if text is not None)
    if parsed.compile_to is not None:
        target = parsed.target or HOST
        return Compilation(parsed.compile_to, parsed.compile_from, target, options)
    for flag in ("compile-from", "target"):
        if getattr(parsed, flag.replace("-", "_")) is not None:
            raise UsageError(f"--{flag} needs --compile-to")
    if options:
        raise UsageError(f"--{options[0][0]} needs --compile-to")
    return None


def _phase(text: str) -> Phase:
    if text not in set(Phase):
        hint = did_you_mean(text, map(str, Phase))
        raise argparse.ArgumentTypeError(f"unknown phase '{text}'{hint}")
    return Phase(text)


def _names_pass(parser: _Parser, argument: str) -> bool:
    """Whether an argument is a long flag that the parser does not know."""
    if not argument.startswith("--") or argument == "--":
        return False
    flag, _, _ = argument.partition("=")
    try:
        _, unknown = parser.parse_known_args([f"{flag}="])
    except UsageError:
        return False  # it knows the flag and wants another value
    return bool(unknown)


def _pass_of_flag(argument: str) -> str:
    """Turn `--name=options` into the pipeline element `name{options}`."""
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
    add(
        "--dump-pass-pipeline",
        action="store_true",
        help="print the passes that run as pipeline text, to stderr",
    )
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
    _add_phases(parser)
    _add_printing(parser)
    _add_actions(parser)
    return parser


def _add_phases(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("phases of the compiler").add_argument
    add(
        "--compile-to",
        type=_phase,
        metavar="PHASE",
        help="run the steps to a phase (see --list-phases)",
    )
    add(
        "--compile-from",
        type=_phase,
        metavar="PHASE",
        help="phase of the module (default: what it looks like)",
    )
    add("--target", help="cpu, nvvm:sm_80, rocdl:gfx942, ... (default: cpu)")
    for name, text in _PHASE_OPTIONS.items():
        add(f"--{name}", metavar="VALUE", help=text)


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
        "list-phases": "list the phases of each kind of target",
        "list-passes": "list magweld's passes with their options",
        "emit-irdl": "print magweld's dialects as IRDL, for mlir-opt --irdl-file",
        "version": "print the version",
    }
    for action, text in actions.items():
        flag = f"--{action}"
        add(flag, dest="action", action="store_const", const=action, help=text)
