<?php
/**
 * WordPress in snapshot mode, for what visitors read: howdah serve /path/to/wordpress --mode snapshot --boot wordpress-front.php
 *
 * Boots WordPress to its end, hooks `init` and `wp_loaded` included, and takes the snapshot there. That saves more than
 * wordpress-boot.php, but the snapshot has seen a request without a visitor. What WordPress had read of the request is read again
 * below. What plugins and themes read of the request in those hooks is not: look at yours before you use this.
 *
 * Only for index.php. Give /wp-admin/*, /wp-login.php, /xmlrpc.php, /wp-comments-post.php and all other scripts a classic pool: they
 * define constants (WP_ADMIN, DOING_AJAX) before WordPress loads. The customizer's preview does not work on the snapshot.
 * Active plugins, the theme, widgets and the language are those of the boot: `howdah reload` after changing them.
 * WP_HOME and WP_SITEURL must not depend on the request. Set ABSPATH_DIR or put this file beside wp-load.php.
 */

$directory = rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/');
require_once $directory . '/wp-load.php';

Howdah\snapshot();

(static function (): void {
    // As wp-settings.php does at its start, and in its order.
    wp_fix_server_vars();
    timer_start();
    // Options and posts may have changed since the boot.
    wp_cache_flush();
    wp_magic_quotes();
    do_action('sanitize_comment_cookies');
    $GLOBALS['wp_rewrite']->init();
    // Who asks is in the cookies of the request.
    $GLOBALS['current_user'] = null;
    $GLOBALS['wp']->init();
})();
