"""One call from outside: its parameters and its caller are checked, then the fabric is asked.

Also how its error looks in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from aof.api.catalogue import BY_NAME, SCOPES, Operation, Params, Scope, listed_in
from aof.api.fabric import Fabric
from aof.errors import ActorMismatch, AofError, Call, InvalidInput, NotAllowed, one_of_several
from aof.kernel import limits as kernel_limits
from aof.kernel.arguments import invalid_arguments
from aof.kernel.identity import Identity
from aof.support import nesting
from aof.support.typed import prepare_type

Role = Literal["reader", "agent", "admin"]
ROLES: tuple[Role, ...] = ("reader", "agent", "admin")


class Caller(msgspec.Struct, frozen=True):
    """The caller. With `proven`, a token or a run's secret proves the name, and the call cannot give another.

    `secret` came with the call, of the run that it is made for; `kept` are those of what its session has claimed.
    `session` is the one actor that the caller's session is, where it has one. With `default` nobody but the session
    itself has chosen that name: where callers are bound, it is a worker's, and in no case a maintainer's.
    `scope` says which operations are allowed; `token` is the ID of the token that the call came with, and `tools` the
    tiers that it names. `conversation` names the session or context that the call belongs to.
    `keeps` says that what the caller begins to run outlives its session.
    """

    actor: str
    role: Role = "admin"
    proven: bool = False
    secret: str | None = None
    kept: tuple[str, ...] = ()
    session: str | None = None
    default: bool = False
    scope: Scope = "admin"
    token: str | None = None
    tools: tuple[str, ...] = ()
    conversation: str | None = None
    keeps: bool = False

    def __repr__(self) -> str:
        return f"Caller({self.actor!r}, {self.role!r}, proven={self.proven})"


def parameters(operation: Operation, given: object, *, tool: bool = False, strict: bool = True) -> Params:
    """The parameters of a call, checked against the catalogue; as a tool it may need more of them.

    A null for what may be left out counts as left out; as a tool, what a model plainly means counts.
    """
    if isinstance(given, dict):
        given = _as_meant(given, operation.parameters, tool=tool)
        if tool:
            given = dict(operation.tool_defaults) | given
    try:
        params = msgspec.convert(given, prepare_type(operation.parameters), strict=strict)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _wrong(operation, nesting.reason(error), given, tool=tool) from None
    if tool and isinstance(given, dict):
        _check_tool(operation, given)
    return params


class _Field(NamedTuple):
    """What a parameter allows beside values of its type.

    To be null, to hold others, and as a tool: a text for a list of one, the other way round, a number or yes and no as
    a text, and its own `words` spelled a little otherwise.
    """

    kind: Any
    nullable: bool
    texts: bool
    text: bool
    scalar: bool
    words: dict[str, str]
    inner: type[msgspec.Struct] | None


_SEVERAL: Final = re.compile(r"\s*(\[.*|\S+(\s*,\s*\S+)+\s*)?", re.DOTALL)  # or none at all


def _as_meant(given: dict[str, Any], kind: type[msgspec.Struct], *, tool: bool) -> dict[str, Any]:
    """What was given, without each null for what may be left out, and with the values that a model means.

    Some clients fill in all that they know of.
    """
    fields = _fields(kind)
    kept = {}
    for name, value in given.items():
        field = fields.get(name)
        if field is not None:
            if value is None and field.nullable:
                continue
            if field.inner is not None and isinstance(value, dict):
                value = _as_meant(value, field.inner, tool=tool)  # noqa: PLW2901 - the value that is meant
            elif tool:
                value = _meant(value, field)  # noqa: PLW2901 - as above
        kept[name] = value
    return kept


def _meant(value: Any, field: _Field) -> Any:
    """What a model means by a value that its type does not allow, where that is plain; else the value itself.

    Words between commas may be one text or several, so they stay as they are, and are refused.
    """
    if isinstance(value, list):
        if len(value) == 1 and field.text:
            return value[0]
        return [field.words.get(_folded(one), one) if isinstance(one, str) else one for one in value]
    if not isinstance(value, str):
        return value
    if field.texts and not _SEVERAL.fullmatch(value):
        return [field.words.get(_folded(value), value)]
    if field.scalar:
        with suppress(msgspec.ValidationError):
            return msgspec.convert(value, prepare_type(field.kind), strict=False)
    return field.words.get(_folded(value), value)


def _folded(word: str) -> str:
    """A word without what people vary: `In Progress` and `in_progress` are `in-progress`."""
    return word.strip().lower().replace(" ", "-").replace("_", "-")


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, _Field]:
    """The fields of a struct, by their names on the wire."""
    found = {}
    for field in msgspec.structs.fields(kind):
        parts = _parts(field.type)
        kinds = [_bare(one) for one in parts]
        items = [get_args(one) for one in kinds if get_origin(one) in (list, tuple, Sequence)]
        held = [_bare(part) for one in items if one for part in _parts(_bare(one[0]))]
        words = [word for one in (*kinds, *held) if get_origin(one) is Literal for word in get_args(one)]
        words += [word for one in parts for word in _schema_words(one)]
        found[field.encode_name] = _Field(
            kind=field.type,
            nullable=not field.required,
            texts=str not in kinds and any(one is str or get_origin(one) is Literal for one in held),
            text=str in kinds and not items,
            scalar=str not in kinds and not words and any(one in (int, float, bool) for one in kinds),
            words={_folded(word): word for word in words},
            inner=next((one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)), None),
        )
    return found


def _schema_words(kind: Any) -> list[str]:
    """The words that the schema of a text lists, and that the rules themselves refuse others than."""
    metas = [one for one in getattr(kind, "__metadata__", ()) if isinstance(one, msgspec.Meta)]
    return [word for one in metas for word in (one.extra_json_schema or {}).get("enum", ())]


def _parts(kind: Any) -> tuple[Any, ...]:
    """The types of a union; else the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _bare(kind: Any) -> Any:
    """A type without what is said about it."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _check_tool(operation: Operation, given: dict[str, Any]) -> None:
    for name in operation.tool_requires:
        if name not in given:
            raise _wrong(operation, f"Object missing required field `{name}`", given, tool=True)
        if problem := kernel_limits.text(name, given[name], kernel_limits.BODY, required=True):
            raise problem


def _wrong(operation: Operation, said: str, given: object, *, tool: bool) -> InvalidInput:
    """Names the parameter, what was expected of it, and a call that has everything it needs."""
    fields = msgspec.structs.fields(operation.parameters)
    needed = [field.name for field in fields if field.required]
    if tool:
        needed += operation.tool_requires
    example: dict[str, Any] = dict.fromkeys(needed, "…")
    call = Call(operation.name, example) if needed else None
    wrong = invalid_arguments(said, operation.parameters, given, call)
    if "task_id" in example and wrong.details.get("parameter") != "taskId" and isinstance(given, dict):
        named = given.get("taskId")
        example["task_id"] = named if isinstance(named, str) and len(named) <= kernel_limits.ITEM else "…"
    refused = next((one for one in fields if one.encode_name == wrong.details.get("parameter")), None)
    if refused is not None and not isinstance(refused.default, str):  # else the call is right without it
        example.setdefault(refused.name, _placeholder(refused))
    return wrong


def _placeholder(field: msgspec.structs.FieldInfo) -> Any:
    """What stands in an example for a value that the caller has to choose."""
    for sample in (["…"], "…", 1, True):
        with suppress(msgspec.ValidationError):
            msgspec.convert(sample, prepare_type(field.type))
            return sample
    return "…"  # one of a few words


def perform(
    fabric: Fabric,
    operation: Operation,
    params: Params,
    caller: Caller,
    run_of: Callable[[str], str | None] | None = None,
) -> Any:
    """Ask the fabric for the caller. `run_of` tells the run that the caller's session holds a task with."""
    services = fabric.services
    binds, lends = services.authentication.standing(caller.actor) if operation.effect != "read" else (False, False)
    lends = lends and not caller.default and caller.secret is None
    actor = admitted(operation, params, caller, lends=lends)
    if problem := kernel_limits.name("actor", actor):
        raise problem
    # Not for the serving process's run.
    principal = services.principal.but(actor=actor, run=None, conversation=caller.conversation, keeps=caller.keeps)
    values = params.given()
    if run_of is not None and operation.runs and "task_id" in values and not {"run", "agent"} & values.keys():
        values["task_id"] = services.environment.lookup.resolve(values["task_id"])
        run = run_of(values["task_id"])
        if run is not None:
            values["run"] = run
    if run_of is not None and (operation.runs or operation.acts):
        principal = principal.but(run_of=run_of)
    if operation.effect != "read" or operation.about_caller:
        known = _identity(caller, worker=operation.runs, binds=binds)
        principal = principal.but(known=known, secret=None)
    view = fabric.on_behalf_of(principal)
    result = operation.ask(view, values) if operation.ask is not None else getattr(view, operation.name)(**values)
    if operation.effect == "read" and "task_id" in values and caller.scope != "read":
        known = _identity(caller, worker=True, binds=services.authentication.binds_callers)
        fabric.on_behalf_of(principal.but(known=known, secret=None)).renew_kept(values["task_id"])
    return result


