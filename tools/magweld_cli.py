"""Owns the entry point of `magweld`: the command line and what a failure looks like."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Callable, Sequence

from magweld import __version__, env
from magweld.diagnostics import MagweldError

_MODEL = "MODULE:FACTORY; MODULE is importable or a .py file, FACTORY() gives the model"
_BUDGET = "bytes that a call may take, such as 2GiB; what does not fit is tiled"
_INPUTS = "one for each input: 1x3x224x224xf32, 8x128xi64, f32, ..."
_PRIVATE = "a PEM file with an Ed25519 key, as openssl genpkey makes it"
_PUBLIC = "a PEM file with an Ed25519 key, as openssl pkey -pubout makes it"


def _devices(parser: argparse.ArgumentParser) -> None:
    """Show devices: memory levels, arithmetic and where each number comes from."""
    names = "a100, cpu, v100+host, FILE#NAME, ...; all known ones if none is given"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--file", help="TOML file whose devices NAME are")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--toml", action="store_true", help="print a device file")
    measure = "measure this machine and keep the numbers for all later plans"
    form.add_argument("--measure", action="store_true", help=measure)


def _compile(parser: argparse.ArgumentParser) -> None:
    """Compile a model ahead of time into a file."""
    files = (
        "a .pt2 file of torch.export, a .mlir file in the torch dialect, a .onnx file"
    )
    parser.add_argument("model", help=f"{_MODEL}; or {files}")
    parser.add_argument(
        "--inputs",
        nargs="+",
        action="append",
        default=[],
        help=f"{_INPUTS}; a file has its own; with --portable given again, "
        "the file takes these as well",
    )
    parser.add_argument("--target", default="cpu", help="cpu, nvvm:sm_80[@DEVICE], ...")
    parser.add_argument("-o", dest="output", required=True, help="file to write")
    parser.add_argument("--memory-budget", help=_BUDGET)
    parser.add_argument("--sign", metavar="PRIVATE", help=f"sign the file; {_PRIVATE}")
    portable = "make a file that runs without torch, in C or with numpy"
    parser.add_argument("--portable", action="store_true", help=portable)
    dynamic = "with --portable: all sizes that a .pt2 file is for, as one program"
    parser.add_argument("--dynamic", action="store_true", help=dynamic)
    _add_tune(parser)


def _plans(parser: argparse.ArgumentParser) -> None:
    """Show the plans that measuring chose; take them to another machine."""
    action = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    action.add_parser("list", help="show the plans that are kept, with their times")
    write = action.add_parser("export", help="write all plans into a file")
    write.add_argument("file")
    read = action.add_parser("import", help="add the plans of a file")
    read.add_argument("file")
    action.add_parser("clear", help="forget all plans")


def _run(parser: argparse.ArgumentParser) -> None:
    """Run a compiled file on random inputs or on arrays from a file."""
    parser.add_argument("file", help="what `magweld compile` wrote")
    parser.add_argument("--inputs", default="random", help="random, or a .npz file")
    parser.add_argument("-o", dest="output", required=True, help=".npz file to write")
    key = f"run nothing that the owner of the key has not signed; {_PUBLIC}"
    parser.add_argument("--key", metavar="PUBLIC", help=key)


def _explain(parser: argparse.ArgumentParser) -> None:
    """Tell what is captured, guarded, fused and left to torch."""
    parser.add_argument("model", help=_MODEL)
    parser.add_argument(
        "--inputs",
        nargs="+",
        action="append",
        required=True,
        help=f"{_INPUTS}; given again, it is another call, which may be recorded anew",
    )
    measure = "also run the model, and time each kernel and library call alone"
    parser.add_argument("--measure", action="store_true", help=measure)
    parser.add_argument("--json", action="store_true", help="print JSON")
    page = "also write a page that draws the tile graph; - is standard output"
    parser.add_argument("--html", metavar="FILE", help=page)
    passes = "show in the page what each pass changed in the IR"
    parser.add_argument("--passes", action="store_true", help=passes)
    against = "compare in the page with another compilation, as --json printed it"
    parser.add_argument("--against", metavar="FILE", help=against)
    peers = "with --measure: backends of torch.compile to time calls of beside"
    parser.add_argument("--peers", metavar="BACKEND", nargs="+", default=(), help=peers)
    parser.add_argument("--memory-budget", help=_BUDGET)


def _bench(parser: argparse.ArgumentParser) -> None:
    """Time a model, eager against compiled."""
    _add_model(parser)
    parser.add_argument("--rounds", type=int, default=20, help="calls of each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_tune(parser)


def _runtime(parser: argparse.ArgumentParser) -> None:
    """Show where the C runtime of portable artifacts is, for a C compiler."""


def _sign(parser: argparse.ArgumentParser) -> None:
    """Sign a compiled file: the signature is written beside it."""
    parser.add_argument("file", help="what `magweld compile` wrote")
    parser.add_argument("--key", metavar="PRIVATE", required=True, help=_PRIVATE)


def _verify(parser: argparse.ArgumentParser) -> None:
    """Check that the owner of a key signed a compiled file."""
    parser.add_argument("file", help="what `magweld compile` wrote")
    parser.add_argument("--key", metavar="PUBLIC", required=True, help=_PUBLIC)


_COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "bench": _bench,
    "compile": _compile,
    "devices": _devices,
    "explain": _explain,
    "plans": _plans,
    "run": _run,
    "runtime": _runtime,
    "sign": _sign,
    "verify": _verify,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command and return the exit code: 1 with one message if it fails."""
    options = make_parser().parse_args(arguments)
    try:
        # Imported late: showing the help must not load torch.
        command = importlib.import_module(f"magweld.tools.cli.{options.command}")
        command.run(options)
    except ModuleNotFoundError as error:
        # Where artifacts are served there need be no torch.
        return _failed(
            f"the command needs the package '{error.name}', which is missing"
        )
    except (MagweldError, OSError, env.EnvironmentVariableError) as error:
        return _failed(error)
    return 0


def _failed(reason: object) -> int:
    """Print an error, with its traceback if that is asked for; return the exit code."""
    if env.DEBUG.get() >= len(env.DEBUG_LEVELS) - 1:
        traceback.print_exc()
    print(f"error: {reason}", file=sys.stderr)
    return 1


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: a command, then its own options."""
    parser = argparse.ArgumentParser(
        prog="magweld", description="Compile PyTorch programs and look inside."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, add_arguments in _COMMANDS.items():
        text = add_arguments.__doc__
        add_arguments(commands.add_parser(name, help=text, description=text))
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=_MODEL)
    parser.add_argument("--inputs", nargs="+", required=True, help=_INPUTS)


def _add_tune(parser: argparse.ArgumentParser) -> None:
    text = "choose plans by measuring, for so many seconds"
    parser.add_argument("--tune", type=float, metavar="SECONDS", help=text)


if __name__ == "__main__":
    sys.exit(main())
