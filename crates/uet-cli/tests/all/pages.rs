//! Tests of the website in a real browser. `./test pages` runs them: they need Chromium.

use crate::common::uet;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs `uet site`; returns the folder and the error output.
fn site(name: &str, vectors: &str) -> (PathBuf, String) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut uet = Command::new(env!("CARGO_BIN_EXE_uet"));
    let made = uet.arg("site").arg(&directory).args(["--vectors", vectors]).output().expect("uet runs");
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{said}");
    (directory, said)
}

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");

/// Returns the command of a browser without windows.
fn browser() -> Command {
    let name = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
        .expect("Chromium is installed");
    let mut browser = Command::new(name);
    browser.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    browser
}

/// Returns the page after all scripts have run.
fn browse(page: &Path, anchor: &str) -> String {
    let seen = browser()
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("file://{}{anchor}", page.display()))
        .output()
        .expect("the browser runs");
    String::from_utf8(seen.stdout).expect("UTF-8")
}

/// Copies a page and appends a script.
fn with_script(page: &Path, script: &str) -> PathBuf {
    let copy = page.with_extension("tried.html");
    let text = fs::read_to_string(page).expect("a page");
    fs::write(&copy, appended(&text, script)).expect("written");
    copy
}

/// Appends a script to the text of a page. The policy of the page lets it run and report.
fn appended(page: &str, script: &str) -> String {
    let digest = STANDARD.encode(Sha256::digest(script));
    let allowed = format!("connect-src http://127.0.0.1:*; script-src 'sha256-{digest}' ");
    page.replace("script-src ", &allowed).replace("</html>", &format!("<script>{script}</script></html>"))
}

#[test]
fn site_offers_the_files_of_other_languages() {
    let (site, _) = site("languages-site", VECTORS);
    let text = |name: &str| fs::read_to_string(site.join(name)).expect(name);
    let index = text("index.html");
    for (file, command) in [
        ("uet.h", &["generate", "--language", "c"][..]),
        ("uet.ksy", &["generate", "--language", "kaitai"]),
        ("uet_pkg.sv", &["generate", "--language", "systemverilog"]),
        ("uet.p4", &["generate", "--language", "p4"]),
        ("uet.lua", &["wireshark"]),
        ("uet.py", &["scapy"]),
    ] {
        assert_eq!(text(file), uet(command).out, "{file}");
        assert!(index.contains(&format!("<a href={file} download>")), "{file}: {index}");
    }
}

#[test]
#[ignore = "needs Chromium: ./test pages"]
fn bytes_and_fields_of_a_vector_are_linked() {
    let page = site("site-vectors", VECTORS).0.join("vectors.html");
    // Byte 42 is the first of the PDS header: type and next header.
    let hover = r##"
        const lit = () => [...document.querySelectorAll("tr.lit td:first-child")].map((cell) => cell.textContent);
        const cells = document.querySelectorAll(".bytes span");
        cells[42].dispatchEvent(new Event("mouseenter"));
        const fields = lit();
        cells[42].dispatchEvent(new Event("mouseleave"));
        const row = [...document.querySelectorAll("#vector tr")].find((row) => row.cells[0].textContent === "pds.cack_psn");
        row.dispatchEvent(new Event("mouseenter"));
        const bytes = [...document.querySelectorAll(".bytes .lit")].map((cell) => cell.textContent);
        document.title = `${fields.join(" ")} / ${bytes.join(" ")}`;
    "##;
    let seen = browse(&with_script(&page, hover), "#sequences/01-plain/2");
    assert!(seen.contains("<h2>sequences/01-plain/2</h2>"), "{}", &seen[..500]);
    assert!(seen.contains("ACK PSN 333 CACK 333"));
    assert!(seen.contains("<title>pds.type pds.next_hdr / 00 00 01 4d</title>"), "{}", &seen[..500]);
}

/// Returns a script that types these words.
fn type_in(id: &str, words: &str) -> String {
    format!(
        "document.getElementById('{id}').value = '{words}';
         document.getElementById('{id}').dispatchEvent(new Event('input'));"
    )
}

