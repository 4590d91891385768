"""Signatures on the command line, and as the page about them shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from signing import Keys, Signed

from magweld.deploy.signatures import PublicKey
from magweld.tools.magweld_cli import main

PAGE = Path(__file__).parents[2] / "docs" / "recipes" / "without_python.md"


def test_the_commands(
    signed: Signed,
    others: Keys,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    keys, signature = signed.keys, signed.signature.read_bytes()
    signed.signature.unlink()
    words = ["verify", "model.mwp", "--key", str(keys.public)]

    def said(words: list[str], status: int) -> str:
        assert main(words) == status
        captured = capsys.readouterr()
        assert not (captured.out if status else captured.err)
        return captured.err if status else captured.out

    assert said(words, 1).startswith("error: 'model.mwp' has no signature")
    fingerprint = PublicKey(keys.public).fingerprint
    text = said(["sign", "model.mwp", "--key", str(keys.private)], 0)
    assert text == f"model.mwp.sig: signature by the key {fingerprint}\n"
    assert signed.signature.read_bytes() == signature
    assert said(words, 0) == f"model.mwp: signed by the key {fingerprint}\n"
    wrong = [*words[:-1], str(others.public)]
    assert "artifact-signature" in said(wrong, 1)
    run = ["run", "model.mwp", "-o", "out.npz", "--key"]
    assert "artifact-signature" in said([*run, str(others.public)], 1)
    assert not Path("out.npz").exists()
    assert "arr_0: " in said([*run, str(keys.public)], 0)
    assert "signature-key" in said(["sign", "model.mwp", "--key", "model.mwp"], 1)
    assert "No such file" in said(["sign", "none.mwp", "--key", str(keys.private)], 1)


def test_compile_signs(
    ours: Keys,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("twice.py").write_text("def make():\n    return lambda x: x * 2\n")
    words = ["compile", "twice.py:make", "--inputs", "3xf32", "-o", "twice.mw"]
    # Before anything is compiled.
    assert main([*words, "--sign", str(ours.public)]) == 1
    assert "signature-key" in capsys.readouterr().err
    assert not Path("twice.mw").exists()
    assert main([*words, "--sign", str(ours.private)]) == 0
    fingerprint = PublicKey(ours.public).fingerprint
    told = f"twice.mw.sig: signature by the key {fingerprint}\n"
    assert capsys.readouterr().out.endswith(told)
    assert PublicKey(ours.public).read(Path("twice.mw"))
    sys.modules.pop("twice", None)


def test_signing_and_checking_load_no_torch(signed: Signed) -> None:
    code = (
        "import sys\nfrom magweld.tools.magweld_cli import main\n"
        "name, private, public = sys.argv[1:]\n"
        "assert main(['sign', name, '--key', private]) == 0\n"
        "assert main(['verify', name, '--key', public]) == 0\n"
        "assert not {'torch', 'torch_mlir', 'numpy'} & set(sys.modules)"
    )
    names = (signed.path, signed.keys.private, signed.keys.public)
    command = [sys.executable, "-c", code, *map(str, names)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_commands_of_the_page_run_as_shown(path: Path, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    _, _, section = PAGE.read_text().partition("\n## Signatures\n")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (tmp_path / "model.mwp").write_bytes(path.read_bytes())
    # The command of this environment.
    ours = f'magweld() {{ "{sys.executable}" -m magweld.tools.magweld_cli "$@"; }}\n'
    run = subprocess.run(
        ["sh", "-euc", ours + block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "signed by the key" in run.stdout
