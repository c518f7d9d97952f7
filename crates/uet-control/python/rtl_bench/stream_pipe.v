// The smallest RTL that cocotb_nic.py can test: a register stage in each direction between the network (rx, tx) and the
// host (up, down). Each stream is byte-wide AXI: tdata, tvalid, tready, tlast. The clock comes from here, because a clock
// that Python drives costs more than the rest of the simulation.
`timescale 1ns / 1ps

// What receives: `stream_parser.sv` puts a parser here.
`ifndef RECEIVE
`define RECEIVE register_stage
`endif

module register_stage (
    input wire clk,
    input wire rst,
    input wire [7:0] in_tdata,
    input wire in_tvalid,
    input wire in_tlast,
    output wire in_tready,
    output reg [7:0] out_tdata,
    output reg out_tvalid,
    output reg out_tlast,
    input wire out_tready
);
    assign in_tready = !rst && (!out_tvalid || out_tready);
    always @(posedge clk) begin
        if (rst) out_tvalid <= 0;
        else if (in_tready) begin
            out_tdata <= in_tdata;
            out_tvalid <= in_tvalid;
            out_tlast <= in_tlast;
        end
    end
endmodule

module stream_pipe (
    input wire rst,
    input wire [7:0] rx_tdata,
    input wire rx_tvalid,
    input wire rx_tlast,
    output wire rx_tready,
    output wire [7:0] up_tdata,
    output wire up_tvalid,
    output wire up_tlast,
    input wire up_tready,
    input wire [7:0] down_tdata,
    input wire down_tvalid,
    input wire down_tlast,
    output wire down_tready,
    output wire [7:0] tx_tdata,
    output wire tx_tvalid,
    output wire tx_tlast,
    input wire tx_tready
);
    reg clk = 0;
    always #2 clk = !clk;

    `RECEIVE receive (
        .clk(clk), .rst(rst),
        .in_tdata(rx_tdata), .in_tvalid(rx_tvalid), .in_tlast(rx_tlast), .in_tready(rx_tready),
        .out_tdata(up_tdata), .out_tvalid(up_tvalid), .out_tlast(up_tlast), .out_tready(up_tready)
    );
    register_stage transmit (
        .clk(clk), .rst(rst),
        .in_tdata(down_tdata), .in_tvalid(down_tvalid), .in_tlast(down_tlast), .in_tready(down_tready),
        .out_tdata(tx_tdata), .out_tvalid(tx_tvalid), .out_tlast(tx_tlast), .out_tready(tx_tready)
    );
endmodule
