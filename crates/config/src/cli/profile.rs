//! The arguments of `howdah profile`.

use crate::settings::DEFAULT_POOL;
use clap::{Args, ValueEnum, value_parser};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  howdah profile --pool shop -o shop.svg
  howdah profile --format folded -o - | sort -k2 -n";

/// Arguments of `howdah profile`, without those of the server's address.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProfileFlags {
    /// Pool to profile
    #[arg(long, value_name = "NAME", default_value = DEFAULT_POOL)]
    pub pool: String,
    /// Duration in seconds
    #[arg(long, value_name = "N", default_value = "30", value_parser = value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Samples per second
    #[arg(long, value_name = "HZ", default_value = "99", value_parser = value_parser!(u32).range(1..=1000))]
    pub rate: u32,
    /// svg: flame graph; folded: for speedscope.app and scripts [default: by the file's name, else svg]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ProfileFormat>,
    /// Output file; - for standard output [default: howdah-POOL.svg]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Format of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    // A flame graph.
    Svg,
    // A line for each stack.
    Folded,
}

impl ProfileFormat {
    /// The format for a file name's extension.
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "folded" | "txt" => Some(Self::Folded),
            _ => None,
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Folded => "folded",
        }
    }
}

impl ProfileFlags {
    /// The format, and the output file; `-` for standard output.
    pub fn target(&self) -> (ProfileFormat, PathBuf) {
        let of_name = || ProfileFormat::of_name(self.output.as_deref()?);
        let format = self.format.or_else(of_name).unwrap_or(ProfileFormat::Svg);
        let usual = || PathBuf::from(format!("howdah-{}.{}", self.pool, format.extension()));
        (format, self.output.clone().unwrap_or_else(usual))
    }
}
