//! Plots of an outcome, as SVG.

use super::{compare, table};
use plotters::coord::Shift;
use plotters::data::float::FloatPrettyPrinter;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::fmt::Display;
use std::io;
use uet_simulate::{FlowSample, Outcome, Scenario};

/// A line of a plot.
pub struct PlotLine {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in order.
    pub points: Vec<(f64, f64)>,
}

/// The quantity on an axis.
#[derive(Clone, Copy, Debug)]
pub enum Axis {
    /// The time, in microseconds. The axis begins at 0.
    Time,
    /// A share of this, at most 1.
    ShareOf(&'static str),
    /// This quantity, in its unit: `window, KB`.
    Of(&'static str),
}

impl Axis {
    fn label(self) -> String {
        match self {
            Axis::Time => "time, us".into(),
            Axis::ShareOf(whole) => format!("share of {whole}"),
            Axis::Of(quantity) => quantity.into(),
        }
    }
}

/// A plot: its title, axes, lines, and reference levels.
pub struct Plot<'a> {
    /// The title.
    pub about: &'a str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<PlotLine>,
    /// Reference levels, by name.
    pub levels: Vec<(String, f64)>,
}

/// Draws all plots that have data, by name.
pub fn all(scenario: &Scenario, outcome: &Outcome) -> io::Result<Vec<(&'static str, String)>> {
    let about = table::title(scenario);
    let bdp = scenario.plane_bdp() / 1e3;
    let flows = |of: &dyn Fn(&FlowSample) -> Option<f64>| flow_lines(outcome, of);
    let plots = [
        (
            "window",
            Plot {
                about: "window",
                x: Axis::Time,
                y: Axis::Of("window, KB"),
                lines: flows(&|flow| flow.window.map(|bytes| bytes as f64 / 1e3)),
                levels: vec![
                    ("a full packet".into(), f64::from(scenario.full_packet()) / 1e3),
                    ("BDP".into(), bdp),
                ],
            },
        ),
        (
            "in-flight",
            Plot {
                about: "bytes in flight",
                x: Axis::Time,
                y: Axis::Of("in flight, KB"),
                lines: flows(&|flow| flow.in_flight.map(|bytes| bytes as f64 / 1e3)),
                levels: vec![],
            },
        ),
        (
            "credit",
            Plot {
                about: "credit",
                x: Axis::Time,
                y: Axis::Of("credit, KB"),
                lines: flows(&|flow| flow.credit.map(|bytes| bytes as f64 / 1e3)),
                levels: vec![],
            },
        ),
        (
            "queue",
            Plot {
                about: "the deepest queues",
                x: Axis::Time,
                y: Axis::Of("queue, KB"),
                lines: vec![
                    line("last hop", outcome, |sample| Some(sample.last_hop as f64 / 1e3)),
                    line("fabric", outcome, |sample| Some(sample.fabric as f64 / 1e3)),
                ],
                levels: vec![("BDP".into(), bdp)],
            },
        ),
        (
            "utilization",
            Plot {
                about: "utilization, mean over all links",
                x: Axis::Time,
                y: Axis::ShareOf("the capacity"),
                lines: uses(scenario, outcome),
                levels: vec![],
            },
        ),
        (
            "rate",
            Plot {
                about: "payload that arrives",
                x: Axis::Time,
                y: Axis::Of("rate, Gb/s"),
                lines: rates(outcome),
                levels: vec![],
            },
        ),
        (
            "retransmissions",
            Plot {
                about: "retransmissions",
                x: Axis::Time,
                y: Axis::Of("retransmissions per packet that arrives"),
                lines: vec![retransmissions(scenario, outcome)],
                levels: scenario
                    .retransmission_estimate()
                    .filter(|estimate| estimate.is_finite())
                    .map(|estimate| ("estimate for windows of one packet".into(), estimate))
                    .into_iter()
                    .collect(),
            },
        ),
        (
            "completion",
            Plot {
                about: "completion",
                x: Axis::Of("completion time, us"),
                y: Axis::ShareOf("flows"),
                lines: vec![completion(outcome)],
                levels: vec![],
            },
        ),
    ];
    let seen = plots.into_iter().filter(|(_, plot)| plot.lines.iter().any(|line| line.points.len() > 1));
    seen.map(|(name, plot)| Ok((name, draw(&plot, &about)?))).collect()
}

/// Draws the plots of several runs, a line for each, by name.
pub fn comparison(runs: &[(Scenario, Outcome)]) -> io::Result<Vec<(&'static str, String)>> {
    type Line = fn(&Scenario, &Outcome) -> Option<PlotLine>;
    const DRAWN: [(&str, &str, Axis, Axis, Line); 5] = [
        ("queue", "the deepest queue of the last hops", Axis::Time, Axis::Of("queue, KB"), |_, outcome| {
            Some(line("", outcome, |sample| Some(sample.last_hop as f64 / 1e3)))
        }),
        (
            "utilization",
            "utilization, mean over all last hops",
            Axis::Time,
            Axis::ShareOf("the capacity"),
            |scenario, outcome| uses(scenario, outcome).into_iter().next(),
        ),
        ("rate", "payload that arrives", Axis::Time, Axis::Of("rate, Gb/s"), |_, outcome| {
            rates(outcome).into_iter().next()
        }),
        (
            "retransmissions",
            "retransmissions",
            Axis::Time,
            Axis::Of("retransmissions per packet that arrives"),
            |scenario, outcome| Some(retransmissions(scenario, outcome)),
        ),
        (
            "completion",
            "completion",
            Axis::Of("completion time, us"),
            Axis::ShareOf("flows"),
            |_, outcome| Some(completion(outcome)),
        ),
    ];
    let title = compare::title(runs);
    let mut drawn = Vec::new();
    for (name, about, x, y, of) in DRAWN {
        let lines = runs.iter().filter_map(|(scenario, outcome)| {
            Some(PlotLine { name: compare::name(scenario).into(), ..of(scenario, outcome)? })
        });
        let lines: Vec<PlotLine> = lines.filter(|line| line.points.len() > 1).collect();
        if !lines.is_empty() {
            drawn.push((name, draw(&Plot { about, x, y, lines, levels: Vec::new() }, &title)?));
        }
    }
    Ok(drawn)
}

fn line(name: &str, outcome: &Outcome, of: impl Fn(&uet_simulate::Sample) -> Option<f64>) -> PlotLine {
    let samples = &outcome.series.samples;
    let points = samples
        .iter()
        .step_by(samples.len().div_ceil(POINTS).max(1))
        .filter_map(|sample| Some((sample.at.as_nanos() as f64 / 1e3, of(sample)?)));
    PlotLine { name: name.into(), points: points.collect() }
}

fn flow_lines(outcome: &Outcome, of: &dyn Fn(&FlowSample) -> Option<f64>) -> Vec<PlotLine> {
    let watched = outcome.series.samples.first().map_or(0, |sample| sample.flows.len());
    let name = |index: usize| {
        outcome.flows.get(index).map_or(String::new(), |flow| format!("{} > {}", flow.from, flow.to))
    };
    (0..watched)
        .map(|index| line(&name(index), outcome, |sample| sample.flows.get(index).and_then(of)))
        .collect()
}

/// Returns the growth of a count between samples, per second, as a moving average over about a fiftieth of the time.
/// Packets count whole, so a short average exceeds the rate of the link.
fn growth(outcome: &Outcome, of: impl Fn(&uet_simulate::Sample) -> u64) -> Vec<(f64, f64)> {
    let samples = &outcome.series.samples;
    let step = (samples.len() / 50).max(4);
    let pairs = samples.iter().zip(samples.iter().skip(step)).step_by(step.div_ceil(4));
    pairs
        .map(|(first, last)| {
            let seconds = (last.at - first.at).as_secs_f64().max(1e-12);
            (last.at.as_nanos() as f64 / 1e3, of(last).saturating_sub(of(first)) as f64 / seconds)
        })
        .collect()
}

/// Returns the use of the links to the hosts and of those between switches.
fn uses(scenario: &Scenario, outcome: &Outcome) -> Vec<PlotLine> {
    let line = |name: &str, links: u64, of: fn(&uet_simulate::Sample) -> u64| PlotLine {
        name: format!("all {links} {name}"),
        points: growth(outcome, of)
            .into_iter()
            .map(|(x, bytes)| (x, bytes * 8.0 / (scenario.rate as f64 * links.max(1) as f64)))
            .collect(),
    };
    vec![
        line("last hops", outcome.last_hop_links.links, |sample| sample.last_hop_carried),
        line("links of the fabric", outcome.fabric_links.links, |sample| sample.fabric_carried),
    ]
}

fn rates(outcome: &Outcome) -> Vec<PlotLine> {
    let gigabits = |points: Vec<(f64, f64)>| points.into_iter().map(|(x, bytes)| (x, bytes * 8e-9)).collect();
    let watched = outcome.series.samples.first().map_or(0, |sample| sample.flows.len());
    let all = PlotLine { name: "all".into(), points: gigabits(growth(outcome, |sample| sample.delivered)) };
    let flows = (0..watched).map(|index| {
        let of =
            move |sample: &uet_simulate::Sample| sample.flows.get(index).map_or(0, |flow| flow.delivered);
        let name =
            outcome.flows.get(index).map_or(String::new(), |flow| format!("{} > {}", flow.from, flow.to));
        PlotLine { name, points: gigabits(growth(outcome, of)) }
    });
    let lines: Vec<PlotLine> = flows.collect();
    if outcome.flows.len() == 1 { lines } else { std::iter::once(all).chain(lines).collect() }
}

/// Returns retransmissions per packet that arrives, over time.
fn retransmissions(scenario: &Scenario, outcome: &Outcome) -> PlotLine {
    let again = growth(outcome, |sample| sample.again);
    let arrived = growth(outcome, |sample| sample.delivered);
    let mtu = f64::from(scenario.mtu);
    let ratio = again.iter().zip(&arrived).filter(|(_, (_, arrived))| *arrived > 0.0);
    PlotLine {
        name: "measured".into(),
        points: ratio.map(|((x, again), (_, bytes))| (*x, again * mtu / bytes)).collect(),
    }
}

fn completion(outcome: &Outcome) -> PlotLine {
    let mut done: Vec<f64> =
        outcome.flows.iter().filter_map(|flow| Some(flow.completed?.as_nanos() as f64 / 1e3)).collect();
    done.sort_by(f64::total_cmp);
    let share = |index: usize| index as f64 / outcome.flows.len().max(1) as f64;
    let points =
        done.iter().enumerate().flat_map(|(index, at)| [(*at, share(index)), (*at, share(index + 1))]);
    PlotLine { name: "flows".into(), points: points.collect() }
}

/// Maximum number of points per line. More points cannot be distinguished.
pub const POINTS: usize = 600;

const SIZE: (u32, u32) = (900, 420);
const SMALL: i32 = 13;
const FONT: &str = "sans-serif";

/// The maximum length of a line of the title.
const TITLE: usize = 125;

/// The colors of the lines, all of which are dark enough on white.
const COLORS: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
    RGBColor(188, 189, 34),
    RGBColor(23, 190, 207),
];

