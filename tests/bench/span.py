"""The reference of a boundary: one OpenTelemetry SDK span with eight attributes, in batches."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from harness import RunContext
from tests.bench.workload import echo


class Dropping(SpanExporter):
    """Exports nothing: what is left is the cost of the span alone."""

    exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.exported += len(spans)
        return SpanExportResult.SUCCESS


class Serializing(Dropping):
    """Does with every span what each real OTLP exporter does before it sends: writes it as protobuf."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return super().export(spans)


class Spans:
    """Work in spans that say of a tool call what most would say."""

    def __init__(self, exporter: Dropping) -> None:
        self._exporter = exporter
        self._provider = TracerProvider(resource=Resource.create({"service.name": "bench"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("bench")
        self._opened = 0

    async def around_echo(self, run: RunContext, numbers: range) -> None:
        """The workload of so many boundaries, each call in a span instead, until all spans are exported."""
        for number in numbers:
            attributes: dict[str, str | int] = {
                "session.id": run.session_id,
                "run.id": run.run_id,
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "echo",
                "gen_ai.tool.call.id": "call_0",
                "gen_ai.tool.call.arguments": f'{{"number":{number}}}',
                "attempt": 1,
                "limit": 1_000,
            }
            with self._tracer.start_as_current_span("execute_tool echo", attributes=attributes):
                await echo(run, number=number)
        self._opened += len(numbers)
        self._provider.force_flush()
        assert self._exporter.exported == self._opened, "a full queue dropped spans"

    def close(self) -> None:
        self._provider.shutdown()
