//! The website: headers, code points, vectors, requirements and rules as plain files that open without a server.

mod app;
pub(crate) mod html;
mod rules;
mod vectors;

use crate::generate::Language;
use clap::ValueEnum;
use html::{Escaped, Pages};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use uet_conformance::RULES;
use uet_conformance::coverage::{self, RequirementCoverage};
use uet_wire::Version;
use uet_wire::catalogue::{self, Requirement};
use uet_wire::layout::{self, Kind, Layout};
use uet_wire::registry::{self, Registry};

pub use app::app;
pub use vectors::Vectors;

/// Writes all files of the site into a folder, which is created if it is missing. `app` is the page of [`app`], `grid` that of
/// `uet interop`.
pub fn write(
    directory: &Path,
    vectors: &Vectors,
    app: Option<String>,
    grid: Option<String>,
) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let pages = Pages { app: app.is_some() };
    let mut files = vec![
        (
            "index.html",
            pages.page("Ultra Ethernet Transport", "index", &index(vectors, app.is_some(), grid.is_some())),
        ),
        ("headers.html", pages.page("Headers", "headers", &headers())),
        ("codes.html", pages.page("Code points", "codes", &codes())),
        ("vectors.html", pages.page("Vectors", "vectors", include_str!("vectors.html"))),
        ("requirements.html", pages.page("Requirements", "requirements", &requirements())),
        ("rules.html", pages.page("Rules", "rules", &rules::rules()?)),
        ("vectors.js", vectors.script()),
        ("page.js", include_str!("page.js").to_owned()),
        ("page.css", include_str!("page.css").to_owned()),
    ];
    let spec = Version::default().spec();
    files.extend(
        Language::value_variants().iter().map(|language| (language.file_name(), language.file(spec))),
    );
    files.push(("uet.lua", uet_wireshark::dissector(spec)));
    files.push(("uet.py", uet_scapy::layer(spec)));
    files.extend(app.map(|page| ("app.html", page)));
    files.extend(grid.map(|page| ("interop.html", page)));
    files.iter().try_for_each(|(name, text)| uet_packet_io::file::replace(&directory.join(name), text))
}

fn index(vectors: &Vectors, app: bool, grid: bool) -> String {
    let codes: usize = registry::ALL.iter().map(|registry| registry.entries.len()).sum();
    let mut text = String::from(
        "<p>Ultra Ethernet Transport (UET, specification 1.0.3) carries RDMA operations for AI and HPC over UDP/IP or \
         directly over IP. These pages show its packets and its rules. They are generated from the tables of a codec and \
         a conformance suite, by public sources: we have had no access to the specification.</p>\n",
    );
    if app {
        text += "<p class=go><a href=app.html>Look into a capture</a>: drop a file to see its packets, findings and \
                 contexts. Build packets, and watch two endpoints of the reference model. Nothing leaves your machine. \
                 The repository has captures to learn from in <code>captures/learn</code>, and \
                 <code>docs/walkthroughs.md</code> explains each.</p>\n";
    }
    if grid {
        text += "<p class=go><a href=interop.html>Implementations against each other</a>: which of them understand each \
                 other, on a clean network and on bad ones.</p>\n";
    }
    text += "<ul class=rooms>\n";
    for (file, what, count, about) in [
        ("headers.html", "headers", layout::ALL.len(), "each header as a figure, with its fields"),
        ("codes.html", "code points", codes, "types, opcodes, return codes, NACK codes"),
        (
            "vectors.html",
            "vectors",
            vectors.len(),
            "packets: point at a byte to see its fields, or at a field to see its bytes",
        ),
        (
            "requirements.html",
            "requirements",
            catalogue::ALL.len(),
            "requirements on an implementation, by public evidence, with reasons and the rules that check them",
        ),
        (
            "rules.html",
            "rules",
            RULES.iter().count(),
            "the rules of the conformance suite, each with its timeline",
        ),
    ] {
        text += &format!("<li><a href={file}><b>{count}</b> {what}</a>: {about}</li>\n");
    }
    text + "</ul>\n<p>Files to download, from the same tables: <a href=uet.h download>C, C++, eBPF</a>, \
            <a href=uet_pkg.sv download>SystemVerilog</a>, <a href=uet.p4 download>P4</a>, \
            <a href=uet.ksy download>Kaitai Struct</a>, <a href=uet.py download>Scapy</a>, \
            <a href=uet.lua download>Wireshark</a>. <code>docs/languages.md</code> shows how to use them.</p>\n"
}