def warning(fabric: Fabric) -> str:
    """A warning for readers that there are several histories and this was one of them; empty where there is one."""
    files = fabric.store.working_copy
    with suppress(AofError):  # who could answer without the log need not fail over it
        if files is not None and (histories := files.tips()) > 1:
            return one_of_several(histories)
    return ""


def _identity(caller: Caller, *, worker: bool, binds: bool) -> Identity | None:
    """What the caller has proven. An admin may act for others, and so may who has proven nothing.

    Where callers are bound, the chart and the settings say who may, and not the token. What a session has claimed
    speaks for a worker's writes only: it may have claimed for several agents.
    """
    kept, session = caller.kept if worker else (), caller.actor if caller.proven else caller.session
    token = caller.proven and caller.secret is None
    limited = caller.proven and caller.scope == "work"
    if caller.proven and caller.role == "agent" and (caller.secret is not None or not binds):
        return Identity(
            agent=caller.actor,
            secret=caller.secret,
            kept=kept,
            session=session,
            token=token,
            limited=limited,
            scope=caller.scope,
        )
    if binds and caller.default:
        return Identity(agent=session, session=session, kept=kept, limited=True, unproven=True)
    if caller.secret is None and not kept and session is None:
        return None
    return Identity(
        secret=caller.secret,
        kept=kept,
        behalf=caller.actor,
        session=session,
        token=token,
        limited=limited,
        scope=caller.scope,
        unproven=caller.default,
    )


