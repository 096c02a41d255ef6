"""Shell completion, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.grammar import GLOBAL, Verb
from aof.adapters.cli.parsing import UsageError
from aof.adapters.cli.vocabulary import VERBS

_IDS = 'aof list --json 2>/dev/null | grep -o \'"id":"TASK-[0-9-]*"\' | cut -d\'"\' -f4'


def script(shell: str) -> str:
    """The script for a shell."""
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if shell not in makers:
        raise UsageError(f"there is no completion for '{shell}'", "use bash, zsh or fish")
    return makers[shell]()


def _words(verb: Verb) -> str:
    return " ".join(option.name for option in (*verb.options, *GLOBAL))


def _bash() -> str:
    cases = "\n".join(f'    {"|".join((verb.name, *verb.aliases))}) words="{_words(verb)}" ;;' for verb in VERBS)
    verbs = " ".join(verb.name for verb in VERBS)
    return f"""_aof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="" words=""
  local place
  for ((place = 1; place < COMP_CWORD; place++)); do
    [[ "${{COMP_WORDS[place]}}" != -* ]] && {{ verb="${{COMP_WORDS[place]}}"; break; }}
  done
  case "$verb" in
    "") words="{verbs} {" ".join(option.name for option in GLOBAL)}" ;;
{cases}
  esac
  [[ -n "$verb" && "$word" != -* ]] && words="$({_IDS})"
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _aof aof
"""


def _zsh() -> str:
    return "#compdef aof\nautoload -U +X bashcompinit && bashcompinit\n" + _bash()


def _fish() -> str:
    lines = ["complete -c aof -f"]
    for verb in VERBS:
        lines.append(f"complete -c aof -n __fish_use_subcommand -a {verb.name} -d {_quoted(verb.summary)}")
        for option in verb.options:
            takes = " -r" if option.metavar else ""
            seen = f"'__fish_seen_subcommand_from {verb.name}'"
            lines.append(f"complete -c aof -n {seen} -l {option.name[2:]}{takes} -d {_quoted(option.help)}")
    names = " ".join(verb.name for verb in VERBS)
    lines.append(f"complete -c aof -n '__fish_seen_subcommand_from {names}' -a \"({_IDS})\"")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
