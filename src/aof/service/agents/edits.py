"""What AOF writes into a client's files: its server, notes, a skill and a hook, with every other byte left as it is.

Edits in JSON, TOML and YAML, and marked blocks in texts.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ryaml

from aof.errors import InvalidInput
from aof.service.agents.clients import ClientSettings
from aof.support.hashing import hexdigest

_CORRECT = "correct the file, or add the settings by hand"
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+|/', re.DOTALL)
_COMMENT = ("//", "/*")
_BEGIN, _END = "# aof: begin (written by 'aof init', taken away by 'aof init --remove')", "# aof: end"  # in TOML
_TOML_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_INDENT = 2  # of YAML


def server_in(settings: ClientSettings, text: str, name: str) -> Any:
    """What the settings say about a server; None for nothing."""
    if settings.syntax == "toml":
        return toml_server_in(text, settings.servers, name)
    if settings.syntax == "yaml":
        return yaml_server_in(text, settings.servers, name)
    there, entry = member(text, (settings.servers, name)) if text else (False, None)
    return {} if there and entry is None else entry  # with comments in it, it is a person's


def with_server(settings: ClientSettings, text: str | None, name: str, entry: dict[str, Any]) -> str:
    """The settings with a server."""
    if settings.syntax == "toml":
        return with_toml_server(text, settings.servers, name, entry)
    if settings.syntax == "yaml":
        return with_yaml_server(text, settings.servers, name, entry)
    if not text:
        fresh = _fresh(settings, name, entry)
        return fresh if text is None else fresh.rstrip()
    return with_member(text, (settings.servers, name), entry)


def without_server(settings: ClientSettings, text: str, name: str, entry: dict[str, Any]) -> str | None:
    """The settings as they were before; None for no file at all."""
    if settings.syntax == "toml":
        return without_toml_server(text, settings.servers, name)
    if settings.syntax == "yaml":
        return without_yaml_server(text, settings.servers, name) or None
    if text.rstrip() == _fresh(settings, name, entry).rstrip():
        return "" if text == text.rstrip() else None
    return without_member(text, (settings.servers, name))


def _fresh(settings: ClientSettings, name: str, entry: dict[str, Any]) -> str:
    return json.dumps({**settings.top, settings.servers: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


class Member(NamedTuple):
    """One member of a JSON object: where its name begins, and where its value begins and ends."""

    start: int
    value: int
    end: int


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with the value under the path; objects that are missing on the way are made."""
    inside, members, depth = _find_path(text, path)
    if depth < len(path):
        return text[:inside] + _insertion(text, path, depth, value, alone=not members) + text[inside:]
    found = members[path[-1]]
    same = _plain_json(text[found.value : found.end]) == value
    return text if same else text[: found.value] + _json_text(value, path, text) + text[found.end :]


def member(text: str, path: tuple[str, ...]) -> tuple[bool, Any]:
    """Whether there is something under the path, and what; None for what is not plain JSON."""
    _, members, depth = _find_path(text, path)
    if depth < len(path):
        return False, None
    found = members[path[-1]]
    return True, _plain_json(text[found.value : found.end])


def without_member(text: str, path: tuple[str, ...]) -> str:
    """The text without what is under the path: as it was before that came, unless people have changed the place."""
    _, members, depth = _find_path(text, path)
    if depth < len(path):
        return text
    found = members[path[-1]]
    return _without_insertion(text, path, _plain_json(text[found.value : found.end])) or _without_span(
        text, found.start, found.end
    )


def with_item(text: str, path: tuple[str, ...], item: Any) -> str:
    """The text with the item first in the list under the path; what is missing on the way is made."""
    start, there = _list_items(text, path)
    if start < 0:
        return with_member(text, path, [item])
    if any(_plain_json(text[one.start : one.end]) == item for one in there):
        return text
    return text[:start] + _first_item(text, path, item, alone=not there) + text[start:]