def admitted(operation: Operation, params: Params, caller: Caller, *, lends: bool = False) -> str:
    """Whose call it is; a refusal when what the caller has proven says that it cannot be.

    `lends` says that the caller may act for some others; for whom is decided with the command.
    """
    actor = params.actor if isinstance(params.actor, str) else caller.actor
    if not caller.proven:
        return actor
    if actor != caller.actor and not lends:
        raise ActorMismatch(
            f"the caller is {caller.actor}, and cannot act as {actor[:80]}", "leave 'actor' out", actor=caller.actor
        )
    needed = operation.scope_of(params)
    if SCOPES.index(caller.scope) < SCOPES.index(needed):
        raise NotAllowed(
            f"{operation.name} needs a token with the scope {needed}, and this one has {caller.scope}",
            f"ask for one: aof admin token create {caller.actor} --scope {needed}",
            role=caller.role,
            scope=caller.scope,
        )
    acts = getattr(params, operation.acts) if operation.acts else None
    if caller.role == "agent" and isinstance(acts, str) and acts != caller.actor and not lends:
        raise ActorMismatch(
            f"the caller is {caller.actor}, and cannot act for {acts[:80]}",
            f"leave '{operation.acts}' out, or use a token with the scope admin",
            actor=caller.actor,
        )
    return actor


