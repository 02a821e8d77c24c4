//! A page as a list of parts, rendered as Markdown.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

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
    /// Details, in parentheses.
    pub below: String,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
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

/// A whole page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    pub about: String,
    pub blocks: Vec<Block>,
}

impl Page {
    /// Renders Markdown for a repository.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.title, self.about);
        self.blocks.iter().for_each(|block| markdown(&mut text, block));
        text
    }

    /// Writes the page into a directory, together with its data.
    pub fn write(&self, out: &Path, made_from: &impl Serialize) -> Result<()> {
        let files = [(summary::FILE, summary::text(&serde_json::to_value(made_from)?)), ("page.md", self.markdown())];
        for (name, content) in files {
            let path = out.join(name);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
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
    fn text_ends_no_cell_and_details_stand_with_their_item() {
        let row = vec![Cell::new("a|b <c>").below("small"), Cell::new("not installed")];
        let page = Page {
            title: "x <y>".into(),
            about: "about".into(),
            blocks: vec![
                Block::Heading("Part One".into()),
                Block::Table(Table { head: vec!["one".into(), "two".into()], rows: vec![row] }),
                Block::List(vec![Item { text: "why".into(), below: vec!["because".into()] }]),
            ],
        };
        let markdown = page.markdown();
        assert!(markdown.starts_with("# x <y>\n\nabout\n\n## Part One\n"), "{markdown}");
        assert!(markdown.contains("| a\\|b <c> (small) | not installed |"), "{markdown}");
        assert!(markdown.contains("- why\n  - because"), "{markdown}");
    }
}
