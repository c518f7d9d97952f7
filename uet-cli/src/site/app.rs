//! The app: the program of `web/` in WebAssembly, with its page, in one file that opens without a server.

use super::html::Pages;
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
    let body = format!(
        "<style>\n{}</style>\n{}<script type=text/plain id=program>{program}</script>\n\
         <script type=text/plain id=worker>\n{}</script>\n<script>\n{}</script>\n",
        include_str!("page.css"),
        include_str!("app/app.html"),
        include_str!("app/worker.js"),
        include_str!("app/app.js"),
    );
    Ok(Pages { app: true }.page("Look into a capture", "app", &body))
}
