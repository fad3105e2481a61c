"""Write the report of a sweep: one page that needs no network and no other file."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from optim_hydra.sweep.page_curves import packed_curves
from optim_hydra.sweep.page_data import is_set, page_data, shown
from optim_hydra.sweep.page_libraries import block, libraries
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import Setting, over_seeds, ranked_jobs, setting_keys

__all__ = ["write_page"]

_STATUSES = ("completed", "running", "failed", "missing")


def write_page(results: SweepResults, path: Path) -> None:
    """Write `report.html`: leaderboard, seeds, curves, failures.

    The file is written aside and renamed, so that a reader never sees half of it.
    """
    settings = over_seeds(results)
    names = [str(name) for name in results.jobs["job"].tolist()]
    ranked = [names[row] for row, _ in ranked_jobs(results)]
    curves = packed_curves(results.curves, ranked)
    content = json.dumps(page_data(results, settings, curves), allow_nan=False)
    data = (
        block("data", content)
        + block("steps", curves.steps.astype("<f8").tobytes())
        + block("values", curves.values.astype("<f4").tobytes())
    )
    title, hint = _settings_texts(results)
    page = Template(_file("page.html")).substitute(
        title=escape(results.title),
        style=_file("page.css"),
        script=_file("page_charts.js") + _file("page.js"),
        counts=_counts(results),
        best=_best(results, settings),
        settings_title=title,
        settings_hint=hint,
        # No text in the results can know it, so none can become a script.
        nonce=hashlib.sha256(data.encode()).hexdigest(),
        data=libraries() + data,
    )
    aside = path.with_name(f"{path.name}.part")
    aside.write_text(page, encoding="utf-8")
    aside.replace(path)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _counts(results: SweepResults) -> str:
    """Return the number of jobs of each status; the script makes them filters."""
    found = Counter(results.jobs["status"].tolist())
    num = len(results.jobs)
    parts = [f"<b>{num:,}</b> job{'' if num == 1 else 's'}"]
    parts += [
        f'<button type="button" class="status {status}" data-status="{status}">'
        f"{found[status]:,} {status}</button>"
        for status in _STATUSES
        if found[status]
    ]
    return " ".join(parts)


def _settings_texts(results: SweepResults) -> tuple[str, str]:
    order = "lowest" if results.direction == "minimize" else "highest"
    if setting_keys(results.swept) == results.swept:
        return "Settings", (
            f"No seed was swept, so a setting has one result and no spread; {order} "
            "result first. Differences as small as those between seeds mean nothing."
        )
    return "Over seeds", (
        f"Mean and standard deviation over the seeds of each setting, {order} mean "
        "first; settings with a failed job come last."
    )


def _best(results: SweepResults, settings: list[Setting]) -> str:
    """Return the best setting, by its mean; of seeds never the best one alone."""
    word = "lower" if results.direction == "minimize" else "higher"
    if not settings or math.isnan(settings[0].mean):
        return f'<p class="best none">No job has a result yet ({word} is better).</p>'
    best = settings[0]
    job = results.jobs.iloc[best.rows[0]]
    many = best.num_results > 1
    spread = f" <span>&plusmn; {shown(best.std)}</span>" if many else ""
    keys = setting_keys(results.swept)
    kind = "jobs" if keys == results.swept else "seeds"
    origin = f"mean of {best.num_results} {kind}" if many else "one job"
    failed = f", {best.num_failed} failed" if best.num_failed else ""
    pairs = list(zip(keys, best.values, strict=True))
    pairs += [(node, job[node]) for node in results.nodes]
    items = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(shown(value))}</dd>"
        for key, value in pairs
        if is_set(value)
    )
    return (
        f'<div class="best"><p class="label">Best result, {word} is better</p>'
        f'<p class="value">{shown(best.mean)}{spread}</p>'
        f'<p class="label">{origin}{failed}</p><dl>{items}</dl></div>'
    )