/// Draws a plot as SVG. `about` follows its title.
///
/// # Errors
///
/// Fails if the drawing library does.
pub fn draw(plot: &Plot<'_>, about: &str) -> io::Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    draw_on(&root, plot, about).map_err(io::Error::other)?;
    drop(root);
    Ok(svg)
}

/// Returns the digits behind the point that tell the ticks of an axis of this length apart.
fn digits(length: f64) -> usize {
    // The library draws up to 20 ticks, at multiples of 1, 2 or 5 powers of 10.
    let step = length / 20.0;
    (-step.log10().floor()).clamp(0.0, 9.0) as usize
}

/// Breaks a title into lines that fit.
fn title_lines(title: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TITLE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Returns the label of a tick of the vertical axis. A share has none in the space of the legend, above 1.
fn y_label(plot: &Plot<'_>, y: f64) -> String {
    if matches!(plot.y, Axis::ShareOf(_)) && y > 1.0 + 1e-9 {
        return String::new();
    }
    FloatPrettyPrinter { allow_scientific: false, min_decimal: 1, max_decimal: 5 }.print(y)
}

fn draw_on(root: &DrawingArea<SVGBackend<'_>, Shift>, plot: &Plot<'_>, about: &str) -> Result<(), String> {
    let failed = |error: &dyn Display| error.to_string();
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
    let left = match plot.x {
        Axis::Time => 0.0,
        _ => points().map(|point| point.0).fold(f64::MAX, f64::min),
    };
    let right = most(|point| point.0).max(left + 1e-3);
    let levels = plot.levels.iter().map(|(_, level)| *level).fold(0.0, f64::max);
    // The legend is above the lines, as far as half of the height suffices for its rows.
    let rows = plot.lines.len() + plot.levels.len();
    let legend = if rows > 1 { (0.04 + 0.055 * rows as f64).min(0.5) } else { 0.0 };
    let top = (most(|point| point.1).max(levels) * 1.05 / (1.0 - legend)).max(1e-3);
    let bottom = points().map(|point| point.1).fold(0.0, f64::min);
    let mut area = root.clone();
    for line in title_lines(&format!("{}: {about}", plot.about)) {
        area = area.titled(&line, (FONT, 14u32)).map_err(|error| failed(&error))?;
    }
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(left..right, bottom..top)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc(plot.x.label())
        .y_desc(plot.y.label())
        .x_label_formatter(&|x| format!("{x:.0$}", digits(right - left)))
        .y_label_formatter(&|y| y_label(plot, *y))
        .label_style((FONT, SMALL))
        .axis_desc_style((FONT, SMALL))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .draw()
        .map_err(|error| failed(&error))?;
    for (index, line) in plot.lines.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        // A few lines show side by side where they are equal: the earlier ones are wider.
        let width = if plot.lines.len() <= 3 { 2 * (plot.lines.len() - index) as u32 - 1 } else { 1 };
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(width)))
            .map_err(|error| failed(&error))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    for (index, (name, level)) in plot.levels.iter().enumerate() {
        let style = BLACK.mix(0.5).stroke_width(1);
        let dash = if index == 0 { 6 } else { 2 };
        chart
            .draw_series(DashedLineSeries::new([(left, *level), (right, *level)], dash, 4, style))
            .map_err(|error| failed(&error))?
            .label(name)
            .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 16, y)], dash, 4, style));
    }
    if rows > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.2))
            .label_font((FONT, SMALL))
            .draw()
            .map_err(|error| failed(&error))?;
    }
    root.present().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn long_titles_break_and_shares_end_at_1() {
        let line = |name: &str| PlotLine { name: name.into(), points: vec![(0.0, 0.0), (1.0, 1.0)] };
        let plot = Plot {
            about: "utilization",
            x: Axis::Time,
            y: Axis::ShareOf("the capacity"),
            lines: vec![line("a"), line("b")],
            levels: vec![("one".into(), 0.1), ("two".into(), 0.2)],
        };
        let svg = draw(&plot, &"word ".repeat(60)).unwrap();
        assert!(svg.lines().all(|text| text.starts_with('<') || text.len() <= TITLE), "{svg}");
        assert_eq!(svg.matches("word").count(), 60);
        let labeled = |label: &str| svg.lines().any(|text| text.trim() == label);
        assert!(labeled("1.0") && !labeled("1.2"), "{svg}");
    }

    #[test]
    fn ticks_of_a_short_axis_differ() {
        for length in [0.4, 3.0, 40.0, 5000.0] {
            let lines =
                vec![PlotLine { name: String::new(), points: vec![(25.0, 0.0), (25.0 + length, 1.0)] }];
            let plot = Plot {
                about: "",
                x: Axis::Of("completion time, us"),
                y: Axis::Of(""),
                lines,
                levels: Vec::new(),
            };
            let svg = draw(&plot, "").unwrap();
            // The labels of the horizontal axis are below the others.
            let text = |part: &str| {
                part.split("</text>").next().unwrap().rsplit('>').next().unwrap().trim().to_owned()
            };
            let lowest =
                |part: &&str| part.contains("text-anchor=\"middle\"") && part.contains("dy=\"0.76em\"");
            let ticks: Vec<String> = svg.split("<text").skip(1).filter(lowest).map(text).collect();
            let ticks: Vec<f64> = ticks.iter().filter_map(|tick| tick.parse().ok()).collect();
            let different: BTreeSet<String> = ticks.iter().map(ToString::to_string).collect();
            assert!(ticks.len() > 2 && different.len() == ticks.len(), "{length}: {ticks:?}");
        }
    }
}
