//! The app: the program of `crates/uet-cli/web/` in WebAssembly, with its page, in one file that opens without a server.

use super::html::{Pages, policy};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Returns the page with the program inside.
pub fn app(program: &[u8]) -> io::Result<String> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(program)?;
    let program = STANDARD.encode(packed.finish()?);
    let script = concat!("\n", include_str!("app/app.js"));
    let body = format!(
        "{}<script type=text/plain id=program>{program}</script>\n<script type=text/plain id=worker>\n{}</script>\n",
        include_str!("app/app.html"),
        include_str!("app/worker.js"),
    );
    // The script starts the program in workers, which it makes from the text of this page.
    let policy = policy(script, " 'wasm-unsafe-eval' blob:", "; worker-src blob:");
    let head = format!("{policy}<style>\n{}</style>\n", include_str!("page.css"));
    let end = format!("<script>{script}</script>\n");
    Ok(Pages { app: true }.page_with(&head, &end, "Look into a capture", "app", &body))
}
