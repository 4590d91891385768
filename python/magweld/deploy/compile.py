"""Owns portable compilation: calls of a model to what runs without torch."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

import magweld
from magweld.aot.compile import CapturedCall, ImportedCall, import_call
from magweld.aot.nested import Constant, Group, Nested, leaves_of, to_json
from magweld.aot.signature import Signature
from magweld.aot.sources import Inputs, Model, captured
from magweld.aot.template import Template
from magweld.api import compile_imported
from magweld.artifact import HOST_TARGET, Program
from magweld.codegen.entry import Call
from magweld.codegen.host import LEVELS
from magweld.compiler_options import CompileOptions
from magweld.deploy.entry_calls import Constants, has_native_loops
from magweld.deploy.errors import DIFFERENT_CALLS, EXTERNAL, SIZES, WRITES
from magweld.deploy.forms import FormMaker, FormSource, dtype_name, linked
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.portable_file import Code, Form, Port, PortableProgram, encode
from magweld.deploy.sizes import OpenSizes, exported
from magweld.diagnostics import UnsupportedError
from magweld.importer.gathers import LEAST_INDEX
from magweld.importer.importer import ImportedGraph
from magweld.importer.sizes import one_graph
from magweld.program_sizes import program_at, require_sizes
from magweld.runtime.errors import WorkerError


def compile_portable(
    model: Model,
    inputs: Inputs | None = None,
    *more_inputs: Inputs,
    levels: Sequence[str] = LEVELS,
    dynamic: Any = None,
) -> PortableArtifact:
    """Compile a model, without gradients, to an artifact that needs no torch to run.

    A module or function runs once for each set of inputs, which is a real run; what
    `torch.export` made does not run. What the model reads beside its inputs, such as
    parameters, is copied into the artifact.

    Args:
        model: Module, function, or `torch.export.ExportedProgram`.
        inputs: Positional arguments, or keyword arguments by name: tensors and plain
            constants, in tuples, lists and dicts. Shapes, dtypes and constants become
            fixed. None is the arguments that a program was exported with.
        more_inputs: The same of other shapes; the artifact takes inputs of all these.
        levels: The CPUs that code is made for. What loads the artifact takes the
            highest level that its CPU has.
        dynamic: Sizes that inputs may have, so that one program is for all of them.
            With a module it is `dynamic_shapes` of `torch.export.export`, such as
            `({0: torch.export.Dim("batch", max=64)},)`, and the module is exported;
            with an exported program it is True, and the ranges are those of the
            export.

    Returns:
        What can be saved, and called with arrays of numpy.

    Raises:
        UnsupportedError: The model cannot become a portable artifact:
            `portable-operator` names the operators without generated code,
            `portable-sizes` why it is not one program for all sizes.
        WorkerError: The compiler refused the graph or did not come back.
    """
    maker = _Maker()
    kinds: tuple[Inputs | None, ...]
    if dynamic is not None:
        program = exported(model, inputs, dynamic)
        maker.add_sizes(OpenSizes.of(program, inputs), levels)
        model, kinds = program, more_inputs
    else:
        kinds = (inputs, *more_inputs)
    for one in kinds:
        # What loads the artifact makes inputs row-major: the graph must be of such.
        maker.add(captured(model, one, row_major=True), levels)
    return PortableArtifact(encode(maker.program()))


class _Image:
    """The code of a program, which becomes an image when its calls are known.

    Args:
        codes: Where the image goes.
        objects: The code.
        level: What it is for.
    """

    def __init__(self, codes: list[Code], objects: Sequence[bytes], level: str) -> None:
        self._codes = codes
        self._objects = objects
        self._level = level
        self._calls: tuple[Call, ...] | None = None
        self._found = (0, 0)

    def of(self, calls: tuple[Call, ...]) -> tuple[int, int]:
        """Return the position of the image and where its entry function is.

        Raises:
            UnsupportedError: `portable-sizes`: it was linked with other calls.
        """
        if self._calls is None:
            code, entry = linked(self._objects, calls, self._level)
            self._calls, self._found = calls, (len(self._codes), entry)
            self._codes.append(code)
        if calls != self._calls:
            raise SIZES.at("the calls of the kernels depend on sizes")
        return self._found


class _Maker:
    """Collects the forms of one artifact."""

    def __init__(self) -> None:
        self._constants = Constants()
        self._codes: list[Code] = []
        self._forms: list[Form] = []
        self._failures: list[str] = []
        self._facts: tuple[str, tuple[Port, ...], tuple[Port, ...]] | None = None

    def add(self, call: CapturedCall, levels: Sequence[str]) -> None:
        """Compile a call for CPUs of some levels.

        Raises:
            UnsupportedError: It cannot become a form, or does not fit those before.
            WorkerError: The compiler refused the graph or did not come back.
        """
        ours = import_call(call, HOST_TARGET, alone=True)
        for level in levels:
            imported, program = _compiled(ours.imported, level)
            self._add_form(ours, imported, program, self._image_for(program, level))

    def add_sizes(self, sizes: OpenSizes, levels: Sequence[str]) -> None:
        """Compile one program for all sizes of an exported one.

        Each set of sizes is a form of the same code. A set with a 1 is a program of
        its own: torch looks at what has an extent of 1.

        Raises:
            UnsupportedError: It is not one program, or cannot become a form.
            WorkerError: The compiler refused the graph or did not come back.
        """
        some = sizes.call(sizes.shapes(next(sizes.every())))
        relations = sizes.relations(list(some.state.values()))
        count = len(some.inputs)
        calls = [
            import_call(
                sizes.call(one.shapes[:count], any_sizes=True),
                HOST_TARGET,
                alone=True,
                stand_ins=one.stand_ins,
            )
            for one in relations
        ]
        ours, theirs = calls
        first, second = relations
        try:
            sets = (first.stand_ins, second.stand_ins)
            graph, extents = one_graph(ours.imported, theirs.imported, *sets)
        except UnsupportedError as error:
            raise SIZES.at(str(error)) from error
        for level in levels:
            options = CompileOptions(
                library="never", level=level, loops=False, batch=False
            )
            imported, program = _compiled_for_sizes(graph, extents, options)
            image = self._image_for(program, level)
            for one in sizes.every():
                shapes = sizes.shapes(one)
                if 1 in one.values():
                    self.add(sizes.call(shapes), [level])
                    continue
                state = tuple(tuple(x.shape) for x in some.state.values())
                found = first.sizes_of(shapes + state, ())
                if found is None:
                    raise SIZES.at(f"shapes {shapes}")
                inputs = [
                    torch.empty(shape, dtype=x.dtype, device="meta")
                    for shape, x in zip(shapes, some.inputs, strict=True)
                ]
                self._add_form(
                    replace(ours, call=replace(ours.call, inputs=inputs)),
                    imported.at(found),
                    program_at(program, found),
                    image,
                )

    def _image_for(self, program: Program, level: str) -> _Image:
        return _Image(self._codes, program.objects, level)

    def _require_code(self, imported: ImportedGraph, program: Program) -> None:
        reasons = program.report.get("refused", {})
        operators = {n: str(x.node.target) for n, x in imported.externals.items()}
        names = [name for name in operators if operators[name] not in LEAST_INDEX]
        if names:
            raise _refusal(imported, names, operators, reasons)

    def _add_form(
        self,
        ours: ImportedCall,
        imported: ImportedGraph,
        program: Program,
        image: _Image,
    ) -> None:
        """Add a form, and its code if that is new."""
        if imported.epilogue.writes:
            raise WRITES.at("the captured graph")
        self._require_code(imported, program)
        call = ours.call
        leaves = list(leaves_of(call.template))
        source = FormSource(
            program=program,
            plan=ours.plan(imported),
            inputs=call.inputs,
            state=list(ours.state.values()),
            leaves=[(part.source, part.index) for _, part in leaves],
            names=[name or "output" for name, _ in leaves],
            failures=_failures(imported),
        )
        maker = FormMaker(source, self._constants, self._failures)
        form, outputs = maker.make()
        structure = _structure(call.signature, call.template)
        self._require_same((structure, _input_ports(call.signature), tuple(outputs)))
        code, entry = image.of(maker.calls)
        self._forms.append(replace(form, code=code, entry=entry))

    def _require_same(
        self, facts: tuple[str, tuple[Port, ...], tuple[Port, ...]]
    ) -> None:
        self._facts = self._facts or facts
        if facts != self._facts:
            raise DIFFERENT_CALLS.at("the inputs or results of one of the calls")

    def program(self) -> PortableProgram:
        """Return what was collected."""
        assert self._facts is not None, "there is at least one call"
        structure, inputs, outputs = self._facts
        return PortableProgram(
            producer=f"magweld {magweld.__version__}",
            structure=structure,
            inputs=inputs,
            outputs=outputs,
            failures=tuple(self._failures),
            codes=tuple(self._codes),
            forms=tuple(self._forms),
            data=bytes(self._constants.data),
        )


def _compiled_for_sizes(
    graph: ImportedGraph, extents: frozenset[int], options: CompileOptions
) -> tuple[ImportedGraph, Program]:
    """Compile a graph of which generated code is to run all for all sizes.

    Args:
        graph: It.
        extents: Those that depend on sizes.
        options: Of the compilation.

    Raises:
        UnsupportedError: `portable-sizes`.
    """
    try:
        imported, program = compile_imported(graph, options, tune=False)
    except WorkerError as error:
        # Kernels that need more than one loop over sizes are refused there.
        raise SIZES.at(str(error).partition("\n")[0]) from error
    left = [
        imported.where(name)
        for name, external in imported.externals.items()
        if str(external.node.target) not in LEAST_INDEX
    ]
    if left:
        raise SIZES.at(f"no code for all sizes has {'; '.join(left)}")
    try:
        require_sizes(program, extents)
    except UnsupportedError as error:
        raise SIZES.at(str(error)) from error
    return imported, program


def _compiled(imported: ImportedGraph, level: str) -> tuple[ImportedGraph, Program]:
    options = CompileOptions(library="never", level=level)
    found, program = compile_imported(imported, options, tune=False)
    if not has_native_loops(program):
        options = replace(options, loops=False)
        found, program = compile_imported(imported, options, tune=False)
    return found, program


def _refusal(
    imported: ImportedGraph,
    names: Sequence[str],
    operators: Mapping[str, str],
    reasons: Mapping[str, str],
) -> Exception:
    lines = [
        f"{operators[name]}, {imported.where(name)}"
        + (f": {reasons[name]}" if name in reasons else "")
        for name in names
    ]
    return EXTERNAL.at("; ".join(lines))


def _failures(imported: ImportedGraph) -> dict[str, str]:
    return {
        name: f"index out of range: {imported.where(name)}"
        for name in imported.externals
    }


def _input_ports(signature: Signature) -> tuple[Port, ...]:
    return tuple(Port(name, dtype_name(x.dtype)) for name, x in signature.leaves)


def _structure(signature: Signature, template: Template) -> str:
    """Return how Python puts inputs and the result together, as JSON.

    A tensor is {"tensor": number}, counted in order; what is nested is {"tuple": ...},
    {"list": ...} or {"dict": pairs}; the rest is {"constant": value}. "distinct" says
    whether no array may be passed twice.
    """
    numbers = itertools.count()
    described = {
        "positional": [_described(one, numbers) for one in signature.positional],
        "keywords": [[name, _described(x, numbers)] for name, x in signature.keywords],
        "result": _described(template, itertools.count()),
        "distinct": signature.distinct,
    }
    return json.dumps(described)


def _described(part: Nested[Any], numbers: Iterator[int]) -> Any:
    if not isinstance(part, Constant | Group):
        return {"tensor": next(numbers)}
    kind, content = to_json(part, lambda item: _described(item, numbers))
    return {kind: content}
