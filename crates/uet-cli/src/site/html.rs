//! Common parts of all pages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::{self, Display};

/// Displays a text with its markup characters escaped.
pub(crate) struct Escaped<T>(pub(crate) T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.to_string().chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                _ => write!(f, "{char}")?,
            }
        }
        Ok(())
    }
}

/// Returns the policy of a page that is one file: it fetches nothing and runs only this script. `sources` are further
/// sources of scripts, and `more` are further directives.
pub(crate) fn policy(script: &str, sources: &str, more: &str) -> String {
    let digest = STANDARD.encode(Sha256::digest(script));
    format!(
        "<meta http-equiv=content-security-policy content=\"default-src 'none'; base-uri 'none'; form-action 'none'; \
         style-src 'unsafe-inline'; script-src 'sha256-{digest}'{sources}{more}\">\n"
    )
}

/// The pages of a site, which link to each other.
pub(super) struct Pages {
    /// True if the app is among them.
    pub(super) app: bool,
}

const PAGES: &[(&str, &str)] = &[
    ("index", "UET"),
    ("app", "look into a capture"),
    ("headers", "headers"),
    ("codes", "code points"),
    ("vectors", "vectors"),
    ("requirements", "requirements"),
    ("rules", "rules"),
];

impl Pages {
    /// Returns a whole page with the files that the pages share.
    pub(super) fn page(&self, title: &str, name: &str, body: &str) -> String {
        let script = "<script src=page.js></script>\n";
        self.page_with("<link rel=stylesheet href=page.css>\n", script, title, name, body)
    }

    /// Returns a whole page with these elements at its begin and at its end.
    pub(super) fn page_with(&self, head: &str, end: &str, title: &str, name: &str, body: &str) -> String {
        let mut links = String::new();
        for (to, what) in PAGES.iter().filter(|(to, _)| self.app || *to != "app") {
            let here = if *to == name { " class=here" } else { "" };
            links += &format!("<a href={to}.html{here}>{what}</a>\n");
        }
        format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta name=viewport content=\"width=device-width\">\n<title>{title}</title>\n\
             {head}<header>\n{links}</header>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
             {end}</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(Escaped("a<b> & \"c\"").to_string(), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
