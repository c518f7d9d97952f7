//! The comments by which a capture of the suite tells its origin.

use core::net::IpAddr;

/// The origin of a capture of the suite, which its comment states. The suite breaks requirements on purpose, so findings
/// about its packets say nothing about a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instance; `None` for a capture of several.
    pub instance: Option<String>,
    /// Addresses of the device. All other packets are the suite's.
    pub device: Vec<IpAddr>,
}

impl Origin {
    const BEGIN: &str = "instance ";
    const MARK: &str = "captured by the uet conformance suite, which breaks requirements on purpose";

    const SELECTION: &str = "a selection of packets, by uet decode";

    /// Adds to the comment of a capture that it holds only some of the packets.
    ///
    /// ```
    /// use uet_observe::passive::Origin;
    ///
    /// assert!(Origin::is_selection(&Origin::selection("a lab")));
    /// assert!(!Origin::is_selection("a lab"));
    /// ```
    pub fn selection(comment: &str) -> String {
        match comment {
            "" => Self::SELECTION.to_owned(),
            comment => format!("{comment}; {}", Self::SELECTION),
        }
    }

    /// Returns whether the comment of a capture says that it holds only some of the packets.
    pub fn is_selection(comment: &str) -> bool {
        comment.split("; ").any(|part| part == Self::SELECTION)
    }

    /// Returns the comment of the capture.
    ///
    /// ```
    /// use uet_observe::passive::Origin;
    ///
    /// let origin = Origin { instance: Some("ack/retx[mode=rud]".into()), device: vec![[10, 0, 0, 1].into()] };
    /// assert_eq!(Origin::parse(&origin.comment()), Some(origin));
    /// assert_eq!(Origin::parse("a lab"), None);
    /// ```
    pub fn comment(&self) -> String {
        let device: Vec<String> = self.device.iter().map(ToString::to_string).collect();
        let instance =
            self.instance.iter().map(|instance| format!("; instance {instance}")).collect::<String>();
        format!("{}{instance}; device {}", Self::MARK, device.join(" "))
    }

    /// Returns the comment on the first packet of an instance, in a capture of several.
    pub fn begin(instance: &str) -> String {
        format!("{}{instance}", Self::BEGIN)
    }

    /// Reads the comment of a packet: the instance that begins with it.
    pub(super) fn begun(comment: &str) -> Option<&str> {
        comment.lines().next()?.strip_prefix(Self::BEGIN)
    }

    /// Reads the comment of a capture; `None` if it is not one of the suite.
    pub fn parse(comment: &str) -> Option<Self> {
        let mut parts = comment.split("; ");
        let mut origin = (parts.next()? == Self::MARK).then(Origin::default)?;
        for part in parts {
            if let Some(instance) = part.strip_prefix("instance ") {
                origin.instance = Some(instance.into());
            } else if let Some(device) = part.strip_prefix("device ") {
                origin.device = device.split(' ').filter_map(|address| address.parse().ok()).collect();
            }
        }
        Some(origin)
    }
}
