<?php
/**
 * WordPress in snapshot mode: howdah serve /path/to/wordpress --mode snapshot --boot wordpress-boot.php
 *
 * Loads WordPress and its plugins up to the hook `plugins_loaded` and takes the snapshot there. All that looks at the
 * request comes later: the theme, the current user, `init` and `wp_loaded` run in every request, as they do without a snapshot.
 * wordpress-front.php saves more; this is for plugins that it does not suit.
 *
 * Only for index.php: give all other scripts a classic pool, see README.md. Needs wordpress-changes.php beside it, and follows
 * changes as that file says. Set ABSPATH_DIR or put both beside wp-load.php. Not for multisite.
 */

require_once __DIR__ . '/wordpress-changes.php';

$GLOBALS['wp_filter'] = ['plugins_loaded' => [PHP_INT_MIN => [[
    'function' => static function (): void {
        HowdahWordPress::recorded();
        // The connection to the database stays; a server that has closed it meanwhile costs the worker, not the request.
        Howdah\snapshot();
        HowdahWordPress::follow();
    },
    'accepted_args' => 0,
]]]];
HowdahWordPress::record();

require_once rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/') . '/wp-load.php';
