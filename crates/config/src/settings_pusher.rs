//! The settings of the Pusher protocol.

use std::time::Duration;

use crate::fixed_time::fixed_time;
use crate::secret::Secret;
use crate::table::settings;

settings! {
    /// The Pusher protocol of a site, for Laravel Echo and other clients of Pusher, Reverb and Soketi: connections at
    /// `/app/KEY`, the HTTP API at `/apps/ID/…`.
    pub struct PusherSettings at "pusher" {
        /// Application whose clients may connect and whose servers may publish: `ID:KEY:SECRET`, or `file:/PATH` of a file
        /// with that. In Laravel these are `REVERB_APP_ID`, `REVERB_APP_KEY` and `REVERB_APP_SECRET`, or those with
        /// `PUSHER_`.
        app: Option<Secret> = r#""""# example(r#""file:/run/secrets/pusher""#);
        /// Path of the site that receives webhooks: channels that become occupied or vacated, members, client events.
        webhook: Option<String> = r#""""# example(r#""/pusher/webhook""#);
    }
    plus {
        /// Delay before the first retry of a failed webhook; the next ones take 4 and 16 times as long.
        webhook_retry: Duration = fixed_time("pusher.webhook_retry", Duration::from_secs(1));
    }
}
