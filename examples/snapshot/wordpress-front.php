<?php
/**
 * WordPress in snapshot mode, for what visitors read: howdah serve /path/to/wordpress --mode snapshot --boot wordpress-front.php
 *
 * Boots WordPress to its end, hooks `init` and `wp_loaded` included, and takes the snapshot there. That saves more than
 * wordpress-boot.php, but the snapshot has seen a request without a visitor. What WordPress had read of the request is read again
 * below. What plugins and themes read of the request in those hooks is not: look at yours before you use this.
 *
 * Only for index.php: give all other scripts a classic pool, see README.md. Needs wordpress-changes.php beside it, and follows
 * changes of the database as that file says; changed files need `howdah reload` or the setting `watch`. The customizer's preview does
 * not work on the snapshot. WP_HOME and WP_SITEURL must not depend on the request. Set ABSPATH_DIR or put both files beside
 * wp-load.php. Not for multisite. With `warmup = ["/"]` in howdah.toml the regular expressions of a page are compiled before the
 * snapshot.
 */

require_once __DIR__ . '/wordpress-changes.php';
HowdahWordPress::record();
require_once rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/') . '/wp-load.php';

// A block theme's page takes its templates from files, and WordPress reads all of them several times for it. They are read here.
(static function (): void {
    if (!function_exists('wp_is_block_theme') || !wp_is_block_theme()) {
        return;
    }
    $from_files = [];
    foreach (['wp_template', 'wp_template_part'] as $type) {
        foreach (get_block_templates([], $type) as $template) {
            $from_files[$type][$template->slug] = $template;
        }
    }
    // Settings and styles of WordPress and of the theme; what users have set is read in the request.
    WP_Theme_JSON_Resolver::get_merged_data('theme');
    add_filter('pre_get_block_templates', static function ($templates, $query, $type) use ($from_files) {
        // Only the question that a page asks: templates with these names. The rest is WordPress's own.
        if ($templates !== null || !isset($query['slug__in']) || array_diff(array_keys($query), ['slug__in', 'theme']) !== []) {
            return $templates;
        }
        // Templates that were edited are posts; with any, WordPress does it all.
        static $edited = null;
        global $wpdb;
        $edited ??= $wpdb->get_var("SELECT 1 FROM $wpdb->posts WHERE post_type IN ('wp_template', 'wp_template_part') LIMIT 1") !== null;
        if ($edited || ($query['theme'] ?? get_stylesheet()) !== get_stylesheet()) {
            return null;
        }
        $asked = array_intersect_key($from_files[$type] ?? [], array_flip($query['slug__in']));
        $found = array_map(static fn (object $template) => clone $template, array_values($asked));

        return apply_filters('get_block_templates', $found, $query, $type);
    }, PHP_INT_MAX, 3);
})();

HowdahWordPress::recorded();
Howdah\snapshot();
HowdahWordPress::follow();

// What is left of wp-settings.php and of WordPress's own hooks that looks at the request, in their order.
wp_magic_quotes();
do_action('sanitize_comment_cookies');
// Who asks is in the cookies of the request.
$GLOBALS['current_user'] = null;
$GLOBALS['wp']->init();
_show_post_preview();
if (has_action('init', 'wp_cron') || has_action('wp_loaded', '_wp_cron')) {
    wp_cron();
}