Spell = Callable[[Operation, dict[str, Any]], str]
_COMMAND: Final = re.compile(r"\baof [a-z]")
_AT_THE_MACHINE: Final = "on the machine that holds the data"


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as a caller over the wire sees it."""

    code: str
    kind: str
    message: str
    hint: str
    details: dict[str, Any] = {}


class HintReader(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader of a hint can call: the tiers of operations that it is told of, and what its token allows.

    `actor` is the only one that it can act as; None: anybody.
    """

    tiers: tuple[str, ...] = ("all",)
    scope: Scope = "admin"
    actor: str | None = None

    def knows(self, operation: Operation) -> bool:
        """Whether the reader is told of the operation."""
        return operation in listed_in(self.tiers)

    def acts_for_another(self, call: Call) -> str | None:
        """The other one that the call acts for, where the reader cannot."""
        acts = BY_NAME[call.operation].acts
        acting = call.arguments.get(acts) if acts is not None else None
        return acting if isinstance(acting, str) and self.actor not in (None, acting) and acting != "…" else None

    def may(self, operation: Operation) -> bool:
        """Whether its token allows the operation."""
        return SCOPES.index(self.scope) >= SCOPES.index(operation.scope)


EVERYTHING: Final = HintReader()
HELP: Final = "aof_help"  # the tool that explains all others, to readers who are told of a few


def reader_of(caller: Caller, tiers: tuple[str, ...] = ("all",)) -> HintReader:
    """The reader of hints that a caller is, on a surface that lists these tiers."""
    bound = caller.proven and caller.role != "admin"
    return HintReader(tiers=tiers, scope=caller.scope, actor=caller.actor if bound else None)


def error_payload(error: AofError, spell: Spell, reader: HintReader = EVERYTHING) -> Told:
    """The error, with its hint in the words of the surface that answers, for this reader."""
    details = msgspec.to_builtins(error.details)
    hint = _hint(error, spell, reader)
    return Told(code=error.code, kind=error.kind, message=error.message, hint=hint, details=details)


def _hint(error: AofError, spell: Spell, reader: HintReader) -> str:
    hint = f"{error.hint}, {_AT_THE_MACHINE}" if _COMMAND.search(error.hint) else error.hint
    ways = [_way(hint, error.call, spell, reader)]
    if error.otherwise is not None:
        ways.append(_way(*error.otherwise, spell, reader))
    return "; or ".join(ways)


def _way(hint: str, meant: Call | None, spell: Spell, reader: HintReader) -> str:
    if meant is None:
        return hint
    operation = BY_NAME[meant.operation]
    call = offered_call(meant, reader)
    if call is not None:
        spelled = spell(BY_NAME[call.operation], wire_names(call))
        return f"{hint}: {spelled}" if hint else spelled
    hint = hint or operation.help[0].lower() + operation.help[1:].removesuffix(".")
    if (another := reader.acts_for_another(meant)) is not None:
        return f"{hint}; that is for {another[:80]} to do"
    if not reader.may(operation):
        return f"{hint}; that takes a token with the scope {operation.scope}"
    return f'{hint}; {HELP}({{"topic":"{operation.tool}"}}) shows how'


def offered_call(call: Call, reader: HintReader) -> Call | None:
    """The call as the reader can make it: itself, or with what stands in for it; None where neither is possible."""
    operation = BY_NAME[call.operation]
    if not reader.may(operation) or reader.acts_for_another(call) is not None:
        return None
    if reader.knows(operation):
        return call
    other = operation.stand_in
    if other is None or not reader.knows(BY_NAME[other.operation]):
        return None
    given = {name: value for name, value in call.arguments.items() if name in other.keeps} | dict(other.adds)
    needed = {field.name for field in msgspec.structs.fields(BY_NAME[other.operation].parameters) if field.required}
    return Call(other.operation, given) if needed <= given.keys() else None


def wire_names(call: Call) -> dict[str, Any]:
    """The arguments of a call under the names that they have over the wire."""
    fields = msgspec.structs.fields(BY_NAME[call.operation].parameters)
    names = {field.name: field.encode_name for field in fields}
    return {names[name]: value for name, value in call.arguments.items()}
