"""Describe every command and option of the command line in Markdown, from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import typer.main

from subswarm.cli import app

__all__ = ["describe_commands"]


def describe_commands() -> str:
    """Return a section for each command, with tables of its arguments and options."""
    return "\n".join(_describe(typer.main.get_command(app), ("subswarm",)))


def _describe(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    children = getattr(command, "commands", {})
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    if len(path) > 1:
        yield f"{'#' * len(path)} {' '.join(path)}\n"
        if not children:
            yield "```\n" + " ".join([*path, *map(_place, arguments), "[OPTIONS]"]) + "\n```\n"
        yield f"{_text(command.help)}\n"
        if arguments:
            yield "| argument | meaning |\n|---|---|"
            for param in arguments:
                yield f"| `{_place(param)}` | {_text(param.help)} |"
            yield ""
        panels: dict[str, list[Any]] = {}
        for param in options:
            panels.setdefault(getattr(param, "rich_help_panel", None) or "option", []).append(param)
        for panel, params in panels.items() if not children else ():
            yield f"| {panel} | meaning | default |\n|---|---|---|"
            for param in params:
                yield f"| {_names(param)} | {_text(param.help)} | {_default(param)} |"
            yield ""
    for name, child in children.items():
        yield from _describe(child, (*path, name))


def _place(param: Any) -> str:
    """Return the placeholder of an argument, in brackets if it is optional."""
    name = param.metavar or (param.name or "").upper()
    name += "..." if param.nargs == -1 else ""
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    """Return the names of an option with the kind of its value; releases of typer keep the kind in different places."""
    names = ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    described = getattr(param, "type_descriptor", None)
    kind = (
        param.type.name
        if described is None
        else (get_args(described.annotation) or (described.annotation,))[0].__name__
    )
    words = {"str": "text", "int": "number", "integer": "number", "float": "number", "Path": "file", "path": "file"}
    return names if param.is_flag else f"{names} {words.get(kind, kind).upper()}"


def _default(param: Any) -> str:
    """Return the default of an option; a flag has none."""
    if param.default in (None, "", (), []) or not param.show_default:
        return ""
    if param.is_flag:
        return f"`{param.opts[0]}`" if param.default else ""
    return f"`{param.default}`"


def _text(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").replace("<", "&lt;").split())
