"""Programs that hooks and settings name, and the trace that each leaves when it is run."""

from pathlib import Path

from testing.states.place import Place

HOOKS = (
    *(
        "applypatch-msg",
        "pre-applypatch",
        "post-applypatch",
        "pre-commit",
        "pre-merge-commit",
        "prepare-commit-msg",
    ),
    *(
        "commit-msg",
        "post-commit",
        "pre-rebase",
        "post-checkout",
        "post-merge",
        "pre-push",
        "pre-receive",
        "update",
    ),
    *(
        "proc-receive",
        "post-receive",
        "post-update",
        "reference-transaction",
        "push-to-checkout",
        "pre-auto-gc",
    ),
    *("post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)
PROGRAMS = (
    *("core.pager", "core.editor", "core.askPass", "core.sshCommand", "core.gitProxy", "core.fsmonitor"),
    *("core.alternateRefsCommand", "sequence.editor", "gpg.program", "gpg.ssh.program", "gpg.x509.program"),
    *(
        "diff.external",
        "diff.canary.command",
        "diff.canary.textconv",
        "merge.canary.driver",
        "credential.helper",
    ),
    *(
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "trailer.sign.command",
        "remote.evil.uploadpack",
    ),
    *("remote.evil.receivepack", "pager.log", "pager.diff", "pager.show", "browser.x.cmd", "mergetool.x.cmd"),
    *(
        "filter.canary.clean",
        "filter.canary.smudge",
        "filter.canary.process",
        "submodule.vendor/library.update",
    ),
)
SWITCHES = {
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "log.showSignature": "true",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "gc.auto": "1",
    "gc.autoDetach": "false",
    "maintenance.auto": "true",
    "core.logAllRefUpdates": "always",
    "diff.noprefix": "true",
    "diff.renames": "copies",
    "apply.whitespace": "fix",
    "core.quotePath": "true",
    "color.ui": "always",
    "submodule.recurse": "true",
    "fetch.recurseSubmodules": "true",
    "status.submoduleSummary": "true",
    "core.checkStat": "minimal",
    "core.trustctime": "false",
    "core.abbrev": "4",
    "i18n.commitEncoding": "latin1",
}


def plant_programs(folder: Path, place: Place) -> None:
    """Every hook, and every setting that names a program, of the place's repository runs the canary."""
    if not (place.top / ".git").exists() and not (place.top / "HEAD").exists():
        return
    common = common_folder(place.top)
    program = canary_program(folder, folder / "canary program")
    (common / "hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        canary_program(folder, common / "hooks" / name)
    quoted = f'"\\"{program}\\""'
    (folder / "included").write_text(f"[core]\n\tfsmonitor = {quoted}\n")
    sections = ["[include]\n", f"\tpath = {folder / 'included'}\n"]
    for key in PROGRAMS:
        section, _, name = key.rpartition(".")
        first, _, rest = section.partition(".")
        title = f'{first} "{rest}"' if rest else first
        sections.append(f"[{title}]\n\t{name} = {quoted}\n")
    for key, value in SWITCHES.items():
        section, _, name = key.rpartition(".")
        first, _, rest = section.partition(".")
        title = f'{first} "{rest}"' if rest else first
        sections.append(f"[{title}]\n\t{name} = {value}\n")
    sections.append(
        f'[alias]\n\tx = !{program}\n\tls-files = !{program}\n[url "ext::{program} "]\n\tinsteadOf = https://\n'
    )
    events = "".join(f"\tevent = {name}\n" for name in HOOKS)
    sections.append(f'[hook "canary=1"]\n\tcommand = {quoted}\n{events}')
    sections.append(f'[remote "evil"]\n\turl = ext::{program}\n\tfetch = +refs/*:refs/evil/*\n')
    with (common / "config").open("a", encoding="utf-8") as file:
        file.writelines(sections)
    (common / "info").mkdir(exist_ok=True)
    with (common / "info/attributes").open("a", encoding="utf-8") as file:
        file.write("* diff=canary merge=canary\n*.md filter=canary\n")
    forget_canary(folder)


def common_folder(top: Path) -> Path:
    """Git's folder for the repository at `top`, found without git."""
    if (top / "HEAD").is_file():
        return top
    link = top / ".git"
    if link.is_dir():
        return link
    own = (top / link.read_text(errors="surrogateescape").removeprefix("gitdir: ").rstrip("\n")).resolve()
    pointer = own / "commondir"
    return (own / pointer.read_text().rstrip("\n")).resolve() if pointer.is_file() else own


def canary_program(folder: Path, file: Path) -> Path:
    """`file` is a program that leaves a line in the folder's canary."""
    file.write_text(f"#!/bin/sh\necho \"${{0##*/}} $*\" >>'{folder / 'canary'}'\ncat\n")
    file.chmod(0o755)
    return file


def canary(folder: Path) -> tuple[str, ...]:
    """The programs that were run since it was forgotten, in order."""
    file = folder / "canary"
    return tuple(file.read_text(errors="replace").splitlines()) if file.exists() else ()


def forget_canary(folder: Path) -> None:
    """No program was run."""
    (folder / "canary").unlink(missing_ok=True)
