<?php
/**
 * What wordpress-boot.php and wordpress-front.php share: a snapshot of WordPress that follows its database.
 *
 * What WordPress, its plugins and its theme read from the database while they boot is written down: the options by name, other
 * queries with a hash of their result. Each request asks the database again, as it would without a snapshot, and compares. If
 * anything differs (a plugin was switched on, another theme, new permalinks, a changed widget), the worker boots anew and
 * the request runs on that boot: no request sees an old one. What the boot has not read may change as it likes.
 */

final class HowdahWordPress
{
    /** Options that change without changing what a boot makes of them: the list of what is to be done when. */
    private const IGNORED = ['cron'];

    /** Hooks of WordPress that are used until the snapshot. */
    private const HOOKS = ['all' => 'noteOption', 'query' => 'noteQuery', 'option_siteurl' => 'useAddress',
        'pre_get_ready_cron_jobs' => 'noTasks'];

    /** Names of the options that the boot has read, then their values; null for one that does not exist. */
    private static array $options = [];

    /** Other queries of the boot, with a hash of what they returned. */
    private static array $queries = [];

    /** The part of wp-includes/vars.php that looks at the request. */
    private static ?Closure $variables = null;

    /** Before WordPress loads. Hooks may be set already then (WP_Hook::build_preinitialized_hooks). */
    public static function record(): void
    {
        foreach (self::HOOKS as $hook => $method) {
            $GLOBALS['wp_filter'][$hook][PHP_INT_MAX][] = ['function' => [self::class, $method], 'accepted_args' => 1];
        }
        // The request that the snapshot is for, as far as it is known: WordPress and plugins look at it while they load.
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

    /** Due tasks are looked for in the requests. */
    public static function noTasks(): array
    {
        return [];
    }

    /** Addresses that are made while WordPress loads have the site's scheme and host, as in a request for it. */
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

    /** The result of the last query, as long as it is there. */
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

    /** At the snapshot. */
    public static function recorded(): void
    {
        global $wpdb;
        self::noteResult();
        foreach (self::HOOKS as $hook => $method) {
            remove_filter($hook, [self::class, $method], PHP_INT_MAX);
        }
        // What the boot has seen is in the cache. What it has not looked for there was answered by a plugin.
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
                error_log("A query of the boot has another result each time, so its changes are not followed: $query");
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

    /** First in each request. */
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

    /** Something that the boot has read and that is not so any more, or null. */
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

    /** Options that are not loaded together, all at once; get_option() finds them in the cache. */
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
