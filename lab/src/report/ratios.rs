//! Ratios of two sources next to each other, on one logarithmic axis around 1: twice as much and half as much are
//! equally far from it. Absolute figures of different machines never share a chart.

use std::fmt::Write as _;

use super::frame::escape;

const WIDTH: f64 = 1110.0;
const LABELS: f64 = 320.0;
const VALUES: f64 = 250.0;
const ROW: f64 = 24.0;

/// One line of the chart.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub label: String,
    /// Index of the colour.
    pub colour: usize,
    /// The published ratio: an empty circle.
    pub published: Option<f64>,
    /// Minimum, median and maximum measured here: a full circle with whiskers.
    pub here: Option<(f64, f64, f64)>,
    /// Reason why there is no measurement.
    pub absent: String,
}

/// Returns the extent of an axis to either side of 1, in powers of two. Charts of one page share it.
pub fn reach<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    let values = rows.flat_map(|row| {
        let here = row.here.iter().flat_map(|(low, mid, high)| [*low, *mid, *high]);
        row.published.into_iter().chain(here)
    });
    values
        .filter(|value| value.is_finite() && *value > 0.0)
        .map(|value| value.log2().abs())
        .fold(1.0, f64::max)
        .min(10.0)
        .ceil()
}

/// Renders the chart on an axis with this extent.
pub fn chart(name: &str, rows: &[Row], far: f64) -> String {
    let x = |value: f64| LABELS + (value.log2().clamp(-far, far) + far) / (2.0 * far) * (WIDTH - LABELS - VALUES);
    let height = rows.len() as f64 * ROW + 24.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">", escape(name));
    let step = if far > 5.0 { 2 } else { 1 };
    for power in (-(far as i32)..=far as i32).filter(|power| power % step == 0) {
        let at = x(2f64.powi(power));
        let text = if power < 0 { format!("1/{}", 1u64 << -power) } else { (1u64 << power).to_string() };
        let _ = write!(
            svg,
            "<line class=\"{}\" x1=\"{at:.1}\" y1=\"0\" x2=\"{at:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            if power == 0 { "unity" } else { "grid" },
            height - 20.0,
            height - 6.0,
        );
    }
    for (index, row) in rows.iter().enumerate() {
        draw(&mut svg, row, index as f64 * ROW + ROW / 2.0, &x);
    }
    svg.push_str("</svg>");
    svg
}

fn draw(svg: &mut String, row: &Row, middle: f64, x: &dyn Fn(f64) -> f64) {
    let _ = write!(
        svg,
        "<g><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LABELS - 10.0,
        middle + 4.0,
        escape(&row.label)
    );
    if let Some((low, mid, high)) = row.here {
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"M{:.1} {middle:.1}H{:.1}\"/>\
             <circle class=\"c{}\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"6\"><title>here: {mid:.2} ({low:.2} to {high:.2})</title></circle>",
            x(low),
            x(high),
            row.colour,
            x(mid),
        );
    }
    if let Some(published) = row.published {
        let _ = write!(
            svg,
            "<circle class=\"published\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4.5\"><title>published: {published:.2}</title></circle>",
            x(published)
        );
    }
    let published = row.published.map(|value| format!("published {value:.2}"));
    let here = match row.here {
        Some((_, mid, _)) => Some(format!("here {mid:.2}")),
        None => Some(row.absent.clone()).filter(|text| !text.is_empty()),
    };
    let text: Vec<String> = published.into_iter().chain(here).collect();
    let _ = write!(
        svg,
        "<text class=\"{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        if row.here.is_some() { "value" } else { "absent" },
        WIDTH - VALUES + 16.0,
        middle + 4.0,
        escape(&text.join(", "))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(svg: &str) -> Vec<f64> {
        svg.split("cx=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
    }

    #[test]
    fn half_and_twice_are_equally_far_from_one() {
        let row = |ratio| Row { published: Some(ratio), ..Row::default() };
        let at = places(&chart("x", &[row(0.5), row(1.0), row(2.0)], 2.0));
        assert!((at[1] - at[0] - (at[2] - at[1])).abs() < 0.2, "{at:?}");
        assert!(at[0] < at[1]);
    }

    #[test]
    fn absent_results_have_words_and_no_mark() {
        let row = Row { label: "<x>".into(), absent: "not installed".into(), ..Row::default() };
        let svg = chart("x", std::slice::from_ref(&row), reach([&row].into_iter()));
        assert!(svg.contains("not installed") && svg.contains("&lt;x&gt;") && !svg.contains("<circle"), "{svg}");
    }
}
