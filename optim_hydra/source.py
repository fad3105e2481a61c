"""Pass each YAML file through the table of renamed keys before Hydra merges it."""

from __future__ import annotations

import copy
import functools
import os
from pathlib import Path

# Hydra's registry of sources has no public name; this is the one private import.
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, ListConfig, OmegaConf

from optim_hydra.migration import migrate_in_place
from optim_hydra.mounts import mounts, place_of
from optim_hydra.override_text import migrate_texts
from optim_hydra.rename_notices import forget_written
from optim_hydra.store import register_schema
from optim_hydra.tree import raw_items

__all__ = ["CONF", "MigratingSearchPath", "MigratingSource"]

SCHEME = "optim_hydra"
CONF = "pkg://optim_hydra.conf"
_FILE_SCHEMES = ("file://", "pkg://")


class MigratingSource(ConfigSource):
    """Read configs through Hydra's own source for the path inside ours."""

    def __init__(self, provider: str, path: str) -> None:
        """Take `optim_hydra://` + a path of any other scheme."""
        super().__init__(provider, path)
        self._inner = _hydra_source(provider, self.path)

    @staticmethod
    def scheme() -> str:
        """Return the scheme of paths that this source reads."""
        return SCHEME

    def load_config(self, config_path: str) -> ConfigResult:
        """Load one file and rename old keys in its optimizer nodes.

        Raises:
            MigrationError: A key can't be carried over.

        """
        state = _state_of(self._inner, config_path)
        if state is None:
            result = self._inner.load_config(config_path)
        else:
            # Hydra reads each file twice for each job of a sweep.
            known = _read(self.provider, self.path, config_path, state)
            result = copy.deepcopy(known)
        if isinstance(result.config, DictConfig):
            where = (
                f"{self._inner.full_path()}/{config_path.removesuffix('.yaml')}.yaml"
            )
            where = where.removeprefix("file://")
            at = place_of(config_path, result.header.get("package") or "")
            mounted = mounts(_defaults(result.config), at)
            forget_written(where)
            migrate_in_place(result.config, at, where, mounted)
            _migrate_sweep(result.config, config_path, where)
        return result

    def is_group(self, config_path: str) -> bool:
        """Whether a path is a group; see Hydra."""
        return self._inner.is_group(config_path)

    def is_config(self, config_path: str) -> bool:
        """Whether a path is a config; see Hydra."""
        return self._inner.is_config(config_path)

    def available(self) -> bool:
        """Whether the place exists; see Hydra."""
        return self._inner.available()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """List what a group holds; see Hydra."""
        return self._inner.list(config_path, results_filter)


class MigratingSearchPath(SearchPathPlugin):
    """Put our source in front of each path, and the shipped groups at the end."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Rewrite the paths in place, and have the schema ready when they are read."""
        register_schema()
        search_path.append(provider="optim_hydra", path=CONF)
        for element in search_path.get_path():
            path = element.path
            if element.provider == "hydra":
                continue  # Hydra's own files hold no optimizer nodes
            if path and path.startswith(_FILE_SCHEMES):
                element.path = f"{SCHEME}://{path}"
            elif path and "://" not in path:
                element.path = f"{SCHEME}://file://{path}"


def _hydra_source(provider: str, path: str) -> ConfigSource:
    scheme = path.partition("://")[0]
    return SourcesRegistry.instance().resolve(scheme)(provider, path)


@functools.lru_cache(maxsize=256)
def _read(
    provider: str,
    path: str,
    config_path: str,
    state: tuple[int, ...],  # noqa: ARG001 - another state is another result
) -> ConfigResult:
    """Read a file through Hydra's own source, once for each of its states."""
    return _hydra_source(provider, path).load_config(config_path)


def _state_of(source: ConfigSource, config_path: str) -> tuple[int, ...] | None:
    """Return what changes with a file; None where there is no such file on a disk."""
    from importlib import resources  # noqa: PLC0415 - 3 ms, and Hydra does it later

    name = f"{config_path.removesuffix('.yaml')}.yaml"
    try:
        is_package = source.scheme() == "pkg"
        place = resources.files(source.path) if is_package else Path(source.path)
        status = os.stat(str(place.joinpath(name)))  # noqa: PTH116 - not each is a Path
    except (OSError, ImportError, TypeError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _defaults(config: DictConfig) -> list[str]:
    """Return the keys of the entries of a file's defaults list."""
    defaults = config.get("defaults")
    return [
        str(key)
        for entry in (defaults if isinstance(defaults, ListConfig) else [])
        if isinstance(entry, DictConfig)
        for key in entry
    ]


def _migrate_sweep(config: DictConfig, config_path: str, where: str) -> None:
    """Rename old keys among the overrides that a sweeper's `params` sweep."""
    is_sweeper = config_path.startswith("hydra/sweeper/")
    params = OmegaConf.select(
        config, "params" if is_sweeper else "hydra.sweeper.params"
    )
    if not isinstance(params, DictConfig):
        return
    texts = [f"{key}={value}" for key, value in raw_items(params).items()]
    migrated = migrate_texts(texts, where)
    if migrated != texts:
        for key in list(params):
            del params[key]
        for text in migrated:
            key, _, value = text.partition("=")
            params[key] = value
