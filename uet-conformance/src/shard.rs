use core::fmt;
use core::str::FromStr;

/// A part of the suite, so that several machines can share it. Each rule belongs to exactly one of the
/// `count` parts.
///
/// ```
/// use uet_conformance::Shard;
///
/// let shard: Shard = "2/8".parse()?;
/// assert_eq!(shard.to_string(), "2/8");
/// assert!("0/8".parse::<Shard>().is_err() && "9/8".parse::<Shard>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `count`.
    index: u32,
    count: u32,
}

impl Shard {
    /// All rules.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// Returns this part of the items.
    pub(crate) fn part<T>(self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        items.skip(self.index as usize - 1).step_by(self.count as usize)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Shard::WHOLE
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err("write 2/8 for the second of eight parts".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}
