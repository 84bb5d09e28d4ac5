"""Example runs: one for each way a run can look."""

from tests.viewer.fake_run import START_US, FakeRun

LIMITS = {
    "model_calls": 8,
    "tool_calls": 20,
    "tool:query_logs": 5,
    "tool_default": 4,
    "input_tokens": 8_000,
    "output_tokens": 2_000,
    "total_tokens": 10_000,
    "run_bytes": 512_000,
}

LOGS = {
    "file": "/var/log/import/app.log",
    "matches": [
        {"line": 48211, "text": "02:14:09 import[911]: write failed: No space left on device"},
        {"line": 48212, "text": "02:14:09 import[911]: rolling back batch 77 of 210"},
        {"line": 48219, "text": "02:14:11 import[911]: exit 28"},
    ],
    "truncated": False,
}


def budget_run() -> FakeRun:
    """The run of the design: a retry, a failed tool, a repair, and a sixth call that its limit refused."""
    run = FakeRun("s-42", "run-019ad3c1", "Why did the nightly import stop on db-3?", dict(LIMITS))
    run.start(
        agent="triage",
        agent_version="1.4",
        actor="on-call",
        environment="staging",
        flow="CHAT_GRAPH",
        labels={"team": "storage", "ticket": "INC-4711"},
    )
    run.model(30, 120, "router", scope="intent_router", attempt=1, of=2, failure="TRANSPORT", said="connection reset")
    run.model(180, 310, "router", scope="intent_router", attempt=2, of=2, tokens=(96, 12), output="CHAT_GRAPH")
    run.transition(360, None, "planner")
    run.model(380, 1_160, "planner", scope="planner.1", output="1. disk\n2. application log\n3. out of memory")
    run.transition(1_200, "planner", "executor")
    run.tool(
        1_240,
        1_520,
        "query_metrics",
        {"what": "disk", "host": "db-3"},
        scope="executor.2",
        output={"mount": "/var", "used_percent": 100, "free_bytes": 0},
    )
    run.tool(1_240, 1_910, "query_logs", {"file": "app.log", "pattern": "import"}, scope="executor.2", output=LOGS)
    for ordinal, (start, end, pattern) in enumerate(
        [(1_930, 2_200, "OOM"), (2_220, 2_610, "kernel"), (2_630, 2_940, "ENOSPC"), (2_960, 3_400, "rotate")], 2
    ):
        failed = {"failure": "BUSINESS_REJECTION", "said": "kern.log: permission denied"} if pattern == "kernel" else {}
        run.tool(
            start,
            end,
            "query_logs",
            {"pattern": pattern},
            scope="executor.2",
            ordinal=ordinal,
            output={"matches": []},
            **failed,
        )
    run.model(3_420, 3_720, "executor", scope="executor.2", tokens=(1_140, 301), output="The disk was full.")
    run.transition(3_760, "executor", "evidence_guard")
    run.guard(3_800, 4_118, "evidence_repair", scope="evidence_guard.3")
    run.transition(4_120, "evidence_guard", "executor", "REPAIR")
    run.refuse(4_171, "query_logs", resource="tool:query_logs", used=5, limit=5, scope="executor.4")
    run.charge(run_bytes=48_200)
    return run.end(4_172, "BUDGET_EXHAUSTED", cancel="BUDGET_EXHAUSTED")


def success_run() -> FakeRun:
    """Answered, judged and found useful."""
    run = FakeRun(
        "s-42", "run-019ad3d7", "And is db-4 about to do the same?", dict(LIMITS), started_us=START_US + 95_000_000
    )
    run.start(agent="triage", agent_version="1.4", actor="on-call", environment="staging")
    run.model(8, 130, "router", scope="intent_router", tokens=(96, 12), output="CHAT_GRAPH")
    run.transition(150, None, "planner")
    run.model(160, 840, "planner", scope="planner.1", output="1. disk on db-4")
    run.transition(850, "planner", "executor")
    run.tool(
        860,
        1_210,
        "query_metrics",
        {"what": "disk", "host": "db-4"},
        scope="executor.2",
        output={"mount": "/var", "used_percent": 61, "free_bytes": 41_200_000_000},
    )
    run.tool(
        870,
        1_640,
        "open_ticket",
        {"title": "Watch /var on db-4"},
        scope="executor.2",
        effect="write",
        output={"ticket": "INC-4712"},
    )
    run.transition(1_650, "executor", "evidence_guard")
    run.guard(1_660, 1_672, "evidence_guard", scope="evidence_guard.3")
    run.transition(1_680, "evidence_guard", "composer")
    run.model(1_690, 2_480, "composer", scope="composer.4", tokens=(1_420, 96), output="No.")
    run.charge(run_bytes=9_800)
    run.evaluation = {
        "rules": {"verdict": "PASS", "usage": {"cited_results": 2}, "rationale": "It cites its evidence."}
    }
    run.feedback = {"useful": True, "comment": "Exactly what I needed.", "recorded_us": START_US + 160_000_000}
    return run.end(
        2_500,
        "SUCCESS",
        "ANSWERED",
        answer="No. /var on db-4 is 61% full (41 GB free) and grows by about 2 GB a day, so it has roughly three "
        "weeks.\n\nI opened INC-4712 so that somebody looks at it before then.",
    )


