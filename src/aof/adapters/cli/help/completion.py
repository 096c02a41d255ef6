"""Shell completion, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import GLOBAL, Verb
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.spec.verbs import VERBS

_IDS = 'aof list --json 2>/dev/null | grep -o \'"id":"TASK-[0-9-]*"\' | cut -d\'"\' -f4'


def script(shell: str) -> str:
    """The script for a shell."""
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if shell not in makers:
        raise UsageError(f"there is no completion for '{shell}'", "use bash, zsh or fish")
    return makers[shell]()


def _words(verb: Verb) -> str:
    return " ".join(option.name for option in (*verb.options, *GLOBAL))


def _choices(verb: Verb) -> str:
    """What may stand right after the verb, where that is one of a few words; nothing where it is an ID."""
    first = verb.arguments[0].name if verb.arguments else ""
    return first.replace("|", " ") if "|" in first else ""


def _case(verb: Verb) -> str:
    choices = f' first="{_choices(verb)}"' if _choices(verb) else ""
    return f'    {"|".join((verb.name, *verb.aliases))}) words="{_words(verb)}"{choices} ;;'


def _bash() -> str:
    cases = "\n".join(map(_case, VERBS))
    verbs = " ".join(name for verb in VERBS for name in (verb.name, *verb.aliases))
    valued = "|".join(option.name for option in GLOBAL if option.metavar)
    return f"""_aof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" first=""
  local place
  for ((place = 1; place < COMP_CWORD; place++)); do
    case "${{COMP_WORDS[place]}}" in
      {valued}) ((place++)) ;;
      -*) ;;
      *) verb="${{COMP_WORDS[place]}}"; break ;;
    esac
  done
  case "$verb" in
    "") words="{verbs} {" ".join(option.name for option in GLOBAL)}" ;;
{cases}
  esac
  if [[ -n "$verb" && "$word" != -* ]]; then
    words="$({_IDS})"
    [[ -n "$first" && $place -eq $((COMP_CWORD - 1)) ]] && words="$first"
  fi
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
