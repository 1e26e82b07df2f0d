"""board.py FILE: reads a board with Grafana's foundation SDK, strictly.

The SDK drops keys that it does not know. So every key and value of the file must come
back when what was read is written again, every target must be a query of Prometheus, and
every panel must have the options of its type.
"""

import copy
import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard, heatmap, prometheus, stat, timeseries

OPTIONS = {"timeseries": timeseries.Options, "stat": stat.Options, "heatmap": heatmap.Options}


def lost(ours, theirs, path=""):
    """Yields the paths of values that the SDK has dropped or changed."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key not in theirs:
                if value is not None:
                    yield f"{path}.{key}: dropped"
            else:
                yield from lost(value, theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, value in enumerate(ours):
            yield from lost(value, theirs[i], f"{path}[{i}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} became {theirs!r}"


def faults(board):
    """Returns what the SDK does not understand of a board."""
    try:
        read = dashboard.Dashboard.from_json(copy.deepcopy(board))
    except (KeyError, TypeError, ValueError) as e:
        return [f"not read: {e!r}"]
    found = list(lost(board, json.loads(json.dumps(read, cls=JSONEncoder))))
    for panel in read.panels:
        if isinstance(panel, dashboard.RowPanel):
            continue
        if not isinstance(panel.options, OPTIONS.get(panel.type_val, type(None))):
            found.append(f"{panel.title}: options of a {panel.type_val} are a {type(panel.options).__name__}")
        for target in panel.targets or []:
            if not isinstance(target, prometheus.Dataquery):
                found.append(f"{panel.title}: a target is a {type(target).__name__}")
        if not panel.targets or not panel.description or not panel.field_config.defaults.unit:
            found.append(f"{panel.title}: without query, description or unit")
    ids = [p.id_val for p in read.panels]
    if len(set(ids)) != len(ids):
        found.append("two panels have one id")
    return found


def main():
    register_default_plugins()
    with open(sys.argv[1], encoding="utf-8") as f:
        board = json.load(f)
    panel = next(i for i, p in enumerate(board["panels"]) if p["type"] != "row")
    for path in (["unknown"], ["panels", panel, "unknown"], ["panels", panel, "targets", 0, "unknown"],
                 ["panels", panel, "options", "unknown"], ["panels", panel, "fieldConfig", "defaults", "unknown"],
                 ["templating", "list", 1, "unknown"]):
        broken = copy.deepcopy(board)
        place = broken
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = "planted"
        if not faults(broken):
            sys.exit(f"a planted fault is not noticed: {path}")
    found = faults(board)
    for fault in found:
        print(fault)
    print(f"{sys.argv[1]}: {len(board['panels'])} panels and rows, {len(found)} faults")
    sys.exit(1 if found else 0)


main()
