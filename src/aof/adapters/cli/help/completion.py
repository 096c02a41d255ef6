"""Shell completion, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import GLOBAL, Verb
from aof.adapters.cli.spec.parser import UsageError, below
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
    words = first.split("|") if "|" in first else []
    return " ".join(_verbs_below(verb) if verb.leads else words)


def _verbs_below(verb: Verb) -> list[str]:
    return [one.name.rpartition(" ")[2] for one in below(verb)]


def _case(verb: Verb) -> str:
    choices = f' first="{_choices(verb)}"' if _choices(verb) else ""
    choices += f' more="{" ".join(_verbs_below(verb))}"' if below(verb) and not verb.leads else ""
    names = "|".join(f'"{name}"' if " " in name else name for name in (verb.name, *verb.aliases))
    return f'    {names}) words="{_words(verb)}"{choices} ;;'


def _bash() -> str:
    cases = "\n".join(map(_case, VERBS))
    verbs = " ".join(name for verb in VERBS for name in (verb.name, *verb.aliases) if " " not in name)
    longer = "|".join(f'"{verb.name}"' for verb in VERBS if " " in verb.name)
    valued = "|".join(option.name for option in GLOBAL if option.metavar)
    return f"""_aof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" first="" more=""
  local place
  for ((place = 1; place < COMP_CWORD; place++)); do
    case "${{COMP_WORDS[place]}}" in
      {valued}) ((place++)) ;;
      -*) ;;
      *) verb="${{COMP_WORDS[place]}}"; break ;;
    esac
  done
  local longer="$verb ${{COMP_WORDS[place + 1]}}"
  if ((place + 1 < COMP_CWORD)); then
    case "$longer" in
      {longer}) verb="$longer"; ((place++)) ;;
    esac
  fi
  case "$verb" in
    "") words="{verbs} {" ".join(option.name for option in GLOBAL)}" ;;
{cases}
  esac
  if [[ -n "$verb" && "$word" != -* ]]; then
    words="$({_IDS})"
    [[ $place -eq $((COMP_CWORD - 1)) ]] && words="$words $more"
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
        group, _, name = verb.name.rpartition(" ")
        place = f"'__fish_seen_subcommand_from {group}'" if group else "__fish_use_subcommand"
        lines.append(f"complete -c aof -n {place} -a {name} -d {_quoted(verb.summary)}")
        seen = "'" + "; and ".join(f"__fish_seen_subcommand_from {word}" for word in verb.name.split()) + "'"
        for option in verb.options:
            takes = " -r" if option.metavar else ""
            lines.append(f"complete -c aof -n {seen} -l {option.name[2:]}{takes} -d {_quoted(option.help)}")
    names = " ".join(verb.name for verb in VERBS if " " not in verb.name)
    lines.append(f"complete -c aof -n '__fish_seen_subcommand_from {names}' -a \"({_IDS})\"")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
