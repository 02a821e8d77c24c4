//! The common frame of all HTML pages: one file with its style and one line of script, for light, dark and paper.

use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// Colours in the style sheet.
pub const COLOURS: usize = 12;

/// Switches between light and dark; without scripts the page follows the system's setting.
const SCRIPT: &str = "document.getElementById('theme').onclick=function(){var r=document.documentElement,\
    d=r.dataset.theme||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');\
    r.dataset.theme=d==='dark'?'light':'dark'};";

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the colour of one of the lab's own systems.
pub fn colour(system: &str) -> Option<usize> {
    crate::systems::builtin_ids().iter().position(|id| id == system).map(|place| place % COLOURS)
}

/// Begins a page, up to its heading; all three texts are HTML.
pub fn open(title: &str, heading: &str, about: &str) -> String {
    let mut colours = String::new();
    for index in 0..COLOURS {
        let _ = write!(
            colours,
            ".c{index}{{fill:var(--c{index})}}.s{index}{{stroke:var(--c{index})}}svg .t{index}{{fill:var(--c{index})}}\
             .b{index}{{background:var(--c{index})}}"
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}{colours}</style></head><body><main>\
         <header><div><h1>{heading}</h1><p class=\"soft\">{about}</p></div>\
         <button id=\"theme\" type=\"button\">light / dark</button></header>"
    )
}

/// Ends a page.
pub fn close() -> String {
    format!("</main><script>{SCRIPT}</script></body></html>\n")
}