def without_items(text: str, path: tuple[str, ...], ours: Callable[[Any], bool]) -> str:
    """The text without the items that are ours, and without the list if we have made it."""
    while True:
        start, there = _list_items(text, path)
        found = next((one for one in there if ours(_plain_json(text[one.start : one.end]))), None)
        if found is None:
            return text
        item = _plain_json(text[found.start : found.end])
        added = _first_item(text, path, item, alone=len(there) == 1)
        whole = _without_insertion(text, path, [item]) if len(there) == 1 else None
        if whole is None and text.startswith(added, start):
            whole = text[:start] + text[start + len(added) :]
        text = whole or _without_span(text, found.start, found.end)


def _without_insertion(text: str, path: tuple[str, ...], value: Any) -> str | None:
    """The text without what we have put under the path: all of the path, or only its end. None if it was not us."""
    for above in range(len(path)):
        inside, there, _ = _find_path(text, (*path[:above], ""))
        ours = _insertion(text, path, above, value, alone=len(there) == 1)
        if text.startswith(ours, inside):
            return text[:inside] + text[inside + len(ours) :]
    return None


def _without_span(text: str, start: int, end: int) -> str:
    """The text without a member or item, and without the comma that it leaves behind."""
    before, after = text[:start].rstrip(), text[end:]
    if after.lstrip().startswith(","):
        return before + after[after.index(",") + 1 :]
    return before[:-1] + after if before.endswith(",") else before + after.lstrip()


def _first_item(text: str, path: tuple[str, ...], item: Any, *, alone: bool) -> str:
    shown = _json_text(item, (*path, ""), text)
    return shown if alone else f"{_newline(text)}{'  ' * (len(path) + 1)}{shown},"


def _list_items(text: str, path: tuple[str, ...]) -> tuple[int, list[Member]]:
    """Where the inside of a list begins, and its items; -1 where there is none."""
    _, members, depth = _find_path(text, path)
    if depth < len(path):
        return -1, []
    begin, end = members[path[-1]].value, members[path[-1]].end
    if text[begin] != "[":
        raise InvalidInput(f"'{'.'.join(path)}' is not a list", _CORRECT)
    found: list[Member] = []
    depth, first, last = 0, -1, begin
    for token in _JSON_TOKEN.finditer(text, begin, end):
        word = token.group()
        if word.startswith(_COMMENT):
            continue
        if depth == 1 and word in (",", "]"):
            found += [Member(first, first, last)] if first >= 0 else []
            first = -1
        elif depth == 1 and first < 0:
            first = token.start()
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        last = token.end()
    return begin + 1, found


def _insertion(text: str, path: tuple[str, ...], depth: int, value: Any, *, alone: bool) -> str:
    """What is put at the beginning of an object. Each case looks different, so that removing can tell which it was."""
    shown = _json_text(value, path, text)
    for name in reversed(path[depth + 1 :]):
        shown = f"{{ {json.dumps(name)}: {shown} }}"
    written = f"{json.dumps(path[depth])}: {shown}"
    return written if alone else f"{_newline(text)}{'  ' * (depth + 1)}{written},"


def _find_path(text: str, path: tuple[str, ...]) -> tuple[int, dict[str, Member], int]:
    """The deepest object of the path: where its inside begins, its members, and how many names were found."""
    _check_json(text)
    inside, members = _json_members(text, _first_token(text))
    for depth, name in enumerate(path):
        if name not in members:
            return inside, members, depth
        if depth == len(path) - 1:
            return inside, members, depth + 1
        inside, members = _json_members(text, members[name].value)
    raise AssertionError


def _check_json(text: str) -> None:
    """Refuse what is not JSON even without its comments and last commas."""
    words, end = [""], 0
    for token in _JSON_TOKEN.finditer(text):
        word = token.group()
        if text[end : token.start()].strip():
            break
        end = token.end()
        if word.startswith((*_COMMENT, "\ufeff")):
            continue
        if word in ("}", "]") and words[-1] == ",":
            words.pop()
        words.append(word)
    try:
        json.loads(" ".join(words))
    except (ValueError, RecursionError):
        whole = False
    else:
        whole = not text[end:].strip()
    if not whole:
        raise InvalidInput("the settings are not JSON", _CORRECT)


def _first_token(text: str) -> int:
    found = next(
        (token for token in _JSON_TOKEN.finditer(text) if not token.group().startswith((*_COMMENT, "\ufeff"))), None
    )
    return found.start() if found is not None else 0


