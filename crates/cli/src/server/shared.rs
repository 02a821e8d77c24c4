//! The broker that this server shares with others (`share`).

use anyhow::{Result, anyhow};
use howdah_config::Settings;
use howdah_store::{Address, Broker};
use howdah_tls::client;

/// The address of the broker.
///
/// # Errors
/// The setting is not an address, or a file that it names does not exist.
pub(crate) fn address(settings: &Settings) -> Result<Option<Address>, String> {
    let Some(address) = &settings.share else { return Ok(None) };
    let address = Address::parse(address.expose())?;
    match address.ca_file().filter(|file| !file.is_file()) {
        Some(file) => Err(format!("names no file: {}", file.display())),
        None => Ok(Some(address)),
    }
}

/// The broker; the connection is opened on first use.
///
/// # Errors
/// The address or its certificate authorities are invalid.
pub(crate) fn broker(settings: &Settings) -> Result<Option<Broker>> {
    let Some(address) = address(settings).map_err(|why| anyhow!("share {why}"))? else { return Ok(None) };
    let tls = match address.is_encrypted() {
        true => {
            let ca_file = address.ca_file().map(std::path::PathBuf::as_path);
            Some(client::config(ca_file, "share").map_err(|why| anyhow!(why))?)
        }
        false => None,
    };
    Ok(Some(Broker::new(address, tls)?))
}
