//! Charts as inline SVG: horizontal bars with whiskers, and latency over percentiles.
//!
//! Colours are classes of the page's style sheet, so one drawing serves light and dark. Every mark has a title that a
//! browser shows under the pointer.

use std::fmt::Write as _;

use super::frame::escape;

/// Width of a bar chart in its own units: the page shows two side by side.
const WIDTH: f64 = 540.0;
const LABELS: f64 = 136.0;
const VALUES: f64 = 76.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;

/// One row of a bar chart.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// Text on the left.
    pub label: String,
    /// Index of the colour.
    pub colour: usize,
    /// Lengths of the parts, the lighter ones first; empty if there is nothing to draw.
    pub parts: Vec<Part>,
    /// Smallest and largest single value.
    pub range: Option<(f64, f64)>,
    /// Text to the right of the bar, or instead of it.
    pub text: String,
    /// Tooltip.
    pub hint: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub length: f64,
    /// Drawn lighter than the rest.
    pub light: bool,
}

/// Renders horizontal bars over a common axis from zero.
pub fn bars(name: &str, rows: &[Bar]) -> String {
    let most = rows
        .iter()
        .map(|row| {
            let total: f64 = row.parts.iter().map(|part| part.length).sum();
            total.max(row.range.map_or(0.0, |(_, high)| high))
        })
        .fold(0.0, f64::max);
    let axis = Axis::with_end(most);
    let height = rows.len() as f64 * ROW + 22.0;
    let mut svg = open(name, WIDTH, height);
    for tick in axis.ticks() {
        let x = axis.x(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            height - 18.0,
            height - 4.0,
            super::number(tick).trim_end_matches(".0"),
        );
    }
    for (index, row) in rows.iter().enumerate() {
        draw_bar(&mut svg, row, index as f64 * ROW, &axis);
    }
    svg.push_str("</svg>");
    svg
}

fn draw_bar(svg: &mut String, row: &Bar, top: f64, axis: &Axis) {
    let middle = top + ROW / 2.0;
    let baseline = middle + 4.0;
    let _ = write!(
        svg,
        "<g><title>{}</title><text class=\"label\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>",
        escape(&row.hint),
        LABELS - 8.0,
        escape(&row.label),
    );
    let mut from = 0.0;
    for part in &row.parts {
        let (left, right) = (axis.x(from), axis.x(from + part.length));
        let _ = write!(
            svg,
            "<rect class=\"c{}{}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
            row.colour,
            if part.light { " light" } else { "" },
            middle - BAR / 2.0,
            (right - left).max(1.0),
        );
        from += part.length;
    }
    let mut end = axis.x(from);
    if let Some((low, high)) = row.range {
        let (left, right) = (axis.x(low), axis.x(high));
        if right - left > 1.5 {
            let _ = write!(
                svg,
                "<path class=\"whisker\" d=\"M{left:.1} {middle:.1}H{right:.1}M{left:.1} {a:.1}V{b:.1}M{right:.1} {a:.1}V{b:.1}\"/>",
                a = middle - 4.0,
                b = middle + 4.0,
            );
        }
        end = end.max(right);
    }
    let class = if row.parts.is_empty() { "absent" } else { "value" };
    let x = if row.parts.is_empty() { LABELS } else { end };
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text></g>",
        x + 6.0,
        escape(&row.text)
    );
}

struct Axis {
    step: f64,
    end: f64,
}

impl Axis {
    /// An axis with about four steps of 1, 2 or 5 times a power of ten.
    fn with_end(most: f64) -> Self {
        let rough = if most > 0.0 { most / 4.0 } else { 1.0 };
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0) * power;
        Self { step, end: if most > 0.0 { most } else { step } }
    }

    fn ticks(&self) -> Vec<f64> {
        (0..).map(|n| f64::from(n) * self.step).take_while(|tick| *tick <= self.end * 1.0001).collect()
    }

    fn x(&self, value: f64) -> f64 {
        LABELS + value / self.end * (WIDTH - LABELS - VALUES)
    }
}

fn open(name: &str, width: f64, height: f64) -> String {
    format!("<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">", escape(name))
}

/// One line of a latency chart.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Name at the end of the line.
    pub label: String,
    /// Index of the colour.
    pub colour: usize,
    /// Percentiles and microseconds, ascending.
    pub points: Vec<(f64, f64)>,
}

/// Width of a latency chart, which fills the page's width.
const WIDE: f64 = 1110.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;
const TALL: f64 = 280.0;

