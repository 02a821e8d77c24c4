"""Reads OpenMetrics from standard input as Prometheus' own client library does, and prints the trace of each exemplar."""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        if sample.exemplar:
            print(sample.name, sample.exemplar.labels["trace_id"])
