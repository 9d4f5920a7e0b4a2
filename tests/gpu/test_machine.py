"""What NVML tells of a real GPU: for the first line of the workbench, and beside what was timed."""

from __future__ import annotations

from cudal1_core.referee import conditions

from cudal1_tui import machine


def test_the_first_line_gets_name_use_memory_and_heat() -> None:
    read = machine.gpu_reader(0)
    assert read is not None
    sample = read()
    assert sample is not None
    assert sample.gpu
    assert sample.use is not None
    assert 0 <= sample.use <= 100
    assert sample.used_gb is not None
    assert sample.total_gb is not None
    assert 0 <= sample.used_gb <= sample.total_gb
    assert sample.celsius is not None
    assert 10 < sample.celsius < 110


def test_clocks_and_reasons_to_slow_them_are_known() -> None:
    from cudal1_core.referee.turn import gpu_uuid  # with torch, which collecting tests never imports

    moment = conditions.read(gpu_uuid("cuda:0"))
    assert moment["gpu"]["sm_mhz"] > 100
    assert moment["gpu"]["memory_mhz"] > 100
    assert isinstance(moment["gpu"]["throttle_reasons"], int)
    assert not conditions.throttled({"gpu": {"throttle_reasons": 1}})  # idle
