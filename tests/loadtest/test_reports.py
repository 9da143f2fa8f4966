"""The load tester's reports, read by tools that are not ours: HdrHistogram's Python reader and an XML parser."""

import json
import subprocess
import threading
import xml.etree.ElementTree as ElementTree
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from harness.process import binary

RATE = 100
SECONDS = 3


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    out = tmp_path_factory.mktemp("reports")
    command = [binary("switchboard-loadtest"), "run", "--url", f"http://127.0.0.1:{server.server_port}/"]
    command += [f"--rate={RATE}", "--warmup=1s", f"--duration={SECONDS}s", "--lag-max=60s", "--out", str(out)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    finally:
        server.shutdown()
        server.server_close()
    return out


def _log(path: Path) -> tuple[HdrHistogram, list[HdrHistogram]]:
    """The sum of all untagged intervals, and the tagged ones."""
    total, tagged = HdrHistogram(1000, 3_600_000_000_000, 3), []
    reader = HistogramLogReader(str(path), HdrHistogram(1000, 3_600_000_000_000, 3))
    while (interval := reader.get_next_interval_histogram()) is not None:
        if interval.get_tag() is None:
            total.add(interval)
        else:
            tagged.append(interval)
    return total, tagged


def test_the_interval_log_adds_up_to_the_reported_latencies(reports: Path) -> None:
    total, warmup = _log(reports / "latency.hlog")
    report = json.loads((reports / "report.json").read_text())
    assert total.get_total_count() == report["answers"] == RATE * SECONDS
    assert {interval.get_tag() for interval in warmup} == {"warmup"}
    for percentile, name in [(50, "p50"), (90, "p90"), (99, "p99"), (100, "max")]:
        seen_us = total.get_value_at_percentile(percentile) / 1000
        assert seen_us == pytest.approx(report["latency_us"][name], rel=0.002), name


def test_the_percentile_file_has_the_form_of_hdrhistograms_own(reports: Path) -> None:
    lines = (reports / "latency.hgrm").read_text().splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    rows = [line.split() for line in lines[2:] if line and not line.startswith("#")]
    assert int(rows[-1][2]) == RATE * SECONDS
    assert float(rows[-1][1]) == 1.0


def test_every_plot_is_well_formed_and_stands_alone(reports: Path) -> None:
    plots = sorted(reports.glob("*.svg"))
    assert {"percentiles.svg", "latency.svg", "throughput.svg"} <= {plot.name for plot in plots}
    for plot in plots:
        root = ElementTree.parse(plot).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find("{http://www.w3.org/2000/svg}title").text
        assert "href" not in plot.read_text()
