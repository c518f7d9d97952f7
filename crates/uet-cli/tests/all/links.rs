//! Every link in the documentation leads to a file of the repository, and every anchor to a heading.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page: its links, heading anchors, and code words.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: Vec<String>,
    code: Vec<String>,
}

fn page(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) if heading.is_some() => {
                heading.get_or_insert_default().push_str(&text);
            }
            Event::Code(text) => page.code.extend(text.split_whitespace().map(str::to_owned)),
            Event::End(TagEnd::Heading(_)) => page.anchors.extend(heading.take().map(|text| anchor(&text))),
            _ => {}
        }
    }
    page
}

/// Returns the anchor that common sites create for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Resolves `..`, since pages may name a file in several ways.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
        plain
    })
}

fn pages(directory: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("a page");
            found.insert(path, page(&text));
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let root = plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut all = BTreeMap::new();
    pages(&root, &mut all);
    let mut dead = Vec::new();
    let mut links = 0;
    for (path, page) in &all {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = match file {
                "" => path.clone(),
                _ => plain(&path.with_file_name("").join(file)),
            };
            let is_there = match anchor {
                "" => to.exists(),
                _ => all.get(&to).is_some_and(|page| page.anchors.iter().any(|one| one == anchor)),
            };
            if !is_there {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(links > 50, "{links} links seen");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let root = plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut all = BTreeMap::new();
    pages(&root, &mut all);
    // A path from the root of the repository starts with one of its folders.
    let is_path = |word: &str| {
        let folder = word.split_once('/').map(|(folder, _)| folder);
        let plain = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
        folder.is_some_and(|folder| !folder.is_empty() && folder != "target" && root.join(folder).is_dir())
            && word.chars().all(plain)
            // Placeholder names.
            && !["GROUP", "NAME", "TARGET"].iter().any(|any| word.contains(any))
    };
    let (mut named, mut missing) = (0, Vec::new());
    for (path, page) in &all {
        for word in page.code.iter().filter(|word| is_path(word)) {
            named += 1;
            if !root.join(word).exists() {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(named > 40, "{named} files named");
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

#[test]
fn links_and_anchors_are_read() {
    let page = page("# A `b` of C, d\n[x](y.md#z) ![p](q.png)\n");
    assert_eq!(page.anchors, ["a-b-of-c-d"]);
    assert_eq!(page.links, ["y.md#z", "q.png"]);
}
