"""The same table for sessions: what an editor does to the archive of talks.py, and what the court must say.

A row changes the files of the archive, or tells a session anew: another case, label and records, all
consistent but for the one thing that must not be. Rows are as gentle as they can be made, because
test_checks_are_needed.py asks for one that only the one check catches.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from . import talks
from .forge import PLAN, VOLATILE, Forge, Row, canonical
from .mutations import Change, Mutation
from .mutations import steps as several
from .talks import NAIVE, POLICIES, QUESTION, SESSIONS, STRICT, SUITE, entries, trial_of

SESSION_ROWS: list[Mutation] = []


def add(name: str, expected: str, change: Change, **more: object) -> None:
    """Add a row."""
    SESSION_ROWS.append(Mutation(name, expected, change, sessions=True, **more))  # type: ignore[arg-type]


# -- tools -----------------------------------------------------------------------------------------


def drop(forge: Forge, *trials: str) -> None:
    """Make a run without these trials."""
    plan = forge.document(PLAN)
    forge.save(PLAN, plan | {"trials": [trial for trial in plan["trials"] if trial not in trials]})
    forge.both(lambda rows: [row for row in rows if row["trial"] not in trials])
    forge.sweep()


def tell(case: str, change: Callable[[Row], object], policies: tuple[str, ...] = ("owned", "naive")) -> Change:
    """Tell a session in another way, under these policies: its case, its label and its records."""

    def tampered(forge: Forge) -> None:
        session = copy.deepcopy(SESSIONS[case])
        change(session)
        forge.remove(SUITE + case)
        talks.write_case(forge, session)
        forge.freeze("talks")
        drop(forge, *(trial_of(case, policy) for policy in POLICIES if policy not in policies))
        for policy in policies:
            forge.change_row(trial_of(case, policy), **talks.record(forge, session, policy))
            forge.change_volatile(trial_of(case, policy), **talks.volatile(session, policy))

    return tampered


def edit(name: str, old: str, new: str) -> Change:
    """Edit text of the suite once, and freeze it."""

    def change(forge: Forge) -> None:
        data = forge.read(SUITE + name)
        assert old.encode() in data, f"{name} has no {old!r}"
        forge.write(SUITE + name, data.replace(old.encode(), new.encode(), 1))
        forge.freeze("talks")

    return change


def edit_contract(old: str, new: str) -> Change:
    """Edit the naive contract, and freeze it."""
    return several(lambda f: f.replace(NAIVE, old.encode(), new.encode()), lambda f: f.freeze("contracts"))


def lines(trial: str, change: Callable[[list[Row]], object]) -> Change:
    """Change the journal that is claimed."""

    def tampered(forge: Forge) -> None:
        journal = json.loads(forge.content(forge.row(trial)["journal"]))
        change(journal)
        forge.change_row(trial, journal=forge.blob(canonical(journal)))

    return tampered


def line(trial: str, number: int, **members: object) -> Change:
    """Change one line of the journal that is claimed."""
    return lines(trial, lambda journal: journal[number - 1].update(members))


def exchange(trial: str, number: int, **members: object) -> Change:
    """Change what was recorded of one exchange."""

    def change(forge: Forge) -> None:
        exchanges = forge.row(trial)["exchanges"]
        made: dict[str, Any] = {
            key: forge.blob(value) if isinstance(value, bytes) else value for key, value in members.items()
        }
        exchanges[number - 1] |= made
        forge.change_row(trial, exchanges=exchanges)

    return change


def more_exchanges(trial: str, number: int) -> Change:
    """Record one exchange a second time, at the end."""

    def change(forge: Forge) -> None:
        exchanges = forge.row(trial)["exchanges"]
        forge.change_row(trial, exchanges=[*exchanges, exchanges[number - 1]])

    return change


def request(trial: str, number: int, change: Callable[[bytes], bytes]) -> Change:
    """Record another request."""

    def tampered(forge: Forge) -> None:
        requests = forge.row(trial)["requests"]
        requests[number - 1] = forge.blob(change(forge.content(requests[number - 1])))
        forge.change_row(trial, requests=requests)

    return tampered


def sends(trial: str, number: int, *history: object) -> Change:
    """Record a request that carries another history."""
    return request(trial, number, lambda _: talks.request(entries(list(history))))


def keeps(trial: str, *history: object) -> Change:
    """Claim another history."""
    return lambda f: f.claim_history(trial, entries(list(history)))


def says(trial: str, old: str, new: str) -> Change:
    """Spell something in one request differently."""
    return request(trial, 1, lambda data: data.replace(old.encode(), new.encode()))


BASE = ("earlier", "earlier answer")
NORMAL, CANCEL, CLEAR = trial_of("normal"), trial_of("cancel"), trial_of("clear")
OLD_FIRST, NEW_FIRST = trial_of("supersede-old-first"), trial_of("supersede-new-first")
OLD_FIRST_NAIVE = trial_of("supersede-old-first", "naive")

# -- cases -----------------------------------------------------------------------------------------


def nothing(_: Forge) -> None:
    """Change nothing: a limit of the court was lowered."""


def another_exchange(session: Row) -> None:
    """Write an exchange that no step asks for."""
    session["exchange"].append(session["exchange"][0])


def an_unknown_attempt(session: Row) -> None:
    """Read of an attempt that was never begun: the owned policy would deny it."""
    session["steps"].append(["read", "z"])
    session["owned"]["journal"].append(["denied", "", 0, 0, "", "old tale", "accepted", 1])


def begun_twice(session: Row) -> None:
    """Begin the same attempt again, which the owned policy denies while it is active."""
    another_exchange(session)
    session["steps"].insert(1, ["begin", "a"])
    session["owned"]["journal"].insert(1, ["denied", "", 0, 0, "", "", "generating", 0])


SILENCE = "script = [{ wait_ms = 300 }, { wait_ms = 300 }]\n"
add("a session with too many steps", "E-CASE", nothing, limits=lambda _: {"MAX_MOVES": 10})
add("a session with too many exchanges", "E-CASE", nothing, limits=lambda _: {"MAX_EXCHANGES": 4})
add("a session with too long bodies", "E-CASE", nothing, limits=lambda _: {"MAX_SESSION_BYTES": 900})
add("a session without steps", "E-CASE", edit("normal/case.toml", "[[exchange]]", "step = []\n[[exchange]]"))
add(
    "a session that cancels by its preview", "E-CASE", edit("normal/case.toml", "4096", "4096\ncancel_after_utf16 = 99")
)
add("a session with a long silence", "E-CASE", edit("normal/case.toml", "[[exchange]]\n", "[[exchange]]\n" + SILENCE))
add("a session with an exchange too many", "E-CASE", tell("normal", another_exchange))
add("a step about an unknown attempt", "E-CASE", tell("normal", an_unknown_attempt, ("owned",)))
add("an attempt that is begun twice", "E-CASE", tell("normal", begun_twice, ("owned",)))
add("a step that replaces an unknown attempt", "E-CASE", edit("late-preview/case.toml", 'of = "a"', 'of = "z"'))
add("a read beyond the body", "E-CASE", tell("normal", lambda s: s["steps"][1].append(191)))
add("a read until no byte", "E-CASE", edit("cancel/case.toml", "until_bytes = 60", "until_bytes = 0"))
add("a step that does what nobody knows", "E-CASE", edit("normal/case.toml", 'do = "commit"', 'do = "publish"'))
add("a step that does a list", "E-CASE", edit("normal/case.toml", 'do = "commit"', 'do = ["commit"]'))
add("a step with an unknown key", "E-CASE", edit("normal/case.toml", 'do = "commit"', 'do = "commit"\nof = "a"'))
add("a step without its attempt", "E-CASE", edit("normal/case.toml", 'do = "commit"\nattempt = "a"', 'do = "commit"'))
add("an attempt with a long name", "E-CASE", edit("normal/case.toml", 'attempt = "a"', 'attempt = "ab"'))
add("a session whose second body is not there", "E-CASE", edit("denied/case.toml", "body-2.sse", "gone.sse"))

# -- labels and contracts --------------------------------------------------------------------------

LABEL = "normal/label.toml"
NAIVE_LABEL = '[contract."naive/1"'


def edit_naive_label(old: str, new: str) -> Change:
    """Edit what the label of one session states under the naive contract."""

    def change(forge: Forge) -> None:
        owned, head, naive = forge.read(SUITE + LABEL).decode().partition(NAIVE_LABEL)
        assert old in naive
        forge.write(SUITE + LABEL, (owned + head + naive.replace(old, new)).encode())
        forge.freeze("talks")

    return change


def unplayed(change: Change) -> Change:
    """Change what no trial is judged by: the naive trial of the session is not in the plan."""
    return several(lambda f: drop(f, trial_of("normal", "naive")), change)


def a_lone_control(forge: Forge) -> None:
    """Run the control alone; the label of one session states no owned contract any more."""
    drop(forge, *(trial_of(case) for case in SESSIONS))
    forge.remove(STRICT)
    edit("cancel/label.toml", 'state = "interrupted"\n', 'state = "interrupted"\nfails = false\n')(forge)


ATTEMPT_Z = '[contract."naive/1".attempt.z]\ndecision = "open"\n'
ATTEMPT_A = '.attempt.a]\noutcome = "COMPLETE"\ndecision = "accepted"\n'
add("a label of another attempt", "E-LABEL", unplayed(lambda f: append(f, ATTEMPT_Z)))
add(
    "a label without an attempt",
    "E-LABEL",
    unplayed(edit_naive_label(f"\n{NAIVE_LABEL}{ATTEMPT_A}", f"\n{NAIVE_LABEL}.attempt]\n")),
)
add("an owned label that fails", "E-LABEL", edit(LABEL, 'state = "accepted"\n', 'state = "accepted"\nfails = false\n'))
add("a naive label that does not say whether it fails", "E-LABEL", edit(LABEL, "fails = false\n", ""))
add("a control that has nothing to differ from", "E-LABEL", a_lone_control)
add("a session's label with an unknown key", "E-LABEL", edit(LABEL, "writes = 1", "writes = 1\ncommits = 1"))
add("a session's label in the form of a trial", "E-LABEL", edit(LABEL, "writes = 1", 'preview = ""'))
add("a session's label that dispatches", "E-LABEL", edit(LABEL, "dispatched = 0", "dispatched = 1"))
add("a session's label with an unknown decision", "E-LABEL", edit(LABEL, '"accepted"\n\n', '"published"\n\n'))
add("a session's label with an unknown outcome", "E-LABEL", edit(LABEL, '"COMPLETE"', '"FINE"'))
add("a session's label about no contract of its own", "E-LABEL", edit(LABEL, "strict/1", "strict/2"))
add("a contract of an unknown policy", "E-CONTRACT", edit_contract('"naive"', '"lazy"'))
add("a contract with an unknown key of attempts", "E-CONTRACT", edit_contract('"naive"', '"naive"\nqueue = 1'))
add("a contract with retries that are none", "E-CONTRACT", edit_contract('"naive"', '"naive"\nretries = -1'))


def append(forge: Forge, text: str) -> None:
    """Append to the label of one session."""
    forge.write(SUITE + LABEL, forge.read(SUITE + LABEL) + b"\n" + text.encode())
    forge.freeze("talks")


# -- records ---------------------------------------------------------------------------------------


def as_a_trial(forge: Forge) -> None:
    """Record a session in the form of a single trial."""
    row = forge.row(NORMAL)
    served = row["exchanges"][0]
    kept = {key: row[key] for key in ("trial", "suite", "case", "contract", "requests", "claim", "no_claim")}
    flat = {"schema": "endmark.trial/1"} | kept | served
    forge.save_rows([flat if old["trial"] == NORMAL else old for old in forge.rows()])
    forge.sweep()


def silence(forge: Forge, trial: str, reason: str, **members: object) -> None:
    """Say that there is no claim, and what the server had sent."""
    forge.change_row(trial, claim=None, no_claim=reason, journal=None, **members)


def unsupported(forge: Forge) -> None:
    """Say that the subject cannot take steps."""
    silence(forge, NORMAL, "unsupported", requests=[], exchanges=[])
    forge.change_volatile(NORMAL, server_end="not-asked", sent_bytes=0)


def another_claim(trial: str, **members: object) -> Change:
    """Claim something else."""
    return lambda f: f.change_claim(trial, **members)


def without_line(journal: list[Row]) -> None:
    """Leave the last line out."""
    del journal[-1]


add("a session recorded as a single trial", "E-SCHEMA", as_a_trial)
add("a claim of a session without a journal", "E-SCHEMA", lambda f: f.change_row(NORMAL, journal=None))
add("a journal without a claim", "E-SCHEMA", lambda f: f.change_row(NORMAL, claim=None, no_claim="timeout"))
add("a session's record with an unknown field", "E-SCHEMA", lambda f: f.change_row(NORMAL, status=200))
add("a session's claim of one status", "E-SCHEMA", another_claim(NORMAL, status=200))
add("an exchange with an unknown field", "E-SCHEMA", exchange(NORMAL, 1, attempt="a"))
add("a journal line with an unknown field", "E-SCHEMA", line(NORMAL, 1, fence=1))
add("a journal line in an unknown state", "E-SCHEMA", line(NORMAL, 1, state="busy"))
add("a journal line with an unknown result", "E-SCHEMA", line(NORMAL, 3, result="stored"))
add("a journal that is not canonical", "E-CANON", lambda f: spaced_journal(f))
add("a journal that is no JSON", "E-JSON", lambda f: f.change_row(NORMAL, journal=f.blob(b"[")))
add(
    "a journal that is not there",
    "E-BLOB-REF",
    lambda f: f.change_row(NORMAL, journal={"bytes": 1, "sha256": "0" * 64}),
)
add("a journal line of another attempt", "E-JOURNAL", line(CANCEL, 4, attempt="b"))
add("a journal line of another step", "E-JOURNAL", line(CANCEL, 4, do="commit"))
add("a journal line left out", "E-JOURNAL", lines(CANCEL, without_line))
add("a journal with a line more", "E-JOURNAL", lines(CANCEL, lambda journal: journal.append(journal[-1])))


def spaced_journal(forge: Forge) -> None:
    """Spell a journal with spaces."""
    data = forge.content(forge.row(NORMAL)["journal"])
    forge.change_row(NORMAL, journal=forge.blob(data.replace(b",", b", ")))


# -- the wire --------------------------------------------------------------------------------------

OLD = b"".join(talks.events(["old ", "tale", "STOP", "DONE"]))
NEW = b"".join(talks.events(["new ", "song", "STOP", "DONE"]))
add("an exchange without a request", "E-CASE-WIRE", more_exchanges(NORMAL, 1))
add("a head of another status in a session", "E-CASE-WIRE", exchange(NORMAL, 1, response_head=talks.head(201)))
add(
    "the bodies of two attempts swapped",
    "E-CASE-WIRE",
    several(exchange(NEW_FIRST, 1, body=NEW), exchange(NEW_FIRST, 2, body=OLD)),
)
add("less of an early body than was consumed", "E-CASE-WIRE", exchange(NEW_FIRST, 1, body=OLD[:60]))
add("more of an early body than was consumed", "E-CASE-WIRE", exchange(trial_of("errors"), 1, body=OLD[:60] + b"x"))
add("less of the last body than was consumed", "E-CASE-WIRE", exchange(NEW_FIRST, 2, body=NEW[:60]))
add("more of a body than was consumed", "E-CASE-WIRE", exchange(CANCEL, 1, body=OLD[:61]))
add("another status in a session", "E-STATUS", exchange(NORMAL, 1, status=201))
add("a session's last play that failed", "E-VOLATILE", lambda f: f.change_volatile(NORMAL, server_end="failed"))
add("a session's last play of too much", "E-VOLATILE", lambda f: f.change_volatile(NORMAL, sent_bytes=191))
add("a session that asked nobody", "E-VOLATILE", lambda f: f.change_volatile(NORMAL, server_end="not-asked"))
add("a delivery that is denied in a session", "E-VOLATILE", exchange(NORMAL, 1, delivered=False))
add("a token in a session's request", "E-REQUEST", says(NORMAL, "{path}", "/3UwU5noJvG862b/v1"))
add(
    "an entry of a request with a member more",
    "E-REQUEST",
    says(NORMAL, '"content":"earlier"', '"content":"earlier","name":"x"'),
)
add("a request without messages", "E-REQUEST", says(NORMAL, '"messages"', '"n"'))

# -- what the subject did --------------------------------------------------------------------------


def unanswered(*history: object) -> list[Row]:
    """Give a history that ends with a question."""
    return [*entries(list(history)), QUESTION]


def lost_request(forge: Forge) -> None:
    """Let the second request of a session never come."""
    row = forge.row(NEW_FIRST)
    forge.change_row(NEW_FIRST, requests=row["requests"][:1], exchanges=row["exchanges"][:1])


def asked_again(forge: Forge) -> None:
    """Let a library ask a second time behind the back of the only attempt."""
    row = forge.row(NORMAL)
    forge.change_row(NORMAL, requests=row["requests"] * 2, exchanges=row["exchanges"] * 2)


def judged_alone(case: str) -> Change:
    """Let a label be a judgement."""
    return edit(f"{case}/label.toml", '"spec"', '"judgement"')


add("an early exchange that was not delivered", "NOT_DELIVERED", exchange(NEW_FIRST, 1, delivered=False))
add("a request that never came", "NOT_DELIVERED", lost_request)
add("no claim of a session", "NO_CLAIM", lambda f: silence(f, NORMAL, "exit"))
add("no steps for want of a capability", "UNSUPPORTED", unsupported)
for key, old, new in (
    ("stored", "stored = []", 'stored = ["old tale"]'),
    ("writes", "writes = 0", "writes = 1"),
    ("display", 'display = "old "', 'display = "old"'),
    ("state", 'state = "interrupted"', 'state = "withdrawn"'),
    ("decision", 'decision = "cancelled"', 'decision = "refused"'),
    ("outcome", 'outcome = "CANCELLED"\n', ""),
):
    add(f"a session's label that claims another {key}", "LABEL_CONFLICT", edit("cancel/label.toml", old, new))
add(
    "a control that need not fail, and does",
    "LABEL_CONFLICT",
    edit("cancel/label.toml", "fails = true", "fails = false"),
)
add("a control that has to fail, and does not", "CONTROL_DID_NOT_FAIL", edit(LABEL, "fails = false", "fails = true"))

add(
    "an old attempt published first",
    "FALSE_COMMIT",
    keeps(OLD_FIRST, *BASE, "question", "old tale", "question", "new song"),
)
add("an old attempt published over the new one", "FALSE_COMMIT", keeps(NEW_FIRST, *BASE, "question", "old tale"))
add("an old attempt's partial text published", "FALSE_COMMIT", keeps(CANCEL, *BASE, "question", "old "))
add("an answer published twice", "FALSE_COMMIT", keeps(NORMAL, *BASE, "question", "old tale", "question", "old tale"))
add(
    "an answer published early and again",
    "FALSE_COMMIT",
    keeps(NORMAL, *BASE, "question", "old ", "question", "old tale"),
)
add("an answer published into a cleared history", "FALSE_COMMIT", keeps(CLEAR, "question", "old tale"))
add(
    "a question that got no answer in a session",
    "FALSE_COMMIT",
    lambda f: f.claim_history(CANCEL, unanswered(*BASE)),
)
add("a request that carries a partial answer", "FALSE_COMMIT", sends(OLD_FIRST, 2, *BASE, "question", "old "))
add(
    "a request that carries the question of an old attempt",
    "FALSE_COMMIT",
    request(OLD_FIRST, 2, lambda _: talks.request(unanswered(*BASE))),
)
add("the earlier entries kept after a clear", "FALSE_COMMIT", keeps(CLEAR, *BASE))
add("a request after a clear that carries what was cleared", "FALSE_COMMIT", sends(trial_of("after-clear"), 2, *BASE))
add("a tool dispatched in a session", "FALSE_COMMIT", another_claim(NORMAL, dispatched=1))
add("a session's answer withdrawn", "FALSE_WITHHOLD", keeps(NORMAL, *BASE))
add("one of a control's answers withdrawn", "FALSE_WITHHOLD", keeps(OLD_FIRST_NAIVE, *BASE, "question", "new song"))
add("a request that lacks the answer before", "FALSE_WITHHOLD", sends(trial_of("late-error"), 2, *BASE))
add(
    "an old attempt published, by a judgement alone",
    "NON_STRICT",
    several(judged_alone("supersede-new-first"), keeps(NEW_FIRST, *BASE, "question", "old tale")),
)
add(
    "a session's answer withdrawn, by a judgement alone",
    "OVER_STRICT",
    several(judged_alone("normal"), keeps(NORMAL, *BASE)),
)

CALLS = [{"id": "c1", "name": "look", "arguments": '{"a":1}'}]
add("a session's answer reworded", "ALTERED", keeps(NORMAL, *BASE, "question", "a tale"))
add("a session's answer cut", "ALTERED", keeps(NORMAL, *BASE, "question", "old "))
add("two answers joined", "ALTERED", keeps(NEW_FIRST, *BASE, "question", "old new song"))
add("an earlier entry changed in a session", "ALTERED", keeps(CANCEL, "earlier", "never"))
add("the earlier entries lost in a session", "ALTERED", keeps(CANCEL))
add("another question kept in a session", "ALTERED", keeps(NORMAL, *BASE, "other", "old tale"))
add(
    "an answer kept as a question",
    "ALTERED",
    keeps(NORMAL, *BASE, "question", {"role": "user", "content": "old tale"}),
)
add(
    "a control's answers in another order",
    "ALTERED",
    keeps(OLD_FIRST_NAIVE, *BASE, "question", "new song", "question", "old tale"),
)
add("another call kept", "ALTERED", keeps(trial_of("tools"), *BASE, "question", {"content": "", "tool_calls": CALLS}))
add("a call that was lost", "ALTERED", keeps(trial_of("tools"), *BASE, "question", ""))
add("a request that asks another question", "ALTERED", says(NORMAL, '"question"', '"an easier question"'))
add(
    "a request that asks nothing",
    "ALTERED",
    request(NORMAL, 1, lambda data: data.replace(canonical(QUESTION), b"").replace(b",]", b"]")),
)
add(
    "another conversation kept after a clear",
    "ALTERED",
    keeps(CLEAR, "earlier", "another answer"),
)

LINES: dict[str, object] = {
    "result": "denied",
    "outcome": None,
    "reads": 5,
    "preview": "old",
    "display": "old",
    "state": "withdrawn",
    "stored": 2,
}
for key, value in LINES.items():
    add(f"a journal that claims another {key}", "MISREPORTED", line(NORMAL, 3, **{key: value}))
add(
    "a journal that claims less consumed, with the body to match",
    "MISREPORTED",
    several(line(CANCEL, 5, consumed_bytes=59), exchange(CANCEL, 1, body=OLD[:59])),
)
add("a session that claims another outcome", "MISREPORTED", another_claim(CANCEL, outcome="INCOMPLETE_STREAM"))
add("a session that claims another preview", "MISREPORTED", lambda f: f.claim_preview(CANCEL, b"old tale"))
add("more requests than attempts", "MISREPORTED", asked_again)
add("a volatile record of a session missing", "E-VOLATILE", lambda f: f.save_rows(f.rows(VOLATILE)[:-1], VOLATILE))