def _json_members(text: str, start: int) -> tuple[int, dict[str, Member]]:
    if text[start : start + 1] != "{":
        raise InvalidInput("the settings are not a JSON object", _CORRECT)
    members: dict[str, Member] = {}
    depth, last, name, name_at, value_at = 0, start, "", -1, -1
    for token in _JSON_TOKEN.finditer(text, start):
        word, place = token.group(), token.start()
        if word.startswith(_COMMENT):
            continue
        if depth == 1 and word in (",", "}"):
            if value_at >= 0:
                members[name] = Member(name_at, value_at, last)
            name_at = value_at = -1
        elif depth == 1 and name_at < 0:
            name, name_at = json.loads(word), place
        elif depth == 1 and word != ":" and value_at < 0:
            value_at = place
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        last = token.end()
        if depth == 0:
            return start + 1, members
    raise InvalidInput("the settings are cut off", _CORRECT)


def _plain_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _json_text(value: Any, path: tuple[str, ...], text: str) -> str:
    newline = _newline(text)
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", newline + "  " * len(path))


def toml_server_in(text: str, servers: str, name: str) -> Any:
    """The settings of a server; None for those that there are not."""
    return _toml_servers(text, servers).get(name)


def with_toml_server(text: str | None, servers: str, name: str, entry: dict[str, Any]) -> str:
    """The text with a server in a block of its own; one that a person has written outside of it stays."""
    own = without_block(text, _BEGIN, _END) if text else text
    if text and name in _toml_servers(own or "", servers):
        return text
    lines = [f"[{servers}.{name}]", *(f"{key} = {_toml_value(value)}" for key, value in entry.items())]
    added = with_block(text, _BEGIN, "\n".join(lines), _END)
    _toml_servers(added, servers)
    return added


def without_toml_server(text: str, servers: str, name: str) -> str | None:
    """The text as it was before; None for no file at all."""
    own = without_block(text, _BEGIN, _END)
    if own is None or name not in _toml_servers(own, servers):
        return own
    kept, wanted = own, _parse_toml(own)
    del wanted[servers][name]
    header = re.compile(
        rf"^[ \t]*\[{re.escape(servers)}\.{re.escape(name)}(?:\.[^\]]+)?\][ \t]*(?:#.*)?\r?$", re.MULTILINE
    )
    while found := header.search(kept):
        after = _TOML_TABLE.search(kept, found.end())
        kept = kept[: found.start()] + (kept[after.start() :] if after else "")
    left = _parse_toml(kept)
    left.setdefault(servers, {})
    if left != wanted:
        hint = f"remove [{servers}.{name}] by hand"
        raise InvalidInput(f"the settings of {name} are not in a table of their own", hint)
    return kept


def _toml_servers(text: str, servers: str) -> dict[str, Any]:
    found = _parse_toml(text).get(servers, {})
    return found if isinstance(found, dict) else {}


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the settings are not TOML, or would be none any more: {error}", _CORRECT) from None


