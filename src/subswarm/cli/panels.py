"""The help of a command with many options, grouped in panels."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["SelectCommand"]

_PANELS = {
    "Table": "target drop id_columns impute one_hot max_categories dates missing skip_unlabelled positive groups time "
    "weights no_header encoding",
    "Model and score": "model task scoring cv repeats race fold_race",
    "Search": "algorithm setting evaluations max_fits max_rows seconds patience early_stopping seed preselect "
    "checkpoint jobs engine",
    "Which columns": "choose min_features max_features keep max_cost costs",
    "Checks": "held_out permutations seeds against",
    "Output": "report out write save quiet",
}


class SelectCommand(TyperCommand):
    """``subswarm select``: each option has a panel."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        panels = {name: panel for panel, names in _PANELS.items() for name in names.split()}
        order = list(panels)
        for param in self.params:
            if param.name in panels:
                setattr(param, "rich_help_panel", panels[param.name])  # noqa: B010  (typer's attribute)
        self.params.sort(key=lambda param: order.index(param.name) if param.name in panels else -1)
