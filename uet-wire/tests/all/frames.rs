//! Frames between two fixed ends, as bytes.

use uet_wire::FrameBuilder;

pub(crate) fn v4(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ipv4([10, 0, 0, 1], [10, 0, 1, 12])
}

pub(crate) fn v6(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ipv6([0xfd00, 0, 0, 0, 0, 0, 0, 1], [0xfd00, 0, 0, 0, 0, 0, 0, 2])
}

pub(crate) fn eth(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

pub(crate) fn bytes(frame: &FrameBuilder<'_>) -> Vec<u8> {
    let mut buffer = vec![0xa5; frame.len() + 10];
    let length = frame.emit(&mut buffer).unwrap();
    assert_eq!(length, frame.len());
    assert_eq!(buffer[length..], [0xa5; 10], "nothing is written behind the frame");
    buffer.truncate(length);
    buffer
}