def _toml_value(value: Any) -> str:
    """A value as TOML; its strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {json.dumps(text)}" for key, text in value.items()) + " }"
    return json.dumps(value)


def yaml_server_in(text: str, servers: str, name: str) -> Any:
    """The settings of a server; None for those that there are not."""
    found = _parse_yaml(text).get(servers)
    return found.get(name) if isinstance(found, dict) else None


def with_yaml_server(text: str | None, servers: str, name: str, entry: dict[str, Any]) -> str:
    """The text with a server; one of that name is replaced."""
    if not text:
        return f"{servers}:\n{_yaml_line(name, entry, _INDENT)}"
    wanted = _parse_yaml(text)
    there = wanted.get(servers) or {}
    if yaml_server_in(text, servers, name) == entry:
        return text
    bare = without_yaml_server(text, servers, name)
    lines = bare.splitlines(keepends=True)
    at = _servers_line(lines, servers)
    if at is None:
        ended = bare if bare.endswith("\n") or not bare else f"{bare}\n"
        added = f"{ended}{servers}:\n{_yaml_line(name, entry, _INDENT)}"
    else:
        lines[at] = re.sub(r":\s*(\{\}|null|~)?\s*$", ":\n", lines[at], count=1)
        filled = (line for line in lines[at + 1 :] if line.strip() and not line.lstrip().startswith("#"))
        indent = next((_depth(line) for line in filled), _INDENT) or _INDENT
        lines.insert(at + 1, _yaml_line(name, entry, indent))
        added = "".join(lines)
    wanted[servers] = {**there, name: entry} if isinstance(there, dict) else None
    return _verified(added, wanted)


def without_yaml_server(text: str, servers: str, name: str) -> str:
    """The text without a server; without the list of servers, too, where that was the last of both."""
    wanted = _parse_yaml(text)
    there = wanted.get(servers)
    if not isinstance(there, dict) or name not in there:
        return text
    lines = text.splitlines(keepends=True)
    at = _servers_line(lines, servers)
    own = re.compile(rf"^ +['\"]?{re.escape(name)}['\"]?\s*:")
    begin = next((n for n, line in enumerate(lines) if at is not None and n > at and own.match(line)), None)
    if at is None or begin is None:
        raise _not_in_lines(servers)
    end = begin + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end]) > _depth(lines[begin])):
        end += 1
    last = end == len(lines) and begin == at + 1
    del lines[begin:end]
    del there[name]
    if last:
        del lines[at:], wanted[servers]
    elif not there:
        lines[at] = lines[at].rstrip() + " {}\n"
    return _verified("".join(lines), wanted)


def _servers_line(lines: list[str], servers: str) -> int | None:
    """Which line begins the servers; None where there are none yet."""
    for number, line in enumerate(lines):
        if re.match(rf"{re.escape(servers)}\s*:", line):
            if not re.fullmatch(rf"{re.escape(servers)}\s*:\s*(\{{\}}|null|~)?\s*(#.*)?", line.rstrip("\r\n")):
                raise _not_in_lines(servers)
            return number
    return None


def _verified(text: str, wanted: dict[str, Any]) -> str:
    if _parse_yaml(text) != wanted:
        raise _not_in_lines("the servers")
    return text


def _not_in_lines(servers: str) -> InvalidInput:
    return InvalidInput(f"'{servers}' is not written in lines of its own", "change the settings by hand")


def _yaml_line(name: str, entry: dict[str, Any], indent: int) -> str:
    return f"{' ' * indent}{name}: {json.dumps(entry, ensure_ascii=False)}\n"


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _parse_yaml(text: str) -> dict[str, Any]:
    try:
        found = ryaml.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise InvalidInput(f"the settings are not YAML: {error}", _CORRECT) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidInput("the settings are not a mapping", _CORRECT)
    return found


def with_block(text: str | None, begin: str, content: str, end: str) -> str:
    """The text with the block, or a new file with nothing else; a block that is there is renewed where it stands."""
    newline = "\r\n" if text and "\r\n" in text else "\n"
    block = newline.join([begin, *content.splitlines(), end])
    if text is None:
        return block + newline
    found = _find_block(text, begin, end)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    # A text without a last line end keeps having none: that is how it is recognised when the block goes.
    if text.endswith("\n"):
        return text + newline + block + newline
    return text + newline * 2 + block if text else block


def without_block(text: str, begin: str, end: str) -> str | None:
    """The text as it was before the block; None for no file at all."""
    found = _find_block(text, begin, end)
    if found is None:
        return text
    before, after = text[: found.start()], text[found.end() :]
    if not after:
        return re.sub(r"(\r?\n){2}\Z", "", before)
    after = re.sub(r"\A\r?\n", "", after)
    return re.sub(r"(?<=\n)\r?\n\Z", "", before) + after if before or after else None


def block_in(text: str, begin: str, end: str) -> str | None:
    """The block itself, with its marks."""
    found = _find_block(text, begin, end)
    return found.group() if found else None


def _find_block(text: str, begin: str, end: str) -> re.Match[str] | None:
    """From a mark to the end of its block, with no other beginning between them."""
    mark = rf"^{re.escape(begin)}(?=\r?$)"
    return re.search(rf"{mark}(?:(?!{mark}).)*?^{re.escape(end)}(?=\r?$)", text, re.DOTALL | re.MULTILINE)


BEGIN = "<!-- aof: begin (written by 'aof init', taken away by 'aof init --remove') -->"
END = "<!-- aof: end -->"
_MARK = re.compile(r"\n<!-- aof: ([0-9a-f]{12}), written by 'aof init', taken away by 'aof init --remove' -->\s*\Z")
_PATH = ("hooks", "SessionStart")
_PRIME = re.compile(r"\baof\b.*\bprime\b")
_EARLIER = re.compile(r"\S*(aof|python\S* -m aof)( --data-dir \S+)? prime --agent [a-z]+")
_SECONDS = 15  # that the client waits; AOF gives up sooner
_FOR = re.compile(r"^<!-- for ([a-z, ]+) -->\r?$", re.MULTILINE)
_TEXT = """\
## Tasks