/// Renders latency over percentiles. Both axes are logarithmic: each step to the right is ten times rarer.
pub fn latency(name: &str, lines: &[Line]) -> String {
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|(_, us)| us.max(1.0))).collect();
    let (Some(low), Some(high)) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max))
    else {
        return String::new();
    };
    let (low, high) = (low.log10() - 0.05, (high.log10() + 0.05).max(low.log10() + 0.5));
    let y = |us: f64| TOP + (high - us.max(1.0).log10()) / (high - low) * (TALL - TOP - BOTTOM);
    let x = |percentile: f64| LEFT + place(percentile) * (WIDE - LEFT - RIGHT);
    let mut svg = open(name, WIDE, TALL);
    for (percentile, text) in [
        (50.0, "50 %"),
        (75.0, "75 %"),
        (90.0, "90 %"),
        (99.0, "99 %"),
        (99.9, "99.9 %"),
        (99.99, "99.99 %"),
        (100.0, "max"),
    ] {
        let at = x(percentile);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            TALL - BOTTOM,
            TALL - 8.0,
        );
    }
    for tick in time_ticks(low, high) {
        let at = y(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDE - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            tick_text(tick),
        );
    }
    draw_lines(&mut svg, lines, &x, &y);
    svg.push_str("</svg>");
    svg
}

fn draw_lines(svg: &mut String, lines: &[Line], x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
    let wanted: Vec<f64> = lines.iter().map(|line| line.points.last().map_or(TALL, |(_, us)| y(*us))).collect();
    for (line, label_y) in lines.iter().zip(spread_labels(&wanted, 15.0, TALL - BOTTOM)) {
        let path: Vec<String> = line.points.iter().map(|(p, us)| format!("{:.1} {:.1}", x(*p), y(*us))).collect();
        let _ = write!(svg, "<path class=\"line s{}\" d=\"M{}\"/>", line.colour, path.join("L"));
        for (percentile, us) in &line.points {
            let _ = write!(
                svg,
                "<circle class=\"c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {} {}</title></circle>",
                line.colour,
                x(*percentile),
                y(*us),
                escape(&line.label),
                if *percentile >= 100.0 { "max".to_owned() } else { format!("p{percentile}") },
                super::time(*us),
            );
        }
        if let Some((_, us)) = line.points.last() {
            let end = WIDE - RIGHT;
            let _ = write!(
                svg,
                "<path class=\"lead s{}\" d=\"M{:.1} {:.1}L{:.1} {label_y:.1}\"/><text class=\"label t{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                line.colour,
                end + 4.0,
                y(*us),
                end + 14.0,
                line.colour,
                end + 18.0,
                label_y + 4.0,
                escape(&line.label),
            );
        }
    }
}

/// Returns the position of a percentile between 0 (the median) and 1 (the maximum).
fn place(percentile: f64) -> f64 {
    let rarest = 99.997;
    let depth = |p: f64| (50.0 / (100.0 - p)).log10();
    depth(percentile.min(rarest)) / depth(rarest)
}

/// Returns 1, 2 and 5 times the powers of ten between two logarithms, thinned out if there are many.
fn time_ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high - low > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    (0..8)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|tick| (low..=high).contains(&tick.log10()))
        .collect()
}

fn tick_text(us: f64) -> String {
    let short = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_owned();
    if us < 1000.0 {
        format!("{us:.0} µs")
    } else if us < 1e6 {
        format!("{} ms", short(us / 1000.0))
    } else {
        format!("{} s", short(us / 1e6))
    }
}

/// Moves positions so that neighbours are at least `gap` apart and none is below `bottom`.
fn spread_labels(wanted: &[f64], gap: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = vec![0.0; wanted.len()];
    let mut next = f64::MIN;
    for index in &order {
        placed[*index] = wanted[*index].max(next);
        next = placed[*index] + gap;
    }
    let mut limit = bottom;
    for index in order.iter().rev() {
        placed[*index] = placed[*index].min(limit);
        limit = placed[*index] - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_few_round_ticks() {
        assert_eq!(Axis::with_end(26_249.0).ticks(), [0.0, 10_000.0, 20_000.0]);
        assert_eq!(Axis::with_end(100.0).ticks(), [0.0, 50.0, 100.0]);
        assert_eq!(Axis::with_end(0.0).ticks(), [0.0, 1.0]);
        assert!(Axis::with_end(0.37).ticks().len() >= 3);
    }

    #[test]
    fn bars_stay_inside_and_are_as_long_as_their_value() {
        let bar = |length| Bar { parts: vec![Part { length, light: false }], ..Bar::default() };
        let svg = bars("x", &[bar(100.0), bar(50.0)]);
        let widths: Vec<f64> =
            svg.split("width=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
        assert!((widths[0] - 2.0 * widths[1]).abs() < 0.2, "{widths:?}");
        assert!(LABELS + widths[0] <= WIDTH);
    }

    #[test]
    fn labels_do_not_overlap() {
        let placed = spread_labels(&[100.0, 101.0, 99.0, 230.0, 229.0], 15.0, 226.0);
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 14.999), "{placed:?}");
        assert!(placed.iter().all(|y| *y <= 226.0));
    }

    #[test]
    fn percentiles_rise_from_left_to_right() {
        assert_eq!(place(50.0), 0.0);
        assert!((place(100.0) - 1.0).abs() < 1e-9);
        assert!(place(90.0) < place(99.0) && place(99.0) < place(99.9) && place(99.9) < place(99.99));
    }

    #[test]
    fn names_cannot_break_the_drawing() {
        let svg = bars("x", &[Bar { label: "<script>&\"".into(), ..Bar::default() }]);
        assert!(!svg.contains("<script>"));
        assert!(latency("x", &[]).is_empty());
    }
}
