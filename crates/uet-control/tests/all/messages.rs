//! Properties on which devices that read line by line rely.

use uet_control::{Answer, Completion, Done, ErrorCode, Event, Op, PostKind, Request, Reset, Status};

#[test]
fn a_line_that_is_not_a_request_gets_an_answer_that_says_why() {
    let refuse = |line: &str| Request::refuse(line, &Request::parse(line).unwrap_err());
    let code = |answer: &Answer| answer.error.as_ref().unwrap().code;

    let unknown = refuse(r#"{"id":3,"op":"fly"}"#);
    assert_eq!((unknown.id, code(&unknown)), (3, ErrorCode::Unsupported));
    let incomplete = refuse(r#"{"id":4,"op":"post","kind":"write"}"#);
    assert_eq!((incomplete.id, code(&incomplete)), (4, ErrorCode::BadRequest));
    assert!(incomplete.error.unwrap().message.contains("peer"), "names what is missing");
    assert_eq!(code(&refuse("{")), ErrorCode::BadRequest);
    assert_eq!(code(&refuse(r#"{"id":5}"#)), ErrorCode::BadRequest);
}

#[test]
fn error_names_the_key_of_a_wrong_type() {
    for (line, key) in [
        (r#"{"op":1}"#, "`id`"),
        (r#"{"id":1}"#, "`op`"),
        (r#"{"id":1,"op":1}"#, "`op`"),
        (r#"{"id":1,"op":["reset"]}"#, "`op`"),
        (r#"{"id":-1,"op":"reset"}"#, "`id`"),
        (r#"{"id":"1","op":"reset"}"#, "`id`"),
    ] {
        let error = Request::parse(line).expect_err(line).to_string();
        assert!(error.contains(key), "{line}: {error}");
    }
}

#[test]
fn what_is_left_out_has_its_documented_value() {
    let Op::Post(post) = Request::parse(r#"{"id":1,"op":"post","kind":"tsend","peer":2}"#).unwrap().op else {
        panic!()
    };
    assert_eq!((post.kind, post.length, post.class, post.remote.absolute), (PostKind::Tsend, 0, 0, false));
    let Op::ExposeRegion(region) =
        Request::parse(r#"{"id":1,"op":"expose_region","length":8,"key":5,"more":[]}"#).unwrap().op
    else {
        panic!()
    };
    assert_eq!(
        region.permissions.len(),
        3,
        "everything is permitted; keys that are not known are passed over"
    );
}

#[test]
fn lines_read_back_as_what_was_written() {
    let request = Request { id: 9, op: Reset {}.into() };
    assert_eq!(request.to_line(), r#"{"id":9,"op":"reset"}"#);
    assert_eq!(Request::parse(&request.to_line()).unwrap(), request);
    let done = Answer::ok(9, &Done {});
    assert_eq!(done.to_line(), r#"{"id":9,"ok":true}"#);
    assert_eq!(done.into_result::<Reset>().unwrap(), Done {});
    let event = Event::Completion(Completion {
        operation: 4,
        status: Status::Refused,
        length: 0,
        return_code: Some("BAD_MKEY".into()),
        header_data: None,
        data: None,
        message: String::new(),
    });
    let line =
        r#"{"event":"completion","operation":4,"status":"refused","length":0,"return_code":"BAD_MKEY"}"#;
    assert_eq!(event.to_line(), line);
    assert_eq!(serde_json::from_str::<Event>(line).unwrap(), event);
}