Work in this project is tracked by AOF. Begin a session with `aof prime`, take a task before you work on it, and report
how it ended. If you have `aof_*` tools, use them; else the `aof` command, as the skill `aof` and `aof --help` say.
Do not edit files below `.aof`.
"""


def readers_of_notes(text: str | None) -> tuple[str, ...] | None:
    """The kinds that the notes are for, none where the notes do not say; None where there are no notes."""
    block = block_in(text, BEGIN, END) if text else None
    if block is None:
        return None
    found = _FOR.search(block)
    return tuple(name.strip() for name in found[1].split(",")) if found else ()


def with_notes(text: str | None, kinds: tuple[str, ...]) -> str:
    """The text with notes for these kinds."""
    return with_block(text, BEGIN, f"<!-- for {', '.join(kinds)} -->\n{_TEXT}", END)


def without_notes(text: str) -> str | None:
    """The text as it was before; None for no file at all."""
    return without_block(text, BEGIN, END)


def are_untouched_notes(text: str) -> bool:
    """Whether nobody has written into the notes."""
    block = block_in(text, BEGIN, END)
    return block is not None and "".join(_TEXT.split()) in "".join(block.split())


def skill() -> str:
    """The file of the skill, with a mark that tells whether somebody has edited it."""
    text = Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")
    return f"{text}\n<!-- aof: {_digest(text)}, written by 'aof init', taken away by 'aof init --remove' -->\n"


def is_untouched_skill(text: str) -> bool:
    """Whether a file is as some version of AOF has written it; git may have changed its line ends."""
    plain = text.replace("\r\n", "\n")
    mark = _MARK.search(plain)
    return mark is not None and mark[1] == _digest(plain[: mark.start()])


def _digest(text: str) -> str:
    return hexdigest(text.encode())[:12]


def hook_command(words: tuple[str, ...]) -> str:
    """The command of a shell that runs these words and succeeds, also where the first of them is not installed."""
    return f"if command -v {words[0]} >/dev/null 2>&1; then {shlex.join(words)} 2>/dev/null; fi; exit 0"


def with_hook(text: str | None, command: str) -> str:
    """The settings with the command; one that is there already stays, also where a person has changed it."""
    hook = {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    if text and without_items(text, _PATH, lambda item: _EARLIER.fullmatch(_command(item)) is not None) != text:
        text = without_hook(text)  # what an earlier version wrote may fail a session
    if not text:
        fresh = _fresh_hook(hook)
        return fresh if text is None else fresh.rstrip()
    return text if without_hook(text) != text else with_item(text, _PATH, hook)


def without_hook(text: str) -> str | None:
    """The settings as they were before; None for no file at all."""
    try:
        only = json.loads(text)["hooks"]["SessionStart"][0]
    except (ValueError, LookupError, TypeError):
        only = None
    if only is not None and _is_ours(only) and text.rstrip() == _fresh_hook(only).rstrip():
        return "" if text == text.rstrip() else None
    return without_items(text, _PATH, _is_ours)


def _is_ours(item: Any) -> bool:
    """Whether an item runs `aof prime` and nothing else."""
    return _PRIME.search(_command(item)) is not None


def _command(item: Any) -> str:
    """The only command of an item; empty where there is none, or more than one."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in hooks if isinstance(one, dict)] if isinstance(hooks, list) else []
    return commands[0] if len(commands) == 1 and isinstance(commands[0], str) else ""


def _fresh_hook(hook: dict[str, Any]) -> str:
    return json.dumps({_PATH[0]: {_PATH[1]: [hook]}}, indent=2, ensure_ascii=False) + "\n"
