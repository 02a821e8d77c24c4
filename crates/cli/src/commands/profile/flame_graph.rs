//! A flame graph: one self-contained SVG with a script for zooming (by a click) and searching. Outermost functions are
//! at the top. A function is as wide as its share of the samples.

use super::{name_of, outermost_first, samples};
use howdah_observe::escape;
use howdah_pool::Profile;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: usize = 18;
const TOP: usize = 60;
/// Minimum width of a drawn frame.
const NARROWEST: f64 = 0.1;
/// Approximate width of a character, to cut names to the available room.
const CHARACTER: f64 = 6.6;

const SCRIPT: &str = include_str!("flame_graph.js");

#[derive(Default)]
struct Node<'a> {
    times: u64,
    file: &'a str,
    inner: BTreeMap<&'a str, Node<'a>>,
}

impl Node<'_> {
    fn depth(&self) -> usize {
        1 + self.inner.values().map(Node::depth).max().unwrap_or(0)
    }
}

pub(super) fn render(profile: &Profile) -> String {
    let mut root = Node { times: samples(profile), ..Node::default() };
    for (stack, times) in &profile.stacks {
        let mut at = &mut root;
        for frame in outermost_first(profile, stack) {
            at = at.inner.entry(name_of(frame)).or_default();
            at.times += times;
            at.file = &frame.file;
        }
    }
    let height = TOP + root.depth() * ROW + 40;
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n<style>g.f{{cursor:pointer}}\
         g.f:hover rect{{stroke:#000}}g.f.found rect{{fill:#c050f0}}text{{pointer-events:none}}#search,#all{{cursor:pointer;\
         pointer-events:all}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fdfdf8\"/>\n"
    );
    let title = format!(
        "Pool {}: {} samples in {} s at {} Hz",
        profile.pool,
        samples(profile),
        profile.milliseconds as f64 / 1000.0,
        profile.rate
    );
    let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"20\" font-size=\"15\">{}</text>", escaped(&title));
    let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"42\" id=\"all\">[whole]</text>");
    let _ = writeln!(out, "<text x=\"{}\" y=\"42\" id=\"search\">[search]</text>", MARGIN + 60.0);
    let _ = writeln!(out, "<text x=\"{}\" y=\"42\" id=\"detail\"> </text>", MARGIN + 130.0);
    out.push_str("<g id=\"frames\">\n");
    let scale = (WIDTH - 2.0 * MARGIN) / root.times.max(1) as f64;
    draw(&mut out, "all", &root, Place { begin: 0, depth: 0, scale, all: root.times.max(1) });
    let _ = write!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n");
    out
}

#[derive(Clone, Copy)]
struct Place {
    /// Number of samples to the left of the frame.
    begin: u64,
    depth: usize,
    scale: f64,
    all: u64,
}

/// The recursion is bounded by the depth of a stack.
fn draw(out: &mut String, name: &str, node: &Node<'_>, place: Place) {
    let (x, width) = (MARGIN + place.begin as f64 * place.scale, node.times as f64 * place.scale);
    if width < NARROWEST {
        return;
    }
    let y = TOP + place.depth * ROW;
    let part = node.times as f64 * 100.0 / place.all as f64;
    let (name_text, file) = (escaped(name), escaped(node.file));
    let _ = write!(out, "<g class=\"f\" data-x=\"{}\" data-w=\"{}\" data-n=\"{name_text}\">", place.begin, node.times);
    let place_text = if file.is_empty() || file == name_text { String::new() } else { format!(" ({file})") };
    let _ = write!(out, "<title>{name_text}{place_text}: {} samples, {part:.1} %</title>", node.times);
    let _ = write!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{}\" rx=\"2\"/>",
        ROW - 1,
        color(name)
    );
    let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{}\">{}</text></g>", x + 3.0, y + 13, escaped(&cut(name, width)));
    let mut begin = place.begin;
    for (name, inner) in &node.inner {
        draw(out, name, inner, Place { begin, depth: place.depth + 1, ..place });
        begin += inner.times;
    }
}

fn cut(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    match name.chars().count() {
        length if length <= room => name.to_owned(),
        _ if room < 3 => String::new(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// The same color for the same name in every graph.
fn color(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({},{}%,{}%)", hash % 50 + 10, 60 + (hash >> 8) % 30, 62 + (hash >> 16) % 14)
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(|c: char| !escape::is_plain(c) || matches!(c, '\u{fffe}' | '\u{ffff}'), " ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::*;

    #[test]
    fn each_function_is_as_wide_as_its_part_of_the_samples() {
        let svg = render(&profile());
        assert!(
            svg.contains(
                "data-n=\"App\\Report-&gt;work\"><title>App\\Report-&gt;work (/srv/report.php): 75 samples, 75.0 %"
            ),
            "{svg}"
        );
        assert!(svg.contains("<title>sort: 25 samples, 25.0 %"), "{svg}");
        assert!(svg.contains("<title>/srv/index.php: 100 samples, 100.0 %"), "{svg}");
        assert!(svg.contains("width=\"885.0\""), "{svg}");
    }

    #[test]
    fn names_cannot_break_out_of_the_markup() {
        let mut hostile = profile();
        hostile.frames[1].function = "</title><script>alert(1)</script>\"\u{0}]]>".to_owned();
        hostile.pool = "<b>".to_owned();
        let svg = render(&hostile);
        assert_eq!(svg.matches("<script>").count(), 1);
        assert!(!svg.contains("<b>") && !svg.contains('\u{0}'));
        assert!(render(&Profile::default()).ends_with("</svg>\n"));
    }
}
