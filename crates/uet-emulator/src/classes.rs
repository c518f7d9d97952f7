//! Traffic classes and their DSCPs in IP headers (section 3.6.4). The deployment chooses the DSCPs.

use core::str::FromStr;
use serde_json::{Value, json};
use uet_model::{Packet, Priority, TrimPoint};

/// The DSCPs of a traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// DSCP of requests.
    pub low: u8,
    /// DSCP of requests that a switch has trimmed.
    pub trimmed: u8,
    /// DSCP of requests trimmed at the last hop.
    pub trimmed_last_hop: u8,
    /// DSCP of acknowledgments and control packets.
    pub high: u8,
}

impl Class {
    fn of([low, trimmed, trimmed_last_hop, high]: [u8; 4]) -> Self {
        Class { low, trimmed, trimmed_last_hop, high }
    }

    fn dscps(&self) -> [u8; 4] {
        [self.low, self.trimmed, self.trimmed_last_hop, self.high]
    }
}

/// The traffic classes of a deployment, by number. As text and as JSON, each class has four DSCPs in the order of
/// [`Class`]: `10,12,14,8;18,20,22,16` and `[[10,12,14,8],[18,20,22,16]]`.
///
/// ```
/// use uet_emulator::classes::Classes;
/// use uet_model::{Packet, Priority, TrimPoint};
///
/// let classes = Classes::default();
/// let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let mut packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 1, 12], ack)?;
/// (packet.class, packet.priority) = (1, Priority::High);
/// let tos = classes.tos(&packet);
///
/// packet.priority = Priority::Low;
/// classes.read(&mut packet, tos);
/// assert_eq!(packet.priority, Priority::High);
///
/// classes.read(&mut packet, classes.0[1].trimmed_last_hop << 2);
/// assert_eq!(packet.trimmed, Some(TrimPoint::LastHop));
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Classes(pub Vec<Class>);

impl Default for Classes {
    /// Returns four classes. Each uses the three assured-forwarding values of its number and the class selector for
    /// high priority. This choice is ours: the specification leaves it to the deployment.
    fn default() -> Self {
        let class =
            |n: u8| Class { low: n * 8 + 2, trimmed: n * 8 + 4, trimmed_last_hop: n * 8 + 6, high: n * 8 };
        Classes((1..=4).map(class).collect())
    }
}

impl FromStr for Classes {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = |class: &str| class.split(',').map(|dscp| dscp.trim().parse().ok()).collect();
        let classes: Option<Vec<Vec<u8>>> = text.split(';').map(numbers).collect();
        classes.and_then(|classes| Classes::checked(&classes)).ok_or(WANTED)
    }
}

impl TryFrom<&Value> for Classes {
    type Error = &'static str;

    fn try_from(value: &Value) -> Result<Self, Self::Error> {
        let number = |value: &Value| value.as_u64().and_then(|dscp| u8::try_from(dscp).ok());
        let numbers = |class: &Value| class.as_array()?.iter().map(number).collect();
        let classes: Option<Vec<Vec<u8>>> =
            value.as_array().and_then(|classes| classes.iter().map(numbers).collect());
        classes.and_then(|classes| Classes::checked(&classes)).ok_or(WANTED)
    }
}

impl From<&Classes> for Value {
    fn from(classes: &Classes) -> Self {
        classes.0.iter().map(|class| json!(class.dscps())).collect()
    }
}

const WANTED: &str = "one to eight traffic classes, each with four DSCPs from 0 to 63 (low, trimmed, trimmed at the last hop, \
                      high), none of them twice";

/// ECN values of packets that may be marked, may not be marked, and are marked.
const CAPABLE: u8 = 2;
const NOT_CAPABLE: u8 = 0;
const MARKED: u8 = 3;

impl Classes {
    fn checked(classes: &[Vec<u8>]) -> Option<Self> {
        let classes: Option<Vec<Class>> =
            classes.iter().map(|class| class[..].try_into().ok().map(Class::of)).collect();
        let classes = Classes(classes?);
        // A DSCP identifies a class and a field of [`Class`].
        let mut seen = 0u64;
        let fresh = |dscp: u8| {
            let bit = 1u64.checked_shl(dscp.into())?;
            (seen & bit == 0).then(|| seen |= bit)
        };
        let distinct: Option<()> = classes.0.iter().flat_map(Class::dscps).map(fresh).collect();
        distinct.filter(|()| (1..=8).contains(&classes.0.len())).map(|()| classes)
    }

    /// Returns the DSCP of a packet; 0 for a class that is not configured.
    pub fn dscp(&self, packet: &Packet) -> u8 {
        let Some(class) = self.0.get(usize::from(packet.class)) else { return 0 };
        match (packet.trimmed, packet.priority) {
            (Some(TrimPoint::Fabric), _) | (None, Priority::Medium) => class.trimmed,
            (Some(TrimPoint::LastHop), _) => class.trimmed_last_hop,
            (None, Priority::Low) => class.low,
            (None, Priority::High) => class.high,
        }
    }

