//! The phases of a request: the responders of `service`, and the steps that complete a response.

pub mod access_log;
pub(crate) mod access_log_fpm;
pub mod compress;
pub(crate) mod destination;
pub(crate) mod htaccess;
pub mod limits;
pub(crate) mod mercure;
pub(crate) mod own_responses;
pub(crate) mod page_reload;
pub mod php;
pub(crate) mod proxy;
pub(crate) mod pusher;
pub mod rules;
mod traces;
pub(crate) mod web_server;
pub(crate) mod websocket;
