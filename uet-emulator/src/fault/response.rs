//! Responses and completions.

use super::fields::Fields;
use super::tap::Tap;
use super::{Area, Fault};
use uet_model::Command;
use uet_wire::registry::ReturnCode;

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Response, taps }
}

pub(super) const FAULTS: &[Fault] = &[fault(
    "tells-no-errors",
    "What is refused is answered OK",
    &[Tap::Down(|middle, mut said| {
        if let Command::Respond(_, response) = &mut said {
            response.set("ses.return_code", ReturnCode::OK.code().into());
        }
        middle.pass(said);
    })],
)];
