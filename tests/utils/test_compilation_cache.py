"""Compiled programs are kept in the user's cache folder, unless the user chose another."""

import os
import subprocess
import sys

import pytest

FIRST = "import graphuq as gq; from graphuq.utils.compilation_cache import use_compilation_cache;"
BEFORE_JAX = "from graphuq.utils.compilation_cache import use_compilation_cache;"
SHOW = "; import jax; print(jax.config.jax_compilation_cache_dir)"
COMPILE = "import jax; jax.jit(lambda x: x + 1)(1.0);"


def run(code, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


@pytest.mark.parametrize("before", [BEFORE_JAX, FIRST + COMPILE], ids=["before JAX", "after"])
def test_the_librarys_folder(before, tmp_path):
    code = before + "use_compilation_cache()" + SHOW
    assert run(code, XDG_CACHE_HOME=str(tmp_path)) == str(tmp_path / "graphuq" / "compiled")


def test_programs_are_kept(tmp_path):
    """Also if something was compiled before the library's first computation."""
    code = (
        FIRST + COMPILE + "use_compilation_cache(); import jax.numpy as jnp;"
        "import jax; jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0);"
        "jax.jit(lambda x: jnp.linalg.cholesky(x @ x.T).sum())(jnp.eye(3))"
    )
    run(code, XDG_CACHE_HOME=str(tmp_path))
    assert any((tmp_path / "graphuq" / "compiled").iterdir())


def test_the_users_choice_stays(tmp_path):
    own = str(tmp_path / "own")
    code = "use_compilation_cache()" + SHOW
    assert run(FIRST + code, JAX_COMPILATION_CACHE_DIR=own, XDG_CACHE_HOME=str(tmp_path)) == own
    chosen = f"import jax; jax.config.update('jax_compilation_cache_dir', {own!r});"
    assert run(FIRST + chosen + code, XDG_CACHE_HOME=str(tmp_path)) == own


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    code = BEFORE_JAX + "print(use_compilation_cache())"
    assert run(code, XDG_CACHE_HOME=str(tmp_path / "file")) == "False"


def test_the_cache_can_be_turned_off(tmp_path):
    code = BEFORE_JAX + "print(use_compilation_cache())"
    off = {"GRAPHUQ_COMPILATION_CACHE": "off", "XDG_CACHE_HOME": str(tmp_path)}
    assert run(code, **off) == "False"
    assert not list(tmp_path.iterdir())
