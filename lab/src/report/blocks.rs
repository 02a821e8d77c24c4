//! A page as a list of parts, rendered as HTML and as Markdown from the same text.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::frame::{self, escape};
use super::summary;

/// A part of a page. All texts are plain.
#[derive(Debug, Clone)]
pub enum Block {
    Heading(String),
    Smaller(String),
    Text(String),
    /// A notice that the reader must see first.
    Note(String, Vec<String>),
    List(Vec<Item>),
    Table(Table),
    /// A chart; in Markdown, tables contain the same figures.
    Chart(String),
    /// A section that is collapsed at first.
    Details(String, Vec<Block>),
    /// Cards that link to other pages: address, title, lines.
    Cards(Vec<(String, String, Vec<String>)>),
}

/// A list item with its details.
#[derive(Debug, Clone, Default)]
pub struct Item {
    pub text: String,
    pub below: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub text: String,
    /// Text in smaller letters below it.
    pub below: String,
    /// Class of the style sheet.
    pub class: &'static str,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A cell with words instead of a figure.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "words", ..Self::default() }
    }

    /// A cell without a figure, with the reason.
    pub fn absent(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "absent", ..Self::default() }
    }

    pub fn below(mut self, text: impl Into<String>) -> Self {
        self.below = text.into();
        self
    }
}

impl Item {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), below: Vec::new() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    pub about: String,
    pub blocks: Vec<Block>,
}

impl Page {
    /// Renders one file for a browser. `home` is the address of the parent page.
    pub fn html(&self, home: Option<&str>) -> String {
        let mut text = frame::open(&escape(&self.title), &escape(&self.title), &escape(&self.about));
        text.push_str("<nav>");
        if let Some(home) = home {
            let _ = write!(text, "<a href=\"{}\">All results</a>", escape(home));
        }
        for block in &self.blocks {
            if let Block::Heading(heading) = block {
                let _ = write!(text, "<a href=\"#{}\">{}</a>", anchor(heading), escape(heading));
            }
        }
        text.push_str("</nav>");
        self.blocks.iter().for_each(|block| html(&mut text, block));
        text.push_str(&frame::close());
        text
    }

