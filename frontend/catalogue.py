"""Owns the catalogue of refusals: every reason why a run is not captured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """One way in which capturing ends.

    Attributes:
        id: Stable name, as it is written in `docs/breaks.md`.
        reason: What cannot be done, one clause.
        hint: What the user can do about it.
    """

    id: str
    reason: str
    hint: str


@dataclass(frozen=True)
class Break:
    """One refusal that happened.

    Attributes:
        refusal: Entry of the catalogue.
        detail: The object or operation concerned.
        where: The user's file:line, or "" outside of a run.
    """

    refusal: Refusal
    detail: str
    where: str

    @property
    def id(self) -> str:
        """Id of the refusal."""
        return self.refusal.id

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.id}{at}: {self.refusal.reason}{detail} ({self.refusal.hint})"


class StopRecordingError(Exception):
    """The run cannot be captured; never leaves the front end.

    Attributes:
        refusal: Entry of the catalogue.
        detail: The object or operation concerned.
    """

    def __init__(self, refusal_id: str, detail: str = "") -> None:
        super().__init__(f"{refusal_id}: {detail}")
        self.refusal = CATALOGUE[refusal_id]
        self.detail = detail


# Reasons that concern one instruction: the recording ends before it, it runs by itself,
# and another recording begins behind it. All others concern the call as a whole.
SPLITTING = frozenset(
    (
        "autograd-graph class-write dynamic-shape native-attribute native-call"
        " native-class native-operator opaque-iterator opaque-key opaque-value opcode"
        " operator-argument operator-raised random-state tensor-attribute tensor-value"
        " tensor-write"
    ).split()
)

# Reasons that lie outside of the program and may pass: they do not count against it.
PASSING = frozenset({"monitor-busy", "tool-busy", "torch-mode", "tracer-active"})

# Id -> reason, hint.
_TEXTS = {
    "native-call": (
        "a native function without annotation was called",
        "keep it out of the traced part, or annotate it",
    ),
    "native-class": (
        "an object of a native class without annotation was made",
        "make it outside of the traced part",
    ),
    "native-attribute": (
        "an attribute is computed by native code without annotation",
        "read it outside of the traced part",
    ),
    "native-operator": (
        "an operator is native code without annotation for these types",
        "use built-in containers and scalars, or tensors",
    ),
    "opaque-value": (
        "the value of an object that is no built-in container decides the result",
        "pass built-in values, or compare by identity",
    ),
    "opaque-iterator": (
        "an iterator that was made before the run is consumed",
        "pass the sequence itself",
    ),
    "opaque-key": (
        "a dict key has its own hash or equality",
        "use strings, numbers, tuples of them, or classes as keys",
    ),
    "unknown-object": (
        "an object appeared that neither a read nor the run itself explains",
        "report it with the program, the monitor missed an origin",
    ),
    "unknown-function": (
        "Python code ran that nothing observed has called",
        "avoid finalizers, weak reference callbacks and signal handlers",
    ),
    "unknown-tensor": (
        "an operator reads a tensor without a path from the arguments",
        "make tensors by torch functions or pass them as arguments",
    ),
    "opcode": (
        "a bytecode instruction has no rule",
        "rewrite the construct (async, star import, except*)",
    ),
    "frame-access": (
        "the program looks at its own frames, or traces or profiles itself",
        "do this outside of the traced part",
    ),
    "stack-depth": (
        "the value stack of a function could not be determined",
        "report the function; it ran eagerly",
    ),
    "lost-events": (
        "the interpreter skipped instructions of a monitored frame",
        "switch off other tracing tools",
    ),
    "tracer-replaced": (
        "another trace function was installed during the run",
        "do not call sys.settrace in the traced part",
    ),
    "tracer-active": (
        "a debugger or coverage tool holds the trace function",
        "run without it; magweld never displaces a trace function",
    ),
    "interpreter": (
        "the frames of this interpreter cannot be read",
        "use CPython 3.11 to 3.14 with the global lock on a 64-bit machine",
    ),
    "tool-busy": (
        "no monitoring tool id of the interpreter is free",
        "switch off another profiler or debugger",
    ),
    "torch-mode": (
        "a torch function or dispatch mode is active",
        "leave the mode before the traced call",
    ),
    "tensor-subclass": (
        "a tensor subclass takes part",
        "use plain tensors and parameters",
    ),
    "tensor-value": (
        "the value of a tensor becomes a Python value",
        "keep it a tensor, or test it by a cheap predicate on the inputs",
    ),
    "tensor-write": (
        "the data or the gradient flag of a tensor is replaced",
        "use in-place operators such as copy_",
    ),
    "tensor-attribute": (
        "an attribute of a tensor is no function of its type and shape",
        "read it outside of the traced part",
    ),
    "dynamic-shape": (
        "a shape depends on the values of tensors",
        "use a form with a static shape, e.g. torch.where; torch runs what needs it",
    ),
    "random-state": (
        "the state of a random generator is read or written",
        "seed outside of the traced part; torch's own sampling is captured",
    ),
    "autograd-graph": (
        "the autograd graph is read or run inside of the program",
        "call backward outside of the traced part",
    ),
    "operator-raised": (
        "a tensor operator raised an exception that the program handled",
        "test the condition instead of catching the error",
    ),
    "operator-warned": (
        "an operator warns; compiled code does not, so that torch runs it",
        "see the warning; nothing else is lost",
    ),
    "operator-argument": (
        "an operator has an argument that a graph cannot hold",
        "pass numbers, strings, tensors and containers of them",
    ),
    "class-write": (
        "a special attribute of a class, or one of a built-in class, is written",
        "write to an instance instead",
    ),
    "read-after-write": (
        "state was found changed without an observed write",
        "avoid native code that changes Python objects behind the program",
    ),
    "result-object": (
        "a result or side effect holds an object that cannot be rebuilt",
        "return tensors, built-in containers, or plain Python objects",
    ),
    "guard-failed": (
        "the state changed during the run, its own guards do not hold",
        "a counter or cache that guards itself: read it outside",
    ),
    "unstable-guard": (
        "the same guard failed on every one of the last calls",
        "pass the changing value as a tensor",
    ),
    "many-records": (
        "calls keep missing after many records: recordings are made more seldom",
        "see explain(recompiles=True), and pass as a tensor what changes",
    ),
    "not-lifted": (
        "sizes that keep changing have no symbolic form in this program",
        "see the detail; each size has a record of its own",
    ),
    "loop-written-out": (
        "a loop whose count changes is no operator: it has a record for each count",
        "see the detail and what a loop may do in docs/frontend.md",
    ),
    "many-breaks": (
        "the parts between the breaks hold too few operators to be worth it",
        "trace the parts without breaks, or move the breaks out of the traced part",
    ),
    "monitor-busy": (
        "another thread is being monitored",
        "nothing to do; this call ran eagerly",
    ),
    "monitor-error": (
        "the monitor itself failed",
        "report it with the program; the call ran eagerly",
    ),
    "custom-function": (
        "a custom autograd function runs Python code of its own on every call",
        "let its forward only compute; call it before state is changed",
    ),
    "autocast-region": (
        "the program enters or leaves autocast, which splits the graph",
        "torch runs the graph if gradients are needed: enter autocast outside then",
    ),
    "backend-failed": (
        "the backend raised; the captured graph runs through torch",
        "see the error, or use another backend",
    ),
    "hit-raised": (
        "an operator of a hit raised; the program ran eagerly instead",
        "nothing, if it raises in eager too; else test the condition, catch no error",
    ),
    "saved-tensor-hooks": (
        "hooks on saved tensors may end the graph of a program with effects half way",
        "call it without such hooks; the program runs eagerly",
    ),
    "check-skipped": (
        "a hit was not compared with eager: effects stay, or it reaches too much",
        "keep iterators, tensors without memory and handlers of logs out of its reach",
    ),
    "training-graph": (
        "gradients are needed, and forward and backward cannot be compiled apart",
        "see the detail; the captured graph runs through torch, gradients included",
    ),
    "new-leaf": (
        "the program makes a parameter, or another tensor that collects gradients",
        "make it outside of the traced part; the captured graph runs through torch",
    ),
}

CATALOGUE: dict[str, Refusal] = {id: Refusal(id, *text) for id, text in _TEXTS.items()}
