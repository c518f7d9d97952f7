"""Builds `stream_pipe.v` and simulates it with `cocotb_nic.py`. Needs cocotb 2 and Icarus Verilog, or SIM=verilator.

With `--parser`, it builds `stream_parser.sv` with the package that `uet generate` writes, and simulates that with
`parser_nic.py`. `--bug BUG_SYN` or `--bug BUG_CONTROL` builds a deliberate fault into it. UET names a built program.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cocotb_tools.runner import get_runner

HERE = Path(__file__).parent

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parser", action="store_true")
    parser.add_argument("--bug", action="append", default=[])
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    simulator = os.environ.get("SIM", "icarus")
    options = ["--timing"] if simulator == "verilator" else ["-g2012"]
    build = Path(os.environ.get("BUILD_DIR", Path(tempfile.gettempdir()) / "uet_stream_pipe"))
    sources, module, defines = [HERE / "stream_pipe.v"], "cocotb_nic", dict.fromkeys(arguments.bug, 1)
    if arguments.parser:
        build.mkdir(parents=True, exist_ok=True)
        package = build / "uet_pkg.sv"
        command = [os.environ.get("UET", "uet"), "generate", "--language", "systemverilog", "-o", str(package)]
        subprocess.run(command, check=True)
        sources, module = [package, *sources, HERE / "stream_parser.sv"], "parser_nic"
        defines["RECEIVE"] = "uet_parser"
    runner = get_runner(simulator)
    runner.build(
        sources=sources, hdl_toplevel="stream_pipe", build_dir=build, build_args=options, timescale=("1ns", "1ps"),
        always=True, defines=defines,
    )
    runner.test(hdl_toplevel="stream_pipe", test_module=module, build_dir=build, test_dir=build)
