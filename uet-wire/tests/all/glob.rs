//! A glob import shadows none of the crates that features connect, so a feature breaks no code of its user.

#[allow(unused_imports, reason = "only what it shadows counts")]
use uet_wire::*;

#[test]
fn crates_keep_their_names() {
    use nom::Parser;
    let first = nom::number::complete::u8::<_, nom::error::Error<&[u8]>>.parse(&[7, 8][..]);
    assert_eq!(first, Ok((&[8][..], 7)));
    assert!(bytes::Bytes::new().is_empty());
    let _ = proptest::bool::ANY;
    fn written<T: serde::Serialize>(_: T) {}
    written(std::vec![1]);
}
