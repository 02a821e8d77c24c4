<?php
/**
 * Shared by wordpress-boot.php and wordpress-front.php: a snapshot of WordPress that follows its database.
 *
 * Records what WordPress, its plugins and its theme read from the database while they boot: options by name, other
 * queries with a hash of their result. Each request queries the database again, as it would without a snapshot, and
 * compares. If anything differs (an activated plugin, another theme, new permalinks, a changed widget), the worker
 * boots again and the request runs on that boot: no request sees an outdated one. Data that the boot has not read may
 * change freely.
 */

final class HowdahWordPress
{
    /** Options whose value does not affect the boot: the schedule of tasks. */
    private const IGNORED = ['cron'];

    /** WordPress hooks that are used until the snapshot. */
    private const HOOKS = ['all' => 'noteOption', 'query' => 'noteQuery', 'option_siteurl' => 'useAddress',
        'pre_get_ready_cron_jobs' => 'noTasks'];

    /** Names of the options that the boot has read; from the snapshot on with values, null for missing ones. */
    private static array $options = [];

    /** Other queries of the boot, with a hash of their result. */
    private static array $queries = [];

    /** The part of wp-includes/vars.php that reads the request. */
    private static ?Closure $variables = null;

    /** Called before WordPress loads, when hooks can already be set (WP_Hook::build_preinitialized_hooks). */
    public static function record(): void
    {
        foreach (self::HOOKS as $hook => $method) {
            $GLOBALS['wp_filter'][$hook][PHP_INT_MAX][] = ['function' => [self::class, $method], 'accepted_args' => 1];
        }
        // A typical request, as far as it is known: WordPress and plugins read it while they load.
        $_SERVER = ['PHP_SELF' => '/index.php', 'SCRIPT_NAME' => '/index.php', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET',
            'SERVER_PROTOCOL' => 'HTTP/1.1', 'REMOTE_ADDR' => '127.0.0.1'] + $_SERVER;
    }

    public static function noteOption(string $hook): void
    {
        if (str_starts_with($hook, 'pre_option_')) {
            self::$options[substr($hook, strlen('pre_option_'))] = null;
        }
    }

    public static function noteQuery(string $query): string
    {
        self::noteResult();

        return $query;
    }

    /** Requests look for due tasks, the boot does not. */
    public static function noTasks(): array
    {
        return [];
    }

    /** Gives URLs that are built while WordPress loads the site's scheme and host, as in a request. */
    public static function useAddress(mixed $address): mixed
    {
        $parts = parse_url((string) $address);
        $_SERVER['SERVER_NAME'] = $parts['host'] ?? 'localhost';
        $_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] . (isset($parts['port']) ? ':' . $parts['port'] : '');
        if (($parts['scheme'] ?? '') === 'https') {
            $_SERVER['HTTPS'] = 'on';
        }

        return $address;
    }

    /** Records the result of the last query before the next one replaces it. */
    private static function noteResult(): void
    {
        global $wpdb;
        $query = $wpdb->last_query ?? null;
        if (is_string($query) && preg_match('/^\s*SELECT\b/i', $query) && !str_contains($query, 'FOUND_ROWS()')
            && !preg_match('/^\s*SELECT (option_name, )?option_value FROM/', $query)) {
            self::$queries[$query] = self::hash($wpdb->last_result);
        }
    }

    private static function hash(mixed $rows): string
    {
        return md5(serialize($rows));
    }

    /** Called right before the snapshot. */
    public static function recorded(): void
    {
        global $wpdb;
        self::noteResult();
        foreach (self::HOOKS as $hook => $method) {
            remove_filter($hook, [self::class, $method], PHP_INT_MAX);
        }
        // Options that the boot has read are in the cache. If one is not, a plugin supplied its value.
        $loaded = wp_load_alloptions();
        $absent = wp_cache_get('notoptions', 'options') ?: [];
        foreach (array_keys(self::$options) as $name) {
            $value = $loaded[$name] ?? wp_cache_get($name, 'options');
            if (in_array($name, self::IGNORED, true) || ($value === false && !isset($loaded[$name]) && !isset($absent[$name]))) {
                unset(self::$options[$name]);
            } else {
                self::$options[$name] = isset($absent[$name]) && !isset($loaded[$name]) ? null : (string) $value;
            }
        }
        foreach (self::$queries as $query => $hash) {
            $wpdb->query($query);
            if (self::hash($wpdb->last_result) !== $hash) {
                error_log("A query of the boot returns another result each time; ignoring its changes: $query");
                unset(self::$queries[$query]);
            }
        }
        self::readVariables();
    }

    private static function readVariables(): void
    {
        $code = '';
        foreach (token_get_all((string) file_get_contents(ABSPATH . WPINC . '/vars.php')) as $token) {
            if (is_array($token) && $token[0] === T_FUNCTION) {
                break;
            }
            $code .= is_array($token) ? ($token[0] === T_OPEN_TAG ? '' : $token[1]) : $token;
        }
        self::$variables = eval("return static function (): void { $code };");
    }

    /** Called at the start of each request. */
    public static function follow(): void
    {
        wp_fix_server_vars();
        wp_maintenance();
        timer_start();
        \Howdah\redefine('WP_START_TIMESTAMP', microtime(true));
        self::emptyCache();
        $changed = self::changed();
        if ($changed !== null) {
            Howdah\boot_again($changed);
        }
        (self::$variables)();
    }

    /** Options, posts and users may have changed since the boot. A cache outside of the process stays. */
    private static function emptyCache(): void
    {
        if (!wp_using_ext_object_cache()) {
            wp_cache_flush();
        } elseif (function_exists('wp_cache_supports') && wp_cache_supports('flush_runtime')) {
            wp_cache_flush_runtime();
        } else {
            wp_cache_init();
            wp_start_object_cache();
        }
    }

    /** Returns something that has changed since the boot read it, or null. */
    private static function changed(): ?string
    {
        global $wpdb;
        $now = wp_load_alloptions();
        $missing = array_diff_key(self::$options, $now);
        if ($missing !== []) {
            $now += self::load(array_keys($missing));
        }
        foreach (self::$options as $name => $value) {
            $current = isset($now[$name]) ? (string) $now[$name] : null;
            $expires = preg_match('/^_(site_)?transient_timeout_/', $name) === 1;
            if ($current !== $value || ($expires && $value !== null && (int) $value < time())) {
                return "option $name";
            }
        }
        foreach (self::$queries as $query => $hash) {
            $wpdb->query($query);
            if (self::hash($wpdb->last_result) !== $hash) {
                return $query;
            }
        }

        return null;
    }

    /** Loads options that are not autoloaded with one query; get_option() then finds them in the cache. */
    private static function load(array $names): array
    {
        global $wpdb;
        $places = implode(', ', array_fill(0, count($names), '%s'));
        $rows = $wpdb->get_results(
            $wpdb->prepare("SELECT option_name, option_value FROM $wpdb->options WHERE option_name IN ($places)", $names)
        );
        $found = array_column($rows, 'option_value', 'option_name');
        foreach ($found as $name => $value) {
            wp_cache_set($name, $value, 'options');
        }
        wp_cache_set('notoptions', array_fill_keys(array_diff($names, array_keys($found)), true), 'options');

        return $found;
    }
}
