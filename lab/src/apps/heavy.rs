//! A shop API with requests as heavy as those of a large one: Doctrine's entities, pricing, taxes, translations and
//! serializer groups, and many services that are built before the response. Two numbers set its weight.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Files, environment, php, writable, write};
use crate::services::Services;

const FILES: Files = &[
    ("bootstrap.php", include_str!("../../apps/heavy/bootstrap.php")),
    ("warm.php", include_str!("../../apps/heavy/warm.php")),
    ("loop.php", include_str!("../../apps/heavy/loop.php")),
    ("async.php", include_str!("../../apps/heavy/async.php")),
    ("public/index.php", include_str!("../../apps/heavy/public/index.php")),
    ("public/worker.php", include_str!("../../apps/heavy/public/worker.php")),
    ("src/Kernel.php", include_str!("../../apps/heavy/src/Kernel.php")),
    ("src/Parts.php", include_str!("../../apps/heavy/src/Parts.php")),
    ("src/Pricing.php", include_str!("../../apps/heavy/src/Pricing.php")),
    ("src/ProductController.php", include_str!("../../apps/heavy/src/ProductController.php")),
    ("src/Entity/ChannelPrice.php", include_str!("../../apps/heavy/src/Entity/ChannelPrice.php")),
    ("src/Entity/Product.php", include_str!("../../apps/heavy/src/Entity/Product.php")),
    ("src/Entity/ProductTranslation.php", include_str!("../../apps/heavy/src/Entity/ProductTranslation.php")),
    ("src/Entity/TaxCategory.php", include_str!("../../apps/heavy/src/Entity/TaxCategory.php")),
    ("src/Entity/TaxRate.php", include_str!("../../apps/heavy/src/Entity/TaxRate.php")),
    ("src/Entity/Variant.php", include_str!("../../apps/heavy/src/Entity/Variant.php")),
    ("src/Entity/VariantTranslation.php", include_str!("../../apps/heavy/src/Entity/VariantTranslation.php")),
];

const SCHEMA: &str = include_str!("../../apps/heavy/schema.sql");

/// Weight of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// Variants of the product, each with translations, prices and taxes.
    pub variants: u32,
    /// Services that are built when the application boots.
    pub parts: u32,
}

impl Weight {
    /// The default weight.
    pub const LIGHT: Self = Self { variants: 20, parts: 200 };
    /// The maximum for which there is data and code.
    pub const MAX: Self = Self { variants: 400, parts: 2500 };
}

/// Writes the application below `dir` and returns its document root.
pub fn prepare(dir: &Path, services: &Services) -> Result<PathBuf> {
    let mariadb = services.mariadb.as_ref().context("the heavy shop needs MariaDB")?;
    write(dir, FILES)?;
    fs::write(dir.join("environment.php"), environment(services))?;
    weigh(dir, Weight::LIGHT)?;
    mariadb.execute(SCHEMA)?;
    php(&[&dir.join("warm.php").to_string_lossy()])?;
    writable(&dir.join("var"))?;
    Ok(dir.join("public"))
}

/// Sets the weight for systems that are started afterwards.
pub fn weigh(dir: &Path, weight: Weight) -> Result<()> {
    let path = dir.join("weight.php");
    let Weight { variants, parts } = weight;
    fs::write(&path, format!("<?php\nreturn ['variants' => {variants}, 'parts' => {parts}];\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
