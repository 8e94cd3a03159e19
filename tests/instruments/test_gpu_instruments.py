"""What the kernel's log, nvidia-smi and DCGM say of GPUs; worded as their documents and sources word it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from allaboard.analysis.resources.xid_errors import XID_ERRORS, explain_xid
from allaboard.contracts import LogReader
from allaboard.diagnosis import instruments
from allaboard.diagnosis.instruments import (
    dcgm_report,
    gpu_kernel_log,
    nccl_devices,
    nvidia_smi_xml,
)
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import Hardware, Weight, normalise_bus
from allaboard.formats.dumps.plain_xml import read_xml
from allaboard.plugins import Plugin, plugins
from allaboard.rules.engine.catalogue import load_catalogue

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"
READERS = [p for p in plugins(instruments, "READER", LogReader) if isinstance(p, Plugin)]


def exhibit(text: str, host: str = "") -> Exhibit:
    return Exhibit(name="a.log", data=text.encode(), host=host)


def hardware(testimony: Testimony | None) -> Hardware:
    assert testimony is not None
    return testimony.hardware


XID_LINES = {
    "[12345.678901] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
    "bus.": ("", "0000:3b:00", 79, 0, ""),
    "Jan  2 03:04:05 node7 kernel: NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked "
    "for remapping, reset gpu to activate.": ("node7", "0000:10:1c", 63, 1896, ""),
    "NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6)": (
        "", "0009:01:00", 149, 0, ""
    ),
    "NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000": ("", "0000:01:00", 31, 0, ""),
    "NVRM: Xid (PCI:0000:3b:00): 13, pid=4711, name=python3, Graphics SM Warp Exception on (GPC 0)": (
        "", "0000:3b:00", 13, 4711, "python3"
    ),
    "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.": ("", "0000:29:00", 79, 0, ""),
    "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: (PCI ID: 10de:2901) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands.": ("", "0000:18:00", 79, 0, ""),
}  # fmt: skip


@pytest.mark.parametrize("text", XID_LINES)
def test_an_xid_is_read_in_the_words_of_all_drivers(text: str) -> None:
    (event,) = hardware(gpu_kernel_log.read_log(exhibit(f"before\n{text}\nafter\n"))).events
    seen = (event.host, event.bus, event.number, event.pid, event.process)
    assert seen == XID_LINES[text] and event.place.line == 2


def test_a_gpu_that_fell_off_is_one_event_though_the_driver_writes_two_lines() -> None:
    text = (
        "NVRM: Xid (PCI:0000:29:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"
        "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.\n"
    )
    (event,) = hardware(gpu_kernel_log.read_log(exhibit(text))).events
    assert event.number == 79 and event.place.line == 1


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15",
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: The NVIDIA GPU invalid-bdf.0\nNVRM: fallen off the bus and is not responding",
        "see the Xid catalogue for Xid (PCI:0000:3b:00): 79",
    ],
)
def test_ordinary_lines_of_the_driver_are_no_errors(text: str) -> None:
    assert gpu_kernel_log.read_log(exhibit(text)) is None


def test_every_row_of_the_catalogue_can_be_said() -> None:
    for number, error in XID_ERRORS.items():
        assert explain_xid(number) is error
        assert error.meaning.split()[0] in (
            "could", "corrected", "did", "dropped", "has", "met", "needs", "received", "reported", "stopped",
            "was",
        ), number  # fmt: skip
        assert error.fix and "{" not in error.fix.replace("{bus}", "")


@pytest.mark.parametrize(
    ("address", "bus"),
    [
        ("00000000:3B:00.0", "0000:3b:00"),
        ("PCI:0000:3b:00", "0000:3b:00"),
        ("3b:00.0", "0000:3b:00"),
        ("00000009:01:00.0", "0009:01:00"),
    ],
)
def test_an_address_is_the_same_however_it_is_written(address: str, bus: str) -> None:
    assert normalise_bus(address) == bus


def test_the_rank_on_a_gpu_with_an_xid_is_named_by_its_pid() -> None:
    diagnosis = diagnose_paths([SAMPLES / "gpu_xid"], load_catalogue())
    found = {f.rule: f for f in diagnosis.findings}
    assert set(found) == {"HW001", "HW002"}
    # The page fault of another program on another GPU is not told.
    assert [f.rule for f in diagnosis.findings].count("HW001") == 1
    assert [w.rank for w in found["HW001"].who] == [w.rank for w in found["HW002"].who] == [1]
    assert "(Xid 94)" in found["HW001"].summary


def smi(gpu: str, head: str = '<?xml version="1.0" ?>\n') -> Exhibit:
    return exhibit(f'{head}<nvidia_smi_log><gpu id="00000000:3B:00.0">{gpu}</gpu></nvidia_smi_log>')


TROUBLES = {
    "<gpu_recovery_action>Reset</gpu_recovery_action>": ("asks for recovery: Reset", Weight.FAILURE),
    "<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>": (
        "remapping a faulty row", Weight.FAILURE
    ),
    "<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>": (
        "waits to be retired", Weight.WARNING
    ),
    "<temperature><gpu_temp>GPU is lost</gpu_temp></temperature>": ("does not answer", Weight.FAILURE),
    "<ecc_errors><volatile><double_bit><device_memory>3</device_memory></double_bit></volatile>"
    "</ecc_errors>": (
        "double_bit device_memory 3", Weight.WARNING
    ),
    "<ecc_errors><volatile><dram_uncorrectable>3</dram_uncorrectable></volatile></ecc_errors>": (
        "dram_uncorrectable 3", Weight.WARNING
    ),
    "<clocks_throttle_reasons><clocks_throttle_reason_hw_thermal_slowdown>Active"
    "</clocks_throttle_reason_hw_thermal_slowdown></clocks_throttle_reasons>": (
        "so hot", Weight.WARNING
    ),
}  # fmt: skip


@pytest.mark.parametrize("gpu", TROUBLES)
def test_what_is_wrong_with_a_gpu_is_read_of_nvidia_smi(gpu: str) -> None:
    (reading,) = hardware(nvidia_smi_xml.read_log(smi(gpu))).gpus
    (trouble,) = reading.troubles
    what, weight = TROUBLES[gpu]
    assert what in trouble.text and trouble.weight is weight


@pytest.mark.parametrize(
    "gpu",
    [
        "<gpu_recovery_action>None</gpu_recovery_action>",
        "<gpu_recovery_action>N/A</gpu_recovery_action>",
        "<gpu_reset_status><reset_required>No</reset_required></gpu_reset_status>",
        "<remapped_rows>N/A</remapped_rows>",
        "<ecc_errors><volatile><dram_uncorrectable>N/A</dram_uncorrectable></volatile></ecc_errors>",
        "<ecc_errors><volatile><dram_correctable>7</dram_correctable></volatile></ecc_errors>",
        "<ecc_errors><aggregate><dram_uncorrectable>7</dram_uncorrectable></aggregate></ecc_errors>",
        "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
        "<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap></clocks_event_reasons>",
    ],
)
def test_what_an_ordinary_gpu_shows_is_no_trouble(gpu: str) -> None:
    (reading,) = hardware(nvidia_smi_xml.read_log(smi(gpu))).gpus
    assert reading.troubles == ()


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    "<nvidia_smi_log><gpu><uuid>&b;</uuid></gpu></nvidia_smi_log>"
)
OUTSIDE = (
    '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    "<nvidia_smi_log><gpu><uuid>&x;</uuid></gpu></nvidia_smi_log>"
)


@pytest.mark.parametrize(
    "text", [BOMB, OUTSIDE, "<nvidia_smi_log><gpu>", "<nvidia_smi_log>" + "<a>" * 200]
)
def test_hostile_and_torn_xml_becomes_a_note(text: str) -> None:
    testimony = nvidia_smi_xml.read_log(exhibit(text))
    assert testimony is not None and testimony.notes and not testimony.hardware
    with pytest.raises(ValueError, match=r".+"):
        read_xml(text.encode())


HEALTH_JSON = {
    "header": ["Health Monitor Report"],
    "body": {
        "Overall Health": {"value": "Failure"},
        "GPU": {
            "children": {
                "3": {
                    "value": "Failure",
                    "children": {
                        "Errors": {
                            "children": {
                                "NVLINK system": {
                                    "value": "Failure",
                                    "overflow": ["link 4", "is down"],
                                }
                            }
                        }
                    },
                }
            }
        },
    },
}
DIAG_JSON = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Hardware",
                "tests": [
                    {
                        "name": "memory",
                        "results": [
                            {"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
                            {
                                "entity_group": "GPU",
                                "entity_id": 1,
                                "status": "Fail",
                                "warnings": [{"warning": "A DBE occurred.", "error_id": 2}],
                            },
                        ],
                    }
                ],
            }
        ]
    }
}
OLD_JSON = {
    "DCGM GPU Diagnostic": {
        "test_categories": [
            {
                "category": "Integration",
                "tests": [{"name": "PCIe", "results": [
                    {"gpu_id": "2", "status": "Fail", "warnings": "Host to device is slow"}]}],
            }
        ]
    }
}  # fmt: skip
OLD_TABLE = (
    "| Diagnostic                | Result                                         |\n"
    "| DCGM Version              | 3.1.8                                          |\n"
    "| PCIe                      | Fail - GPU: 2                                  |\n"
    "| Warning                   | Host to device is slow                         |\n"
    "| Memory                    | Pass - All                                     |\n"
)
REPORTS = {
    json.dumps(HEALTH_JSON): ("dcgmi health", "GPU 3", "NVLINK system", "link 4 is down"),
    json.dumps(DIAG_JSON, indent=1): ("dcgmi diag", "GPU 1", "memory", "A DBE occurred."),
    json.dumps(OLD_JSON): ("dcgmi diag", "GPU 2", "PCIe", "Host to device is slow"),
    OLD_TABLE: ("dcgmi diag", "GPU 2", "PCIe", "Host to device is slow"),
    (SAMPLES / "gpu_health" / "diag.txt").read_text(): (
        "dcgmi diag", "GPU 1", "memory",
        "A DBE occurred, and the test could not finish. Run a field diagnostic on the GPU.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", REPORTS)
def test_a_failed_check_of_dcgm_is_read(text: str) -> None:
    (found,) = hardware(dcgm_report.read_log(exhibit(text))).checks
    assert (found.tool, found.entity, found.check, found.trouble.text) == REPORTS[text]
    assert found.trouble.weight is Weight.FAILURE


def test_every_device_of_a_health_report_is_read() -> None:
    text = (SAMPLES / "gpu_health" / "health.txt").read_text()
    found = hardware(dcgm_report.read_log(exhibit(text))).checks
    assert [(c.entity, c.check, c.trouble.weight) for c in found] == [
        ("GPU 0", "Thermal system", Weight.WARNING),
        ("GPU 3", "NVLINK system", Weight.FAILURE),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "| Health Monitor Report   |\n| Overall Health            | Healthy        |\n",
        "| Diagnostic  | Result |\n| DCGM Version | 4.2.3 |\n| software | Pass |\n|  | GPU0: Pass |\n",
        json.dumps(
            {"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "a", "results": []}]}]}}
        ),
    ],
)
def test_a_good_report_is_known_and_says_nothing(text: str) -> None:
    assert not hardware(dcgm_report.read_log(exhibit(text)))


@pytest.mark.parametrize("reader", READERS, ids=lambda p: p.stem)
def test_no_damage_to_an_instruments_output_makes_a_reader_fail(reader: Plugin[LogReader]) -> None:
    material = [
        f.read_bytes()
        for folder in ("gpu_xid", "gpu_health")
        for f in sorted((SAMPLES / folder).iterdir())
    ] + [t.encode() for t in (*REPORTS, *XID_LINES)]
    dice = random.Random(7)
    for data in material:
        for _ in range(12):
            begin, end = sorted(dice.choices(range(len(data) + 1), k=2))
            damaged = data[:begin] + dice.randbytes(dice.randrange(4)) + data[end:]
            reader.value.read(Exhibit(name="a", data=damaged))


NCCL_LINES = """node7:188:585 [0] NCCL INFO Using network IB
node7:188:585 [0] NCCL INFO ncclCommInitRankConfig comm 0x5d50 rank 8 nranks 16 cudaDev 0 nvmlDev 0 busId 101d0 commId 0xb079 - Init START
node7:189:586 [1] NCCL INFO [Rank 1] ncclCommInitRank comm 0x5d51 rank 9 nranks 16 cudaDev 1 nvmlDev 1 busId 3b000 commId 0xb079 - Init START
node7:189:586 [1] NCCL INFO ncclCommInitRank comm 0x5d52 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 3b000 commId 0xb080 - Init START
comm 0x5d53 rank 3 nranks 16 cudaDev 3 busId 86000
"""  # noqa: E501


def test_nccl_says_which_gpu_is_whose() -> None:
    devices = hardware(nccl_devices.read_log(exhibit(NCCL_LINES))).devices
    assert [(d.rank, d.bus, d.host, d.pid) for d in devices] == [
        (8, "0000:10:1d", "node7", 188),
        (9, "0000:3b:00", "node7", 189),
    ]
    assert devices[1].place.line == 3
    assert nccl_devices.read_log(exhibit("a busId of nobody")) is None


def test_an_xid_beside_such_a_log_names_the_rank(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(NCCL_LINES)
    (tmp_path / "dmesg.log").write_text(
        "Jan  2 03:04:05 node7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', "
        "name=<unknown>, GPU has fallen off the bus.\n"
    )
    findings = diagnose_paths([tmp_path], load_catalogue()).findings
    (finding,) = [f for f in findings if f.rule == "HW001"]
    assert [w.rank for w in finding.who] == [9]
    assert any("busId 3b000" in e.observed for e in finding.evidence)