#[test]
#[ignore = "needs Chromium: ./test pages"]
fn a_list_is_narrowed_by_words() {
    let (site, _) = site("site-lists", VECTORS);
    let seen = browse(&with_script(&site.join("requirements.html"), &type_in("filter", "pds-syn-001")), "");
    assert!(seen.contains(">1 of "), "one requirement is left");
    assert!(seen.contains("<tr id=\"PDS-SYN-001\"><td>"), "which is shown");
    assert!(seen.contains("<tr id=\"PDS-SYN-002\" hidden"), "and others are not");
    let seen = browse(
        &with_script(&site.join("rules.html"), &type_in("filter", "window/above psn_oor")),
        "#window/above",
    );
    assert!(
        seen.contains("<section id=\"window/above\"><h3>") && seen.contains("<details open"),
        "its timeline is open"
    );
    assert!(seen.contains("<section id=\"ack/mark\" hidden"), "other rules are hidden");
    let seen = browse(&with_script(&site.join("vectors.html"), &type_in("find", "xyzzy")), "");
    assert!(seen.contains(">0 of "));
}

#[test]
fn without_vectors_the_page_says_so() {
    let (directory, said) = site("site-without", "no-such-folder");
    assert!(said.contains("the site has no vectors: no-such-folder"), "{said}");
    for link in [
        "headers.html",
        "codes.html",
        "vectors.html",
        "requirements.html",
        "rules.html",
        "page.js",
        "page.css",
    ] {
        assert!(directory.join(link).exists(), "{link}");
    }
}

#[test]
#[ignore = "needs Chromium: ./test pages"]
fn the_report_of_a_run_is_one_page_that_filters() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).expect("a folder");
    let page = folder.join("report.html");
    let mut uet = Command::new(env!("CARGO_BIN_EXE_uet"));
    let run = uet.args(["run", "--id", "ack/requested", "--fault", "ignores-ar", "--html"]).arg(&page);
    assert_eq!(run.output().expect("uet runs").status.code(), Some(1));
    let seen = browse(&with_script(&page, &type_in("filter", "pds-ack-004 failed")), "");
    assert!(seen.contains("By public evidence"));
    assert!(seen.contains(">1 of "), "the one that failed is left");
    let shown = seen.lines().find(|line| line.contains("<tr id=\"PDS-ACK-004\"")).expect("its row");
    assert!(!shown.contains("hidden"), "{shown}");
    let hidden = seen.lines().find(|line| line.contains("<tr id=\"PDS-ACK-001\"")).expect("another row");
    assert!(hidden.contains("hidden"), "{hidden}");
    let click = r#"
        document.querySelector("[data-fields$='-1']").dispatchEvent(new Event("click"));
        document.querySelector(".chips [data-verdict=flaky]").click();
        const open = [...document.querySelectorAll(".fields[open] summary")].map((one) => one.textContent);
        document.title = `${open} / ${document.getElementById("failure-count").textContent}`;
    "#;
    let seen = browse(&with_script(&page, click), "");
    assert!(seen.contains("<title>packet 1, all fields / 0 of 1</title>"), "{}", &seen[..500]);
}

#[test]
#[ignore = "needs what tools/site writes: ./test pages"]
fn the_site_links_to_the_grid_of_implementations() {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/site");
    let text = |name: &str| fs::read_to_string(site.join(name)).expect("tools/site has written it");
    assert!(text("index.html").contains("<a href=interop.html>"));
    let grid = text("interop.html");
    assert!(grid.contains("class=grid") && grid.contains("built-in") && grid.contains("python"), "{grid}");
}

/// Copies the app that `tools/site` wrote, appends a script that acts as a user, and returns its report. The script has
/// `until`, which waits for a condition, and ends with `told`, which sends the report.
fn use_app(name: &str, script: &str) -> String {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/site");
    let app = fs::read_to_string(site.join("app.html")).expect("tools/site has written the app");
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    // The program runs in a worker, for which the virtual time of the browser does not wait.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let script = format!(
        "const until = async (condition) => {{ while (!condition()) await new Promise((done) => setTimeout(done, 50)); }};
         const told = (text) => fetch('http://127.0.0.1:{port}', {{ method: 'POST', mode: 'no-cors', body: text + '\\0' }});
         (async () => {{ await until(() => find('status').textContent === 'ready'); {script} }})()
             .catch((error) => told(`failed: ${{error}}`));"
    );
    fs::write(&page, appended(&app, &script)).expect("written");
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-profile"));
    let mut browser = browser()
        .arg("--remote-debugging-port=0")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser runs");
    let report = report(&listener);
    browser.kill().and_then(|()| browser.wait()).expect("the browser ends");
    report.expect("the script reports within five minutes")
}

