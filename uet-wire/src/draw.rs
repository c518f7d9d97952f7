//! Draws a header as a bit diagram with a legend, and prints the fields of a header.

use crate::layout::{Kind, Layout, Place, Values, When};
use core::fmt::{self, Display, Formatter};

/// Returns the figure of a header: 32 bits per line, and a legend of the fields. Lines with fields that share bits
/// appear once for each condition.
///
/// ```
/// println!("{}", uet_wire::draw(uet_wire::pds::Ack::LAYOUT));
/// ```
pub fn draw(layout: &'static Layout) -> Drawing {
    Drawing(layout)
}

/// Displays the figure of a header. See [`draw`].
#[derive(Clone, Copy, Debug)]
pub struct Drawing(&'static Layout);

const WORD: usize = 32;

impl Display for Drawing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layout = self.0;
        let bits = layout.bytes * 8;
        f.write_str(" 0                   1                   2                   3\n")?;
        f.write_str(" 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1\n")?;
        rule(f, bits.min(WORD))?;
        for start in (0..bits).step_by(WORD) {
            let end = bits.min(start + WORD);
            let conditions = || cells(layout, start, end).filter_map(|place| place.row.when);
            let drawn = conditions().enumerate().filter(|(index, when)| {
                // Draw each condition once. Skip conditions that include a narrower one.
                conditions().take(*index).all(|before| before != *when)
                    && conditions().all(|other| other == *when || !covers(when, &other))
            });
            for (_, when) in drawn.clone() {
                line(f, layout, start, end, Some(when))?;
            }
            if drawn.count() == 0 {
                line(f, layout, start, end, None)?;
            }
        }
        f.write_str("\n")?;
        for place in layout.fields() {
            write!(f, "{:30} {:9} {}", place.row.name, Range(place), place.row.doc)?;
            if place.row.kind == Kind::Int {
                f.write_str(", signed")?;
            }
            if let Some(when) = place.row.when {
                write!(f, "; when {}", layout.condition(&when))?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// Returns the rows to draw between two bits. For a field with named parts, returns the parts.
fn cells(layout: &'static Layout, start: usize, end: usize) -> impl Iterator<Item = Place> + Clone {
    layout.places().filter(move |place| {
        let has_parts = layout.places().any(|part| {
            part.row.when.is_none()
                && part.row.width() < place.row.width()
                && place.row.when.is_none()
                && part.lo() >= place.lo()
                && part.hi() <= place.hi()
        });
        !has_parts && place.lo() < end && place.hi() > start
    })
}

/// Returns true if the line for the condition `when` includes the row.
fn shown(place: &Place, when: Option<When>) -> bool {
    place.row.when.is_none_or(|own| when.is_some_and(|when| covers(&own, &when)))
}

/// Returns true if `wide` holds in every case in which `narrow` holds.
fn covers(wide: &When, narrow: &When) -> bool {
    wide.name == narrow.name && wide.values.or(narrow.values) == wide.values
}

fn line(
    f: &mut Formatter<'_>,
    layout: &'static Layout,
    start: usize,
    end: usize,
    when: Option<When>,
) -> fmt::Result {
    let mut bit = start;
    while bit < end {
        let cell = cells(layout, start, end)
            .find(|place| place.lo() <= bit && bit < place.hi() && shown(place, when));
        // The rows leave no gap.
        let until = cell.map_or(end, |place| place.hi().min(end));
        let label = match cell {
            Some(place) if place.lo() >= start => short(place.row.name),
            _ => "",
        };
        write!(f, "|{:^1$.1$}", label, 2 * (until - bit) - 1)?;
        bit = until;
    }
    match when {
        Some(when) => writeln!(f, "| {}", layout.condition(&when))?,
        None => f.write_str("|\n")?,
    }
    rule(f, end - start)
}

fn rule(f: &mut Formatter<'_>, bits: usize) -> fmt::Result {
    for _ in 0..bits {
        f.write_str("+-")?;
    }
    f.write_str("+\n")
}

/// Returns the canonical name without its layer.
fn short(name: &str) -> &str {
    match name {
        "-" => "",
        _ => name.rsplit('.').next().unwrap_or(name),
    }
}

struct Range(Place);

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Padding needs the length before the text, and this crate has no allocator to store the text.
        let digits = |n: usize| {
            if n < 10 {
                1
            } else if n < 100 {
                2
            } else {
                3
            }
        };
        let (lo, hi) = (self.0.lo(), self.0.hi());
        write!(f, "{lo}..{hi}")?;
        let pad = f.width().unwrap_or(0).saturating_sub(digits(lo) + 2 + digits(hi));
        (0..pad).try_for_each(|_| f.write_str(" "))
    }
}

impl Layout {
    /// Returns a condition of one of this header's rows as text: `pds.flags.syn = 1`.
    pub fn condition(&'static self, when: &When) -> DrawnCondition {
        DrawnCondition { when: *when, deciding: self.field(when.name) }
    }
}

/// Returns the shorter list: the values in the set, or the values outside it (`true`). `width` is the field's width in
/// bits.
pub(crate) fn listed(values: Values, width: usize) -> (Values, bool) {
    // No condition on a wide field holds for most of its values.
    let all = 1usize.checked_shl(width as u32).unwrap_or(usize::MAX);
    let negated = values.iter(width).count() > all / 2;
    (if negated { values.not() } else { values }, negated)
}

/// Displays a condition. See [`Layout::condition`].
#[derive(Clone, Copy, Debug)]
pub struct DrawnCondition {
    when: When,
    deciding: Option<Place>,
}

impl Display for DrawnCondition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(deciding) = self.deciding else { return f.write_str(self.when.name) };
        let width = deciding.row.width();
        let (listed, negated) = listed(self.when.values, width);
        let one = listed.iter(width).count() == 1;
        write!(
            f,
            "{} {} ",
            self.when.name,
            match (one, negated) {
                (true, false) => "=",
                (true, true) => "!=",
                (false, false) => "in",
                (false, true) => "not in",
            }
        )?;
        for (index, value) in listed.iter(width).enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match deciding.row.kind {
                Kind::Code(registry) => match registry.entry(value) {
                    Some(entry) => f.write_str(entry.name)?,
                    None => write!(f, "{value}")?,
                },
                _ => write!(f, "{value}")?,
            }
        }
        Ok(())
    }
}

