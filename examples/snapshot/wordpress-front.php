<?php
/**
 * WordPress in snapshot mode, for visitors' pages:
 * howdah serve /path/to/wordpress --mode snapshot --boot wordpress-front.php
 *
 * Boots WordPress completely, hooks `init` and `wp_loaded` included, and takes the snapshot there. That saves more time
 * than wordpress-boot.php, but the boot runs without a visitor's request. The code below repeats what WordPress itself
 * reads from the request. It does not repeat what plugins and themes read in those hooks: check yours before you use
 * this.
 *
 * Only for index.php: give all other scripts a classic pool, see README.md. Needs wordpress-changes.php next to it,
 * which describes how changes of the database are followed; changed files need `howdah reload` or the setting `watch`.
 * The customizer's preview does not work on the snapshot. WP_HOME and WP_SITEURL must not depend on the request. Set
 * ABSPATH_DIR, or put both files next to wp-load.php. Not for multisite. `warmup = ["/"]` in howdah.toml compiles a
 * page's regular expressions before the snapshot.
 */

require_once __DIR__ . '/wordpress-changes.php';
HowdahWordPress::record();
require_once rtrim(getenv('ABSPATH_DIR') ?: __DIR__, '/') . '/wp-load.php';

// For each page of a block theme, WordPress reads all template files several times. Read them once here instead.
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
    // Settings and styles of WordPress and of the theme; each request reads those of users.
    WP_Theme_JSON_Resolver::get_merged_data('theme');
    add_filter('pre_get_block_templates', static function ($templates, $query, $type) use ($from_files) {
        // Answers only the query of a page: templates by name. WordPress answers all others.
        if ($templates !== null || !isset($query['slug__in']) || array_diff(array_keys($query), ['slug__in', 'theme']) !== []) {
            return $templates;
        }
        // Edited templates are posts; if there are any, WordPress answers.
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

// Everything in wp-settings.php and in WordPress's own hooks that reads the request, in the original order.
wp_magic_quotes();
do_action('sanitize_comment_cookies');
// The cookies of the request identify the user.
$GLOBALS['current_user'] = null;
$GLOBALS['wp']->init();
_show_post_preview();
if (has_action('init', 'wp_cron') || has_action('wp_loaded', '_wp_cron')) {
    wp_cron();
}