/// Returns the body of the first request, up to its zero byte.
fn report(listener: &TcpListener) -> Option<String> {
    listener.set_nonblocking(true).ok()?;
    let end = Instant::now() + Duration::from_secs(300);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => return None,
        }
    };
    stream.set_nonblocking(false).ok()?;
    let mut request = Vec::new();
    BufReader::new(&mut stream).read_until(0, &mut request).ok()?;
    let request = String::from_utf8_lossy(&request).into_owned();
    Some(request.split("\r\n\r\n").nth(1)?.trim_end_matches('\0').to_owned())
}

#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_app_reads_a_dropped_capture() {
    let told = use_app(
        "app-drop",
        "find('impairments').value = 'trim 64 request 2';
         await play();
         const data = new DataTransfer();
         data.items.add(new File([capture()], 'mine.pcap'));
         document.dispatchEvent(new DragEvent('drop', { dataTransfer: data }));
         await until(() => find('status').textContent.includes('judged over'));
         find('filter').value = 'nack';
         find('filter').oninput();
         document.querySelector('.row').click();
         await until(() => find('detail').querySelector('h2')?.textContent.startsWith('NACK'));
         const row = [...find('detail').querySelectorAll('tr')].find((row) => row.cells[0].textContent === 'pds.nack_code');
         const byte = [...find('detail').querySelectorAll('.bytes span')][31];
         const box = [...find('detail').querySelectorAll('.figure span')].find((box) => box.textContent === 'nack_psn');
         const lit = [row, byte, box].map((part) => {
             part.onmouseenter();
             const all = [...find('detail').querySelectorAll('.lit')].map((lit) => lit.cells?.[0].textContent ?? lit.textContent);
             part.onmouseleave();
             return all.join(' ');
         });
         told([find('status').textContent, find('count').textContent, row.cells[1].textContent, ...lit].join(' / '));",
    );
    assert_eq!(
        told,
        "mine.pcap: 12 packets, 1 context, 0 findings; 20 requirements judged over several packets \
         / 1 of 12 / TRIMMED (0x1) / nack_code 01 pds.nack_code / vendor_code 00 pds.vendor_code \
         / nack_psn 00 01 20 01 pds.nack_psn"
    );
}

/// Reads a capture of many small packets while a user looks around. `APP_MEGABYTES` sets its size; the test prints what
/// it measures.
#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_app_stays_responsive() {
    let size = std::env::var("APP_MEGABYTES").unwrap_or("60".into());
    let script = "const tasks = [];
         new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({ type: 'longtask' });
         const pause = () => new Promise((done) => setTimeout(done, 300));
         const type = (words) => {
             find('filter').value = words;
             find('filter').oninput();
         };
         find('bytes').value = 64;
         await play();
         // The first text of a page loads fonts.
         await open(capture(), 'small.pcap');
         const bytes = new Uint8Array(await capture().arrayBuffer());
         const many = new Blob(Array(1000).fill(bytes.slice(24)));
         const copies = Math.ceil(MEGABYTES * 1e6 / many.size);
         const begin = performance.now(), since = () => performance.now() - begin;
         const long = () => tasks.filter(({ startTime }) => startTime > begin).map(({ duration }) => duration);
         open(new Blob([bytes.slice(0, 24), ...Array(copies).fill(many)]), 'large.pcap');
         await until(() => document.querySelector('.row'));
         const first = since();
         type('ack');
         await until(() => state.packets.length > 2000);
         select(2);
         await until(() => find('detail').querySelector('h2')?.textContent === state.packets[1].text);
         const looked = state.summary === null;
         await until(() => find('status').textContent.includes('judged over'));
         const all = since(), busy = long().reduce((sum, one) => sum + one, 0) / all;
         const scanned = () => state.scanned === state.packets.length;
         await until(scanned);
         type('rud req psn 10.0.0.1');
         await until(scanned);
         for (const tab of ['findings', 'contexts', 'packets']) {
             show(tab);
             await pause();
         }
         type('');
         await pause();
         const longest = Math.max(0, ...long()), heap = performance.memory.usedJSHeapSize;
         const [begun, ended, percent, megabytes] = [first / 1000, all / 1000, busy * 100, heap / 1e6].map((one) => one.toFixed(1));
         told(`${state.packets.length} packets; first rows after ${begun} s, all after ${ended} s; details while reading: ${looked}; ` +
             `heap ${megabytes} MB; tasks above 50 ms take ${percent} % of the time of reading; the longest, ${longest} ms` +
             `/${longest <= 200 && busy <= 0.25}`);"
        .replace("MEGABYTES", &size);
    // On a busy machine, a task takes longer than its work.
    let responsive = (0..3).any(|_| {
        let told = use_app("app-large", &script);
        eprintln!("{size} MB: {told}");
        assert!(told.contains("details while reading: true"), "{told}");
        told.ends_with("/true")
    });
    assert!(responsive, "the page is blocked");
}

