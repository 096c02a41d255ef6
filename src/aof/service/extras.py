"""How to install what is missing. The distribution has another name than the package and the command."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

DISTRIBUTION = "aof-fabric"


def install_hint(*extras: str) -> str:
    """The command that adds what an extra needs to the environment that AOF runs in, from where AOF itself came."""
    from importlib.metadata import Distribution, PackageNotFoundError

    try:
        installed = Distribution.from_name(DISTRIBUTION)
    except PackageNotFoundError:  # run from a folder of sources
        return _hint("pip", [f"{DISTRIBUTION}[{','.join(extras)}]"])
    origin, installer = (installed.read_text(name) or "" for name in ("direct_url.json", "INSTALLER"))
    return _hint(installer.strip(), _requirement(origin, ",".join(extras)))


def _requirement(origin: str, extras: str) -> list[str]:
    """What to install: the project with its extras, from the folder, file or repository that it was installed from."""
    import json
    from urllib.parse import unquote, urlsplit

    named = f"{DISTRIBUTION}[{extras}]"
    source = json.loads(origin) if origin else {}
    url = source.get("url", "")
    if "dir_info" in source:
        place = f"{unquote(urlsplit(url).path)}[{extras}]"
        return ["--editable", place] if source["dir_info"].get("editable") else [place]
    if "vcs_info" in source:
        revision = source["vcs_info"].get("requested_revision")
        url = f"{source['vcs_info']['vcs']}+{url}{f'@{revision}' if revision else ''}"
    return [f"{named} @ {url}" if url else named]


def _hint(installer: str, requirement: list[str]) -> str:
    """The call of the program that made this environment."""
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        command = ["pipx", "install", "--force"]
    elif os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml")):
        command = ["uv", "tool", "install"]
    elif installer == "uv":
        command = ["uv", "pip", "install", "--python", sys.executable]
    elif os.path.dirname(shutil.which("pip") or "") == os.path.dirname(sys.executable):
        command = ["pip", "install"]
    else:
        command = [sys.executable, "-m", "pip", "install"]
    return f"install it with: {shlex.join([*command, *requirement])}"