    /// Returns the ECN bits of a packet. Switches mark only packets with the `low` DSCP (section 3.6.17).
    pub fn ecn(packet: &Packet) -> u8 {
        match (packet.marked, packet.priority) {
            (true, _) => MARKED,
            (false, Priority::Low) => CAPABLE,
            (false, _) => NOT_CAPABLE,
        }
    }

    /// Returns DSCP and ECN as the byte of the IP header.
    pub fn tos(&self, packet: &Packet) -> u8 {
        self.dscp(packet) << 2 | Self::ecn(packet)
    }

    /// Returns the trim point that a switch signals with this DSCP, if any.
    pub fn trimmed(&self, dscp: u8) -> Option<TrimPoint> {
        self.place(dscp).and_then(|(_, (_, trimmed))| trimmed)
    }

    /// Sets the fields of a packet from the byte of its IP header. A DSCP that is not configured means class 0, low.
    pub fn read(&self, packet: &mut Packet, tos: u8) {
        packet.marked = tos & 3 == MARKED;
        let (class, (priority, trimmed)) = self.place(tos >> 2).unwrap_or_default();
        (packet.class, packet.priority, packet.trimmed) = (class, priority, trimmed);
    }

    fn place(&self, dscp: u8) -> Option<(u8, (Priority, Option<TrimPoint>))> {
        self.0.iter().zip(0u8..).find_map(|(class, number)| {
            let place = if dscp == class.low {
                (Priority::Low, None)
            } else if dscp == class.high {
                (Priority::High, None)
            } else if dscp == class.trimmed {
                (Priority::Medium, Some(TrimPoint::Fabric))
            } else if dscp == class.trimmed_last_hop {
                (Priority::Medium, Some(TrimPoint::LastHop))
            } else {
                return None;
            };
            Some((number, place))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn every_place_of_every_class_has_its_own_dscp() {
        let classes = Classes::default();
        let mut seen = std::collections::BTreeSet::new();
        let mut packet =
            Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], Bytes::from_static(&[0x30, 0, 0, 0])).unwrap();
        for class in 0..4 {
            for (priority, trimmed) in [
                (Priority::Low, None),
                (Priority::High, None),
                (Priority::Medium, Some(TrimPoint::Fabric)),
                (Priority::Medium, Some(TrimPoint::LastHop)),
            ] {
                (packet.class, packet.priority, packet.trimmed) = (class, priority, trimmed);
                let tos = classes.tos(&packet);
                assert_eq!(tos & 3, if priority == Priority::Low { 2 } else { 0 }, "what may be marked");
                assert!(seen.insert(tos >> 2), "{tos}");
                let mut back = packet.clone();
                (back.class, back.priority, back.trimmed) = (9, Priority::Low, None);
                classes.read(&mut back, tos);
                assert_eq!(back, packet);
            }
        }
    }

    #[test]
    fn unconfigured_dscp_means_class_0_low() {
        let classes = Classes::default();
        let mut packet =
            Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], Bytes::from_static(&[0x30, 0, 0, 0])).unwrap();
        packet.class = 200;
        assert_eq!(classes.dscp(&packet), 0);
        classes.read(&mut packet, 63 << 2 | 3);
        assert_eq!((packet.class, packet.priority, packet.marked), (0, Priority::Low, true));
    }

    #[test]
    fn classes_have_a_form_as_text_and_as_json() {
        let text = "46,34,36,48; 0,1,2,63";
        let classes: Classes = text.parse().unwrap();
        assert_eq!((classes.0[0].high, classes.0[1].high), (48, 63));
        assert_eq!(Value::from(&classes), json!([[46, 34, 36, 48], [0, 1, 2, 63]]));
        assert_eq!(Classes::try_from(&Value::from(&classes)), Ok(classes));
        for wrong in
            ["", "1,2,3", "1,2,3,64", "1,2,3,3", "1,2,3,4;5,6,7,1", "1,2,3,4,5", "1,2,3,300", "a,b,c,d"]
        {
            assert_eq!(wrong.parse::<Classes>(), Err(WANTED), "{wrong}");
        }
        let nine = (0..9).map(|n| format!("{},{},{},{}", n * 4, n * 4 + 1, n * 4 + 2, n * 4 + 3));
        assert_eq!(nine.collect::<Vec<_>>().join(";").parse::<Classes>(), Err(WANTED));
        for wrong in [json!(null), json!([]), json!([1, 2, 3, 4]), json!([[1, 2, 3, -4]]), json!([["1"]])] {
            assert_eq!(Classes::try_from(&wrong), Err(WANTED), "{wrong}");
        }
    }
}