#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_app_builds_a_packet() {
    let told = use_app(
        "app-build",
        "const choose = (name) => [...find('pds').options].find((option) => option.textContent === name).value;
         find('pds').value = choose('acknowledgment');
         find('pds').onchange();
         document.querySelector('[data-name=\"pds.cack_psn\"]').value = '73731';
         await build();
         told(find('built').textContent);",
    );
    assert!(told.starts_with("ACK PSN 73731 CACK 73731"), "{told}");
    assert!(told.contains("380000000001200300000000"), "{told}");
}

#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_app_copies_a_packet_as_hex_json_and_rust() {
    let told = use_app(
        "app-copy",
        "document.querySelector('[data-name=\"pds.psn\"]').value = '73731';
         await build();
         const copies = [];
         navigator.clipboard.writeText = (text) => copies.push(text);
         document.querySelectorAll('[data-copy]').forEach((button) => button.click());
         told(copies.join('\\n///\\n'));",
    );
    let [hex, json, rust] = told.split("\n///\n").collect::<Vec<_>>().try_into().expect("three texts");
    assert_eq!(hex, "100000000001200300000000");
    assert!(json.contains("\"pds.psn\":73731"), "{json}");
    // `crates/uet-cli/web/tests/copied.rs` compiles such texts.
    assert!(rust.contains("let pds = RequestRepr {") && rust.contains("psn: Psn(73731),"), "{rust}");
}

#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_app_plays_the_model() {
    let told = use_app(
        "app-model",
        "await play();
         const first = find('stage').children.length;
         find('step').click();
         const second = find('stage').children.length;
         find('record').click();
         await until(() => find('status').textContent.startsWith('the played packets: '));
         find('all').click();
         told([first, second, find('status').textContent, find('stage').textContent].join(' / '));",
    );
    assert!(told.starts_with("2 / 3 / the played packets: "), "{told}");
    assert!(told.contains(" 0 findings"), "{told}");
    assert!(told.contains("the operation has completed: 16384 bytes"), "{told}");
    assert!(told.contains("drop 2"), "{told}");
}

#[test]
#[ignore = "needs Chromium and the app: ./test pages"]
fn the_model_shows_trimmed_packets_as_trimmed() {
    let told = use_app(
        "app-trimmed",
        "find('impairments').value = 'trim 64 request 2; trim-last-hop 64 request 3';
         await play();
         find('all').click();
         const shown = (rows) => [...rows].map((row) => row.textContent).filter((text) => text.includes('trimmed')).join(' ');
         const stage = shown(find('stage').querySelectorAll('.arrow'));
         find('record').click();
         await until(() => find('status').textContent.startsWith('the played packets: '));
         told([stage, shown(find('ladder').querySelectorAll('.arrow')), find('status').textContent].join(' / '));",
    );
    let [stage, ladder, status] = told.split(" / ").collect::<Vec<_>>().try_into().expect("three texts");
    assert!(stage.contains(", trimmed in payload by 4096 B (trim 64 request 2)"), "{stage}");
    assert!(stage.contains(", trimmed at the last hop in payload by 4096 B"), "{stage}");
    assert_eq!(ladder.matches(", trimmed in payload by 4096 B").count(), 2, "{ladder}");
    assert!(status.contains(" 0 findings"), "{status}");
}
