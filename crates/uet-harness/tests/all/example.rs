//! Runs the example `one_group`, as a lab would.

#[path = "../../examples/one_group.rs"]
#[allow(dead_code)] // the tests call `test_group` instead of `main`
mod one_group;

fn test_group(group: &str, address: Option<&str>) -> (u8, String) {
    let mut out = Vec::new();
    let code = one_group::test_group(group, address, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn prints_a_verdict_per_rule() {
    let (code, out) = test_group("write", None);
    assert_eq!(code, 0, "{out}");
    let verdicts: Vec<&str> = out.lines().collect();
    let [rules @ .., total] = &verdicts[..] else { panic!("{out}") };
    assert!(rules.len() > 5 && rules.iter().all(|line| line.starts_with("pass         write/")), "{out}");
    assert!(total.ends_with(&format!("{0} of {0} pass", rules.len())), "{total}");
}

#[test]
fn exits_with_3_if_nothing_passed() {
    assert_eq!(test_group("no-such-group", None).0, 3);
}

#[cfg(target_os = "linux")]
#[test]
fn reports_an_unreachable_device() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = one_group::test_group("write", Some(&closed.to_string()), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("cannot reach the control channel"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn tests_a_device_that_a_command_starts() {
    let device = concat!(
        "exec:python3 ",
        env!("CARGO_MANIFEST_DIR"),
        "/../uet-control/python/example_device/device.py"
    );
    let (_, out) = test_group("establish", Some(device));
    assert!(out.lines().any(|line| line.starts_with("pass         establish/")), "{out}");
}
