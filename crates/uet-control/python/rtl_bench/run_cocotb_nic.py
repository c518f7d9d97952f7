"""Builds `stream_pipe.v` and simulates it with `cocotb_nic.py`. Needs cocotb 2 and Icarus Verilog, or SIM=verilator."""

import os
import sys
import tempfile
from pathlib import Path

from cocotb_tools.runner import get_runner

HERE = Path(__file__).parent

if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    simulator = os.environ.get("SIM", "icarus")
    arguments = ["--timing"] if simulator == "verilator" else []
    build = Path(os.environ.get("BUILD_DIR", Path(tempfile.gettempdir()) / "uet_stream_pipe"))
    runner = get_runner(simulator)
    runner.build(
        sources=[HERE / "stream_pipe.v"], hdl_toplevel="stream_pipe", build_dir=build, build_args=arguments,
        timescale=("1ns", "1ps"),
    )
    runner.test(hdl_toplevel="stream_pipe", test_module="cocotb_nic", build_dir=build, test_dir=build)
