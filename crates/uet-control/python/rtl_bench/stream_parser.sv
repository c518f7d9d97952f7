// A parser for the receive direction of `stream_pipe.v`, which uses the package of `uet generate --language systemverilog`.
// parser_nic.py is its host.
//
// A frame of the network is a header of 8 bytes and UET. The host gets those 8 bytes, a descriptor, and the bytes after
// the PDS header. The descriptor of a request or a control packet has the fields that a target needs. That of any other
// packet is empty, and all its bytes follow. A packet that ends within the PDS header is dropped.
//
// BUG_SYN and BUG_CONTROL are deliberate faults, for docs/rtl.md.
`timescale 1ns / 1ps

module uet_parser (
    input logic clk,
    input logic rst,
    input logic [7:0] in_tdata,
    input logic in_tvalid,
    input logic in_tlast,
    output logic in_tready,
    output logic [7:0] out_tdata,
    output logic out_tvalid,
    output logic out_tlast,
    input logic out_tready
);
    import uet_pkg::*;

    localparam int FRAME_BYTES = 8;

    typedef struct packed {
        logic [7:0] kind;  // pds.type of a request or control packet, 0 for others
        logic [7:0] next;  // pds.next_hdr, or pds.ctl_type of a control packet
        logic retx;
        logic ar;
        logic syn;
        logic isrod;
        logic [3:0] zero;
        logic [15:0] clear_psn_offset;
        logic [31:0] psn;
        logic [15:0] spdcid;
        logic [15:0] dpdcid;
        logic [15:0] psn_offset;
        logic [31:0] payload;  // of a control packet
    } descriptor_t;

    localparam int DESCRIPTOR_BYTES = $bits(descriptor_t) / 8;

    typedef enum logic [1:0] { FRAME, HEADER, DESCRIPTOR, BODY } state_t;
    state_t state;
    // The header that comes, from its first byte on, and the bytes that it needs.
    header_t header;
    header_t known;
    int needed;
    // The bytes that have come of it, the last one at the low end, and their number.
    logic [8 * REQUEST_CC_BYTES - 9:0] bytes;
    int count;
    // The bytes to send before the body, the first one at the high end, and their number.
    logic [8 * (FRAME_BYTES + DESCRIPTOR_BYTES + 1) - 1:0] shift;
    int left;
    logic is_last;

    wire takes = in_tvalid && in_tready;
    wire gives = out_tvalid && out_tready;
    wire [8 * REQUEST_CC_BYTES - 1:0] joined = {bytes, in_tdata};

    // The body goes through as it comes. Everything else waits for its turn.
    assign in_tready = !rst && (state == FRAME || state == HEADER || state == BODY && out_tready);
    assign out_tvalid = state == DESCRIPTOR || state == BODY && in_tvalid;
    assign out_tdata = state == BODY ? in_tdata : shift[$bits(shift) - 1 -: 8];
    assign out_tlast = state == BODY ? in_tlast : is_last && left == 1;

    assign header = count == 0 ? first_header(in_tdata) : known;
`ifdef BUG_CONTROL
    assign needed = is_parsed(header) ? header == HEADER_CONTROL ? REQUEST_BYTES : header_bytes(header) : 1;
`else
    assign needed = is_parsed(header) ? header_bytes(header) : 1;
`endif

    function automatic logic is_parsed(header_t kind);
        return kind == HEADER_REQUEST || kind == HEADER_REQUEST_CC || kind == HEADER_CONTROL;
    endfunction

    function automatic descriptor_t of_request(request_t pds);
        descriptor_t out;
        out = '0;
        out.kind = {3'd0, pds.pds_type};
        out.next = {4'd0, pds.next_hdr};
        out.retx = pds.flags.retx;
        out.ar = pds.flags.ar;
        out.syn = pds.flags.syn;
        out.clear_psn_offset = pds.clear_psn_offset;
        out.psn = pds.psn;
        out.spdcid = pds.spdcid;
        if (request_has_dpdcid(pds)) out.dpdcid = pds.by_syn.dpdcid;
`ifdef BUG_SYN
        out.psn_offset = {12'd0, pds.by_syn.syn_1.pdc_info};
`else
        if (request_has_psn_offset(pds)) out.psn_offset = {4'd0, pds.by_syn.syn_1.psn_offset};
`endif
        return out;
    endfunction

    function automatic descriptor_t of_control(control_t pds);
        descriptor_t out;
        out = '0;
        out.kind = {3'd0, pds.pds_type};
        out.next = {4'd0, pds.ctl_type};
        out.retx = pds.flags.retx;
        out.ar = pds.flags.ar;
        out.syn = pds.flags.syn;
        out.isrod = pds.flags.isrod;
        out.clear_psn_offset = pds.probe_opaque;
        out.psn = pds.psn;
        out.spdcid = pds.spdcid;
        if (control_has_dpdcid(pds)) out.dpdcid = pds.by_syn.dpdcid;
        if (control_has_psn_offset(pds)) out.psn_offset = {4'd0, pds.by_syn.syn_1.psn_offset};
        out.payload = pds.payload;
        return out;
    endfunction

    // The header is complete with the byte that comes now.
    function automatic descriptor_t describe(header_t kind, logic [8 * REQUEST_CC_BYTES - 1:0] pds);
        request_t request;
        control_t control;
        control = pds[8 * CONTROL_BYTES - 1:0];
        request = pds[8 * REQUEST_BYTES - 1:0];
        // This one begins with the fields of a request.
        if (kind == HEADER_REQUEST_CC) request = pds[8 * REQUEST_CC_BYTES - 1 -: 8 * REQUEST_BYTES];
        case (kind)
            HEADER_REQUEST, HEADER_REQUEST_CC: return of_request(request);
            HEADER_CONTROL: return of_control(control);
            default: return '0;
        endcase
    endfunction

    always_ff @(posedge clk) begin
        if (rst) begin
            state <= FRAME;
            count <= 0;
        end else case (state)
            FRAME: if (takes) begin
                shift <= {shift[$bits(shift) - 9:0], in_tdata};
                count <= in_tlast || count == FRAME_BYTES - 1 ? 0 : count + 1;
                if (!in_tlast && count == FRAME_BYTES - 1) state <= HEADER;
            end
            HEADER: if (takes) begin
                bytes <= joined[8 * REQUEST_CC_BYTES - 9:0];
                count <= count + 1;
                known <= header;
                if (count + 1 == needed) begin
                    // The first byte of another packet follows its empty descriptor.
                    left <= FRAME_BYTES + DESCRIPTOR_BYTES + (is_parsed(header) ? 0 : 1);
                    shift <= {
                        shift[8 * FRAME_BYTES - 1:0], describe(header, joined), is_parsed(header) ? 8'd0 : in_tdata
                    };
                    is_last <= in_tlast;
                    state <= DESCRIPTOR;
                end else if (in_tlast) begin
                    count <= 0;
                    state <= FRAME;
                end
            end
            DESCRIPTOR: if (gives) begin
                shift <= shift << 8;
                left <= left - 1;
                if (left == 1) begin
                    count <= 0;
                    state <= is_last ? FRAME : BODY;
                end
            end
            BODY: if (takes && in_tlast) state <= FRAME;
        endcase
    end
endmodule