def running_run() -> FakeRun:
    """In the middle of two tool calls."""
    run = FakeRun("s-43", "run-live", "Which service restarts most often?", dict(LIMITS))
    run.start(agent="triage", agent_version="1.4")
    run.model(20, 400, "router", scope="intent_router", tokens=(90, 10))
    run.transition(420, None, "executor")
    run.tool(450, 900, "query_metrics", {"what": "restarts"}, scope="executor.1", output={"restarts": 7})
    run.tool(910, None, "query_logs", {"pattern": "restart"}, scope="executor.1")
    run.charge(run_bytes=300)
    return run


def degraded_run() -> FakeRun:
    """No evidence after a repair: a safe answer from the fallback, with one call's tokens unknown."""
    run = FakeRun("s-44", "run-fallback", "Why is the moon so bright tonight?", dict(LIMITS))
    run.start(agent="triage", agent_version="1.4")
    run.transition(20, None, "planner")
    run.model(30, 300, "planner", scope="planner.1", tokens=None, output="1. logs")
    run.transition(320, "planner", "executor")
    run.tool(330, 420, "query_logs", {"pattern": "moon"}, scope="executor.2", output={"matches": []})
    run.transition(430, "executor", "evidence_guard")
    run.guard(440, 460, "evidence_guard", scope="evidence_guard.3", failure="NO_EVIDENCE")
    run.transition(470, "evidence_guard", "executor", "REPAIR")
    run.tool(480, 520, "query_logs", {"pattern": "bright"}, scope="executor.4", output={"matches": []})
    run.transition(530, "executor", "evidence_guard")
    run.guard(540, 550, "evidence_guard", scope="evidence_guard.5", failure="NO_EVIDENCE")
    run.transition(560, "evidence_guard", "fallback", "FALLBACK")
    return run.end(580, "SUCCESS", "FALLBACK", degraded=True, answer="I found no evidence for this in the logs.")


PRICED = {
    "model_calls": 12,
    "tool_calls": 20,
    "observe:tool:query_logs": 2,
    "tool_default": 6,
    "observe:repeated_calls": 2,
    "input_tokens": 20_000,
    "output_tokens": 4_000,
    "total_tokens": 24_000,
    "cost_micros": 50_000,
    "run_bytes": 512_000,
}


def astray_run() -> FakeRun:
    """Answered, but on the way: nested scopes of which one was exhausted, a denial, hidden requests, a slow stream."""
    run = FakeRun(
        "s-45", "run-astray", "Which deploy broke checkout, and can it be undone?", dict(PRICED), timeout_us=30_000_000
    )
    run.start(agent="triage", agent_version="1.5", actor="on-call", currency="USD", price_table="2026-11")
    run.transition(20, None, "investigate")
    run.open_scope(
        40, "s1", "deploys", scope="investigate.1", timeout_ms=4_000, model_calls=4, tool_calls=6, cost_micros=20_000
    )
    within = "investigate.1/scope/deploys/1/1"
    run.model(60, 900, "planner", scope=within, scope_id="s1", tokens=(900, 120), cost=2_940, hidden=2)
    for ordinal, (start, end, pattern) in enumerate([(920, 1_300, "deploy"), (930, 1_420, "rollback")], 1):
        run.tool(
            start, end, "query_logs", {"pattern": pattern}, scope=within, scope_id="s1", ordinal=ordinal, output=LOGS
        )
    run.open_scope(1_440, "s2", "second look", scope=within, parent="s1", model_calls=1, observe__output_tokens=80)
    deeper = f"{within}/scope/second look/1/1"
    run.model(1_460, 2_100, "critic", scope=deeper, scope_id="s2", tokens=(700, 96), cost=2_540)
    run.exhaust_scope(2_120, "s2", resource="model_calls", used=1, limit=1, name="critic", path=deeper)
    run.close_scope(2_130, "s2")
    passes = [("tool:query_logs", 2)]
    run.tool(
        2_150,
        2_500,
        "query_logs",
        {"pattern": "deploy"},
        scope=within,
        scope_id="s1",
        ordinal=3,
        output=LOGS,
        passes=passes,
    )
    run.close_scope(2_520, "s1")
    run.decide(2_560, "rollback", scope="investigate.1")
    run.tool(
        2_600, 3_100, "query_metrics", {"what": "errors"}, scope="investigate.1", failure="TIMEOUT", timeout_ms=500
    )
    run.transition(3_120, "investigate", "composer")
    reserve = {"input_tokens": 2_000, "output_tokens": 600, "total_tokens": 2_600, "cost_micros": 12_000}
    run.model(
        3_150,
        5_900,
        "composer",
        scope="composer.2",
        tokens=(1_610, 402),
        cost=9_330,
        reserve=reserve,
        first_ms=640,
        chunks=61,
        output="It was 4711.",
        timeout_ms=10_000,
    )
    run.charge(run_bytes=61_300)
    return run.end(5_920, "SUCCESS", "ANSWERED", answer="Deploy 4711 broke checkout. A rollback needs a person.")