    /// Renders Markdown for a repository.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.title, self.about);
        self.blocks.iter().for_each(|block| markdown(&mut text, block));
        text
    }

    /// Writes both forms into a directory, together with their data.
    pub fn write(&self, out: &Path, made_from: &impl Serialize) -> Result<()> {
        let files = [
            (summary::FILE, summary::text(&serde_json::to_value(made_from)?)),
            ("page.html", self.html(None)),
            ("page.md", self.markdown()),
        ];
        for (name, content) in files {
            let path = out.join(name);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn html(text: &mut String, block: &Block) {
    let _ = match block {
        Block::Heading(heading) => write!(text, "<h2 id=\"{}\">{}</h2>", anchor(heading), escape(heading)),
        Block::Smaller(heading) => write!(text, "<h3>{}</h3>", escape(heading)),
        Block::Text(words) => write!(text, "<p>{}</p>", escape(words)),
        Block::Note(title, items) => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
            write!(text, "<div class=\"card note\"><h3>{}</h3><ul>{items}</ul></div>", escape(title))
        }
        Block::List(items) => {
            let items: String = items.iter().map(html_item).collect();
            write!(text, "<ul class=\"why\">{items}</ul>")
        }
        Block::Table(table) => write!(text, "{}", html_table(table)),
        Block::Chart(svg) => write!(text, "<div class=\"card\">{svg}</div>"),
        Block::Details(title, blocks) => {
            let mut inner = String::new();
            blocks.iter().for_each(|block| html(&mut inner, block));
            write!(text, "<details><summary>{}</summary>{inner}</details>", escape(title))
        }
        Block::Cards(cards) => {
            text.push_str("<div class=\"cards\">");
            for (address, title, lines) in cards {
                let lines: String =
                    lines.iter().map(|line| format!("<p class=\"soft\">{}</p>", escape(line))).collect();
                let _ = write!(
                    text,
                    "<div class=\"card\"><h3><a href=\"{}\">{}</a></h3>{lines}</div>",
                    escape(address),
                    escape(title)
                );
            }
            write!(text, "</div>")
        }
    };
}

fn html_item(item: &Item) -> String {
    if item.below.is_empty() {
        return format!("<li>{}</li>", escape(&item.text));
    }
    let below: String = item.below.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
    format!("<li><strong>{}</strong><ul>{below}</ul></li>", escape(&item.text))
}

fn html_table(table: &Table) -> String {
    let mut text = String::from("<div class=\"card scroll\"><table><thead><tr>");
    for (column, head) in table.head.iter().enumerate() {
        let words = !table.rows.is_empty()
            && table.rows.iter().all(|row| row.get(column).is_some_and(|cell| cell.class == "words"));
        let _ = write!(text, "<th{}>{}</th>", if words { " class=\"words\"" } else { "" }, escape(head));
    }
    text.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        text.push_str("<tr>");
        for cell in row {
            let class = if cell.class.is_empty() { String::new() } else { format!(" class=\"{}\"", cell.class) };
            let sub = if cell.below.is_empty() {
                String::new()
            } else {
                format!("<span class=\"sub\">{}</span>", escape(&cell.below))
            };
            let _ = write!(text, "<td{class}>{}{sub}</td>", escape(&cell.text));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>");
    text
}

fn markdown(text: &mut String, block: &Block) {
    let _ = match block {
        Block::Heading(heading) => writeln!(text, "\n## {heading}"),
        Block::Smaller(heading) => writeln!(text, "\n### {heading}"),
        Block::Text(words) => writeln!(text, "\n{words}"),
        Block::Note(title, items) => {
            let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
            writeln!(text, "\n**{title}**\n\n{}", items.trim_end())
        }
        Block::List(items) => {
            text.push('\n');
            for item in items {
                let _ = writeln!(text, "- {}", item.text);
                item.below.iter().for_each(|below| {
                    let _ = writeln!(text, "  - {below}");
                });
            }
            Ok(())
        }
        Block::Table(table) => {
            let _ =
                writeln!(text, "\n| {} |", table.head.iter().map(|head| cell(head)).collect::<Vec<_>>().join(" | "));
            let _ = writeln!(text, "|{}", "---|".repeat(table.head.len()));
            for row in &table.rows {
                let cells: Vec<String> = row
                    .iter()
                    .map(|it| {
                        if it.below.is_empty() { cell(&it.text) } else { cell(&format!("{} ({})", it.text, it.below)) }
                    })
                    .collect();
                let _ = writeln!(text, "| {} |", cells.join(" | "));
            }
            Ok(())
        }
        Block::Chart(_) => Ok(()),
        Block::Details(title, blocks) => {
            let _ = writeln!(text, "\n### {title}");
            blocks.iter().for_each(|block| markdown(text, block));
            Ok(())
        }
        Block::Cards(cards) => {
            text.push('\n');
            for (address, title, lines) in cards {
                let _ = writeln!(text, "- [{title}]({address}): {}", lines.join("; "));
            }
            Ok(())
        }
    };
}

/// Escapes text that would end a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_text_and_escape_it() {
        let row = vec![Cell::words("a|b <c>").below("small"), Cell::absent("not installed")];
        let page = Page {
            title: "x <y>".into(),
            about: "about".into(),
            blocks: vec![
                Block::Heading("Part One".into()),
                Block::Table(Table { head: vec!["one".into(), "two".into()], rows: vec![row] }),
                Block::List(vec![Item { text: "why".into(), below: vec!["because".into()] }]),
            ],
        };
        let (html, markdown) = (page.html(Some("../index.html")), page.markdown());
        assert!(
            html.contains("x &lt;y&gt;") && html.contains("a|b &lt;c&gt;<span class=\"sub\">small</span>"),
            "{html}"
        );
        assert!(html.contains("href=\"#part-one\"") && html.contains("href=\"../index.html\""), "{html}");
        assert!(markdown.contains("| a\\|b <c> (small) | not installed |"), "{markdown}");
        assert!(markdown.contains("- why\n  - because"), "{markdown}");
    }
}
