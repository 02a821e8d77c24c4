<?php
// The parts of WordPress that its recipe calls: no database, no plugins, no theme.
define('ABSPATH', __DIR__ . '/');
define('WPINC', 'wp-includes');
define('WP_CONTENT_DIR', __DIR__ . '/wp-content');
define('WP_PLUGIN_DIR', WP_CONTENT_DIR . '/plugins');
define('WPMU_PLUGIN_DIR', WP_CONTENT_DIR . '/mu-plugins');
define('WP_LANG_DIR', WP_CONTENT_DIR . '/languages');
define('WP_START_TIMESTAMP', microtime(true));
$wp_version = '6.4';
require __DIR__ . '/wp-config.php';

final class Database
{
    public ?string $last_query = null;
    public ?array $last_result = null;

    public function flush(): void
    {
    }
}

final class Wp
{
    public function init(): void
    {
    }
}

$wpdb = new Database();
$wp = new Wp();

function get_theme_root(): string
{
    return WP_CONTENT_DIR . '/themes';
}

function get_stylesheet_directory(): string
{
    return get_theme_root() . '/own';
}

function get_template_directory(): string
{
    return get_theme_root() . '/own';
}

foreach (['is_multisite', 'wp_using_ext_object_cache', 'wp_is_json_request', 'wp_cache_get'] as $name) {
    eval("function $name(...\$any) { return false; }");
}
foreach (['wp_load_alloptions', 'wp_get_mu_plugins', 'wp_get_active_and_valid_plugins'] as $name) {
    eval("function $name(): array { return []; }");
}
$nothing = ['remove_filter', 'wp_fix_server_vars', 'wp_maintenance', 'timer_start', 'wp_cache_flush', 'wp_magic_quotes', 'do_action',
    '_show_post_preview', 'has_action'];
foreach ($nothing as $name) {
    eval("function $name(...\$any) { return null; }");
}
