<?php
/**
 * WordPress in snapshot mode: howdah serve /path/to/wordpress --mode snapshot --boot wordpress-boot.php
 *
 * Loads WordPress, its plugins and its translations up to the hook `plugins_loaded` and takes the snapshot there. All that looks at
 * the request comes later: magic quotes of the superglobals, the theme, the current user, `init` and `wp_loaded` run in
 * every request, as they do without a snapshot. Set ABSPATH_DIR or put this file beside wp-load.php.
 */

$directory = rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/');

// Hooks may be set before WordPress loads (WP_Hook::build_preinitialized_hooks).
$GLOBALS['wp_filter'] = ['plugins_loaded' => [PHP_INT_MIN => [[
    'function' => static function (): void {
        // The database connection is opened anew in each request if it was an encrypted one; a plain one stays.
        Howdah\snapshot();
    },
    'accepted_args' => 0,
]]]];

require_once $directory . '/wp-load.php';
