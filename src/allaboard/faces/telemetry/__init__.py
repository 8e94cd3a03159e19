"""A run in OpenTelemetry: metrics, findings as log records, rounds as spans. Needs the extra `otel`."""