impl Place {
    /// Displays a value of this field for people: code points by name, signed numbers with their sign, addresses in
    /// their usual form. Numbers of more than 32 bits are hexadecimal.
    pub fn display(&self, value: u128) -> impl Display + fmt::Debug {
        Shown { place: *self, value }
    }
}

#[derive(Clone, Copy)]
struct Shown {
    place: Place,
    value: u128,
}

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (value, width) = (self.value, self.place.row.width());
        match self.place.row.kind {
            Kind::Int => write!(f, "{}", (value << (128 - width)) as i128 >> (128 - width)),
            Kind::Code(registry) => match registry.entry(value as u8) {
                Some(entry) => f.write_str(entry.name),
                None => write!(f, "{value:#04x}"),
            },
            Kind::Address if width == 32 => write!(f, "{}", core::net::Ipv4Addr::from_bits(value as u32)),
            Kind::Address if width == 128 => write!(f, "{}", core::net::Ipv6Addr::from_bits(value)),
            Kind::Address => {
                let [_, _, mac @ ..] = (value as u64).to_be_bytes();
                mac.iter().enumerate().try_for_each(|(index, byte)| {
                    write!(f, "{}{byte:02x}", if index == 0 { "" } else { ":" })
                })
            }
            _ if width > 32 => write!(f, "{value:#0digits$x}", digits = 2 + width.div_ceil(4)),
            _ => write!(f, "{value}"),
        }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Displays the present fields of a header and its reserved bits that are not 0.
pub(crate) fn debug(
    f: &mut Formatter<'_>,
    name: &str,
    layout: &'static Layout,
    header: &[u8],
) -> fmt::Result {
    let mut fields = f.debug_struct(name);
    for (place, value) in layout.present(header) {
        if place.row.kind == Kind::Reserved {
            if value != 0 {
                fields.field("reserved", &format_args!("{:#x} at bit {}", value, place.lo()));
            }
        } else {
            fields.field(place.row.name, &place.display(value));
        }
    }
    fields.finish()
}
