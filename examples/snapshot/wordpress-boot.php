<?php
/**
 * WordPress in snapshot mode: howdah serve /path/to/wordpress --mode snapshot --boot wordpress-boot.php
 *
 * Loads WordPress and its plugins up to the hook `plugins_loaded` and takes the snapshot there. Code that reads the
 * request runs later, in each request: the theme, the current user, `init` and `wp_loaded`. wordpress-front.php saves
 * more time; this file is for plugins that do not work with it.
 *
 * Only for index.php: give all other scripts a classic pool, see README.md. Needs wordpress-changes.php next to it,
 * which describes how changes are followed. Set ABSPATH_DIR, or put both next to wp-load.php. Not for multisite.
 */

require_once __DIR__ . '/wordpress-changes.php';

$GLOBALS['wp_filter'] = ['plugins_loaded' => [PHP_INT_MIN => [[
    'function' => static function (): void {
        HowdahWordPress::recorded();
        // The database connection stays open. If the database server closes it, the worker is lost, but not the
        // request.
        Howdah\snapshot();
        HowdahWordPress::follow();
    },
    'accepted_args' => 0,
]]]];
HowdahWordPress::record();

require_once rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/') . '/wp-load.php';
