"""The library's own cache of compiled programs, in the user's cache folder."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

SWITCH = "GRAPHUQ_COMPILATION_CACHE"  # environment variable that turns the cache off
MIN_COMPILE_SECONDS = 0.1  # programs that compile faster are not kept


def cache_folder() -> Path:
    """Return the folder for compiled programs: ``$XDG_CACHE_HOME/graphuq/compiled``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "graphuq" / "compiled"


@cache
def use_compilation_cache() -> bool:
    """Let JAX keep what it compiles, so that later processes start faster.

    Called when a computation starts, never on import. Nothing changes in three cases: the user has
    chosen a folder (``JAX_COMPILATION_CACHE_DIR`` or `jax.config`); the environment variable
    ``GRAPHUQ_COMPILATION_CACHE`` is "off"; the cache folder cannot be written. Before JAX is
    imported, environment variables are set, so that commands that do not need JAX do not import it.

    Returns
    -------
    bool
        Whether the library's folder is used.
    """
    if os.environ.get(SWITCH, "").strip().lower() == "off":
        return False
    folder = cache_folder()
    if os.environ.get("JAX_COMPILATION_CACHE_DIR", str(folder)) != str(folder):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    if not os.access(folder, os.W_OK):
        return False
    if "jax" not in sys.modules:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ.setdefault(
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(MIN_COMPILE_SECONDS)
        )
        return True
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    config: Any = jax.config  # its settings are not typed
    if config.jax_compilation_cache_dir is not None:
        return bool(config.jax_compilation_cache_dir == str(folder))
    config.update("jax_compilation_cache_dir", str(folder))
    config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECONDS)
    compilation_cache.reset_cache()  # JAX decides at its first compilation whether there is one
    return True
