"""Owns branches on tensors in a run with lifted values."""

from __future__ import annotations

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.branches import Branches
from magweld.frontend.control.flow import Flow
from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.pieces import Piece
from magweld.frontend.control.scopes import TrialBranch
from magweld.frontend.lifting.recorder import LiftingRecorder
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.predicates import Predicate
from magweld.frontend.session.session import Session
from magweld.frontend.state.nodes import Node


class LiftedBranches(Branches):
    """Makes operators of branches beside lifted loops."""

    def __init__(
        self, session: Session, recorder: LiftingRecorder, preferred: bool
    ) -> None:
        super().__init__(session, recorder, preferred)
        assert recorder.lifting is not None, "the recorder is attached"
        self._lifting = recorder.lifting

    def run(
        self,
        trial: TrialBranch,
        flow: Flow,
        start: int,
        state: FrameState,
        observer: Observer,
    ) -> Piece:
        """See `Trials.run`; what was known of places before stays known."""
        before = self._lifting.save()
        try:
            return super().run(trial, flow, start, state, observer)
        finally:
            self._lifting.restore(before, trial.state is not None)

    def check_write(self, node: Node) -> None:
        """See `Branches.check_write`; the loops hear of changes that happen."""
        try:
            super().check_write(node)
        except StopRecordingError:
            self._lifting.loops.forget_change()
            raise
        self._lifting.loops.note_change(node)

    def _open(
        self,
        observer: Observer,
        row: Row,
        tensor: torch.Tensor,
        outcome: bool,
        predicate: Predicate | None,
    ) -> None:
        self._lifting.loops.note_branch()
        super()._open(observer, row, tensor, outcome, predicate)
