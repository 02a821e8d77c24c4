//! Publishers: a form with an update. The token must allow its topics.

use super::authorization;
use crate::exchange::Exchange;
use crate::mercure::Mercure;
use crate::phase::php::spool;
use crate::refusal::Refusal;
use bytes::Bytes;
use howdah_mercure::{Publication, PublicationError};
use howdah_protocol::{Body, RequestBody, Response};
use http::{HeaderValue, StatusCode, header};

/// Maximum size of an update's form in bytes, unless the site's limit is lower.
const MAX_FORM: u64 = 1 << 20;
const FORM: &[u8] = b"application/x-www-form-urlencoded";

pub(super) async fn respond(
    mercure: &Mercure,
    exchange: &Exchange,
    body: &mut RequestBody,
) -> Result<Response, Refusal> {
    // Checked before the body is read, so that unauthorized clients cannot upload anything.
    let claims = authorization::of_publisher(mercure, exchange)?;
    let forbidden = |reason| authorization::insufficient(exchange, claims.is_access_token, reason);
    let allowed = claims.publish.as_ref().filter(|allowed| !allowed.is_empty());
    let allowed = allowed.ok_or_else(|| forbidden("a token that is not a publisher's"))?;
    let media_type = exchange.head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !media_type.eq_ignore_ascii_case(FORM) {
        let reason = "a body that is not application/x-www-form-urlencoded";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE).because(reason));
    }
    let publication = Publication::from_form(&spool::read_own(exchange, body, MAX_FORM).await?).map_err(mistake)?;
    if claims.is_access_token {
        publication.check_reserved(&authorization::hub_url(exchange)).map_err(mistake)?;
    }
    let may = |topic: &String| allowed.iter().any(|selector| selector.matches(topic));
    if !publication.topics.iter().all(may) {
        return Err(forbidden("a topic that the token does not allow"));
    }
    let update = publication.into_update().map_err(mistake)?;
    let site = &exchange.site;
    let id = Bytes::copy_from_slice(update.id.as_bytes());
    site.server.metrics.mercure_updates.inc();
    let (hubs, name) = (site.server.hubs(), &site.settings.name);
    hubs.of(name).publish(update);
    hubs.stored(name).await;
    let mut response = Response::new(Body::full(id));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain;charset=UTF-8"));
    Ok(response)
}

fn mistake(why: PublicationError) -> Refusal {
    match why {
        PublicationError::NoTopic => Refusal::bad_request("no `topic`"),
        PublicationError::ManyTopics => Refusal::bad_request("more than 100 topics"),
        PublicationError::LongName => Refusal::bad_request("a `topic`, an `id` or a `type` of more than 4096 bytes"),
        PublicationError::ControlCharacter => {
            Refusal::bad_request("a `topic`, an `id` or a `type` with a control or format character")
        }
        PublicationError::ReservedId => Refusal::bad_request("an `id` that begins with `#` or is `earliest`"),
        PublicationError::ReservedTopic => Refusal::bad_request("the topic `*`, or one below the hub's own path"),
        PublicationError::ReservedType => Refusal::bad_request("the `type` `mercure`, which is reserved"),
        PublicationError::Retry => Refusal::bad_request("a `retry` that is not a number of milliseconds"),
        PublicationError::NoRandom => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