def priced_run() -> FakeRun:
    """In the middle of a stream whose tokens and cost are reserved, with one reply that nobody priced."""
    run = FakeRun("s-45", "run-priced", "What changed since yesterday?", dict(PRICED))
    run.start(agent="triage", agent_version="1.5", currency="EUR", price_table="2026-11", cost_unknown_count=1)
    run.model(30, 700, "router", tokens=(300, 20), cost=660)
    run.model(720, 900, "summary", tokens=None, model="local-1")
    reserve = {"input_tokens": 6_000, "output_tokens": 1_500, "total_tokens": 7_500, "cost_micros": 18_000}
    run.open_scope(905, "s1", "writer", timeout_ms=8_000, output_tokens=2_000)
    run.model(910, None, "composer", scope="scope/writer/1/1", scope_id="s1", reserve=reserve, timeout_ms=6_000)
    run.charge(run_bytes=800)
    return run


def overpriced_run() -> FakeRun:
    """Ended by its limit on cost."""
    run = FakeRun("s-45", "run-overpriced", "Summarize the whole archive", dict(PRICED))
    run.start(agent="triage", agent_version="1.5", currency="USD", price_table="2026-11")
    run.model(30, 4_000, "reader", tokens=(9_000, 900), cost=40_500)
    run.refuse(4_010, "reader", resource="cost_micros", used=40_500, limit=50_000, kind="model", amount=12_000)
    return run.end(4_012, "BUDGET_EXHAUSTED", cancel="BUDGET_EXHAUSTED")


SCRIPT = "<script>window.pwned = 1</script>"
HOSTILE = [
    SCRIPT,
    '"><img src=x onerror="window.pwned = 2">',
    "{{7*7}} {% raw %} ${7*7}",
    "[click](javascript:window.pwned=3) javascript:window.pwned=3",
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \r\b\x00 bell\x07",
    "invoice \u202efdp.exe\u202c and \u2066isolated\u2069 zero\u200bwidth \U000e0041\U000e0042 tags",
    "</textarea></title></style></pre></svg><svg onload=window.pwned=4>",
    "' onmouseover='window.pwned=5' x='",
]


def hostile_run() -> FakeRun:
    """Every text of it is an attack; one output is a single line of 5 MB."""
    run = FakeRun("s-666", "run-hostile", " ".join(HOSTILE), dict(LIMITS))
    run.limits["tool:<b>x</b>"] = 3
    run.start(agent=SCRIPT, agent_version="<i>", actor="' onload='x", environment='"><b>', labels={"<u>": "</u>"})
    run.transition(10, None, "<script>n</script>")
    for index, text in enumerate(HOSTILE):
        run.tool(
            20 + index * 40,
            50 + index * 40,
            f"<b>{index}</b>",
            {"text": text, text: [text]},
            scope="%3Cscript%3E.1",
            ordinal=index + 1,
            output=text,
            call_id="call_0",
        )
    run.tool(400, 450, "big_line", {"size": 5_000_000}, scope="executor.2", output="x\u202e" * 1_250_000)
    run.tool(450, 480, "failing", {}, scope="executor.2", failure="UNKNOWN", said=f"{SCRIPT}\n{HOSTILE[4]}")
    run.model(480, 500, "<em>m</em>", scope="executor.2", output=" ".join(HOSTILE), model="<model>")
    run.transition(505, "<script>n</script>", "'\"></svg>")
    run.evaluation = {SCRIPT: {"verdict": SCRIPT, "usage": {SCRIPT: 1}, "rationale": " ".join(HOSTILE)}}
    run.feedback = {"useful": False, "comment": " ".join(HOSTILE)}
    return run.end(510, "FAILED", "UNHANDLED", answer=" ".join(HOSTILE), error=" ".join(HOSTILE))


def all_runs() -> list[FakeRun]:
    ordinary = [budget_run(), success_run(), running_run(), degraded_run(), hostile_run()]
    return [*ordinary, astray_run(), priced_run(), overpriced_run()]
