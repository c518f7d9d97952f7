use crate::Psn;
use crate::header::header;
use crate::registry::{List, ResponseOpcode, ReturnCode};

header! {
    /// The first two bytes of every response.
    ///
    /// ```
    /// use uet_wire::registry::{List, ResponseOpcode, ReturnCode};
    /// use uet_wire::ses::ResponseHead;
    ///
    /// let (head, _) = ResponseHead::parse(&[0x41, 0x05])?;
    /// assert_eq!(head.list(), List::UET_OVERFLOW);
    /// assert_eq!(head.opcode(), ResponseOpcode::UET_RESPONSE);
    /// assert_eq!(head.return_code(), ReturnCode::NO_MATCH);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    ResponseHead[2] ResponseHeadMut ResponseHeadRepr, Ses "response_head" "start of a response" {
        "ses.list"                      0..  2  list: List, "which list a send matched";
        "ses.opcode"                    2..  8  opcode: ResponseOpcode, "what the response is";
        "ses.version"                   8.. 10  version: u8, "always 0";
        "ses.return_code"              10.. 16  return_code: ReturnCode, "how the request ended";
    }
}

header! {
    /// A response without data.
    ///
    /// ```
    /// use uet_wire::registry::{ResponseOpcode, ReturnCode};
    /// use uet_wire::ses::Response;
    ///
    /// let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK)
    ///     .message_id(1)
    ///     .job_id(101)
    ///     .modified_length(16_384)
    ///     .done()?;
    /// assert_eq!(response.bytes(), &[0x01, 0x01, 0, 1, 0, 0, 0, 101, 0, 0, 0x40, 0]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Response[12] ResponseMut ResponseRepr, Ses "response" "response" {
        "head"                          0.. 16  head: ResponseHead as ResponseHeadMut ResponseHeadRepr, "opcode and return code";
        "ses.message_id"               16.. 32  message_id: u16, "the message answered";
        "ses.ri_generation"            32.. 40  ri_generation: u8, "the current generation, with BAD_GENERATION";
        "ses.job_id"                   40.. 64  job_id: u32, "job";
        "ses.modified_length"          64.. 96  modified_length: u32, "bytes accepted";
    }
}

impl Response {
    /// Starts building a response.
    pub fn build(opcode: ResponseOpcode, code: ReturnCode) -> ResponseMut {
        Response::zeroed().edit().head(|head| head.opcode(opcode).return_code(code))
    }
}

header! {
    /// A response with the data of a read whose request had a standard header.
    ///
    /// A target sends it in a request of its own, on the return direction of the context. Data of a few bytes may also be in the
    /// ACK. A read that fails is answered by a [`Response`] with its return code.
    ///
    /// ```
    /// use uet_wire::ses::ResponseData;
    ///
    /// let data = ResponseData::build()
    ///     .response_message_id(9)
    ///     .job_id(101)
    ///     .read_request_message_id(1)
    ///     .payload_length(4096)
    ///     .modified_length(8192)
    ///     .message_offset(4096)
    ///     .done()?;
    /// assert_eq!(data.bytes(), &[2, 1, 0, 9, 0, 0, 0, 101, 0, 1, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x10, 0]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    ResponseData[20] ResponseDataMut ResponseDataRepr, Ses "response_data" "response with data" {
        "head"                          0.. 16  head: ResponseHead as ResponseHeadMut ResponseHeadRepr, "opcode and return code";
        "ses.response_message_id"      16.. 32  response_message_id: u16, "the target's own message";
        "-"                            32.. 40;
        "ses.job_id"                   40.. 64  job_id: u32, "job";
        "ses.read_request_message_id"  64.. 80  read_request_message_id: u16, "the read answered";
        "-"                            80.. 82;
        "ses.payload_length"           82.. 96  payload_length: u16, "bytes of data in this packet";
        "ses.modified_length"          96..128  modified_length: u32, "bytes of the whole read";
        "ses.message_offset"          128..160  message_offset: u32, "where in the message they start";
    }
}

impl ResponseData {
    /// Starts building a successful response with data.
    pub fn build() -> ResponseDataMut {
        ResponseData::zeroed()
            .edit()
            .head(|head| head.opcode(ResponseOpcode::UET_RESPONSE_W_DATA).return_code(ReturnCode::OK))
    }
}

header! {
    /// A response with the data of a read whose request had a small or medium header.
    ///
    /// ```
    /// use uet_wire::ses::ResponseDataSmall;
    ///
    /// let data = ResponseDataSmall::build().payload_length(8).job_id(101).original_request_psn(uet_wire::Psn(333)).done()?;
    /// assert_eq!(data.bytes(), &[2, 1, 0, 8, 0, 0, 0, 101, 0, 0, 1, 0x4d]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    ResponseDataSmall[12] ResponseDataSmallMut ResponseDataSmallRepr, Ses "response_data_small" "small response with data" {
        "head"                          0.. 16  head: ResponseHead as ResponseHeadMut ResponseHeadRepr, "opcode and return code";
        "-"                            16.. 18;
        "ses.payload_length"           18.. 32  payload_length: u16, "bytes of data in this packet";
        "-"                            32.. 40;
        "ses.job_id"                   40.. 64  job_id: u32, "job";
        "ses.original_request_psn"     64.. 96  original_request_psn: Psn, "the PSN of the request answered";
    }
}

impl ResponseDataSmall {
    /// Starts building a successful response with data.
    pub fn build() -> ResponseDataSmallMut {
        ResponseDataSmall::zeroed()
            .edit()
            .head(|head| head.opcode(ResponseOpcode::UET_RESPONSE_W_DATA).return_code(ReturnCode::OK))
    }
}