fn headers() -> String {
    let mut text = String::from("<nav class=list>\n");
    for Layout { name, title, .. } in layout::ALL {
        text += &format!("<a href=\"#{name}\" title=\"{}\">{name}</a>\n", Escaped(title));
    }
    text += "</nav>\n";
    layout::ALL.iter().for_each(|layout| header(&mut text, layout));
    text
}

fn header(text: &mut String, layout: &'static Layout) {
    let Layout { name, title, bytes, .. } = layout;
    *text +=
        &format!("<section id={name}><h2>{} <small>{name}, {bytes} bytes</small></h2>\n", Escaped(title));
    // The figure without its legend, which the table below replaces.
    let drawing = uet_wire::draw(layout).to_string();
    let figure = drawing.split("\n\n").next().unwrap_or(&drawing);
    *text += &format!("<pre class=figure>{}</pre>\n", Escaped(figure));
    *text += "<table><tr><th>field<th>bit<th>width<th>meaning</tr>\n";
    for place in layout.places().filter(|place| place.row.kind != Kind::Reserved) {
        let row = place.row;
        let mut meaning = Escaped(row.doc).to_string();
        if let Some(when) = &row.when {
            let _ = write!(meaning, " <i>when {}</i>", Escaped(layout.condition(when)));
        }
        if let Kind::Code(registry) = row.kind {
            let _ = write!(meaning, " <a href=codes.html#{0}>{0}</a>", registry.name);
        }
        let (lo, width) = (place.lo(), row.width());
        *text += &format!("<tr><td><code>{}</code><td>{lo}<td>{width}<td>{meaning}</tr>\n", row.name);
    }
    *text += "</table></section>\n";
}

fn codes() -> String {
    let mut text = String::from("<nav class=list>\n");
    for Registry { name, .. } in registry::ALL {
        text += &format!("<a href=\"#{name}\">{name}</a>\n");
    }
    text += "</nav>\n";
    for Registry { name, width, entries, .. } in registry::ALL {
        text += &format!("<section id={name}><h2>{name} <small>{width} bits</small></h2>\n<table>\n");
        for entry in *entries {
            let meaning = Escaped(entry.doc);
            text +=
                &format!("<tr><td>0x{:02x}<td><code>{}</code><td>{meaning}</tr>\n", entry.code, entry.name);
        }
        text += "</table></section>\n";
    }
    text
}

fn requirements() -> String {
    let mut text = String::from(
        "<p>By public evidence: we have had no access to the specification. Each requirement comes from public sources; \
         questions that they leave open are not requirements.</p>\n\
         <p><input id=filter placeholder=\"filter: PDS-ACK, must, window ...\"> <span id=count></span></p>\n\
         <table id=rows><tr><th>id<th>level<th>section<th>requirement<th>reason<th>shown by</tr>\n",
    );
    for requirement in catalogue::ALL {
        let Requirement { id, level, section, sentence, .. } = requirement;
        let RequirementCoverage { rules, every_packet, unseen } = coverage::of(RULES, requirement);
        let link = |id: &&str| format!("<a href=\"rules.html#{id}\">{id}</a>");
        let mut shown: Vec<String> = rules.iter().map(link).collect();
        shown.extend(every_packet.then(|| "every packet".to_owned()));
        shown.extend(
            unseen.map(|reason| Escaped(format!("an external test cannot check it: {reason}")).to_string()),
        );
        text += &format!(
            "<tr id={id}><td><code>{id}</code><td>{}<td>{section}<td>{}<td class=reason>{}<td class=rules>{}</tr>\n",
            level.name(),
            Escaped(sentence),
            Escaped(requirement.rationale()),
            shown.join(", ")
        );
    }
    text + "</table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_registry_and_requirement_has_its_place() {
        let (headers, codes, requirements) = (headers(), codes(), requirements());
        assert!(layout::ALL.iter().all(|layout| headers.contains(&format!("<section id={}>", layout.name))));
        assert!(
            registry::ALL.iter().all(|registry| codes.contains(&format!("<section id={}>", registry.name)))
        );
        assert!(catalogue::ALL.iter().all(|one| requirements.contains(&format!("<tr id={}>", one.id))));
    }
}
