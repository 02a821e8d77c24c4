<?php

/**
 * Boots WordPress once for the pages of visitors who are not logged in: the server runs this before WordPress's own
 * index.php.
 *
 * The boot runs to the end of wp-load.php, including the hooks `init` and `wp_loaded`; from there on, each request runs as
 * it would without a snapshot. WordPress itself has read parts of the request by then; these are read again, in its order
 * (Request). Each request reads the boot's options again, repeats its other SELECT queries, compares the results, and
 * checks the main files (Sources): if anything differs, the request runs on a new boot. Parts of the request that
 * plugins and the theme read in those hooks cannot be read again, so their code is searched for that first (Code). A
 * site with such a plugin or theme stays in classic mode, unless HOWDAH_WORDPRESS_TRUST names it.
 *
 * Blocks, in wordpress/blocks.php, makes the pages of block themes cheaper; the server appends that file to this one.
 *
 * The server sends only GET and HEAD requests of visitors who are not logged in to this boot. Written for WordPress 5.9 to
 * 6.9.
 */

declare(strict_types=1);

namespace Howdah\Recipes\WordPress;

/** Time when the boot began. A file that has changed since may have been read before the change. */
\define(__NAMESPACE__ . '\BEGAN', time());

/** Ends the boot: the server continues in classic mode. */
function give_up(string $why): never
{
    \frankenphp_log("recipe wordpress: $why", 8);
    exit(1);
}

/** Returns PHP code without comments, with one space between any two words. */
function words_of(string $file): string
{
    $words = [];
    foreach (\PhpToken::tokenize((string) @file_get_contents($file)) as $token) {
        if (!$token->isIgnorable()) {
            $words[] = $token->text;
        }
    }

    return implode(' ', $words);
}

/** The code of plugins, themes and the configuration, and the inputs that it reads. */
final class Code
{
    private const VARIABLES = ['$_GET', '$_POST', '$_REQUEST', '$_COOKIE', '$_SERVER', '$_FILES', '$_SESSION'];

    /** Functions that depend on the request or its sender, that respond, or whose result varies. */
    private const FUNCTIONS = [
        'filter_input', 'filter_input_array', 'filter_has_var', 'getallheaders', 'apache_request_headers', 'getenv',
        'header', 'header_remove', 'headers_sent', 'http_response_code', 'setcookie', 'setrawcookie', 'session_start', 'ob_start',
        'is_user_logged_in', 'wp_get_current_user', 'get_current_user_id', 'current_user_can', 'wp_set_current_user', 'is_super_admin',
        'wp_create_nonce', 'wp_verify_nonce', 'wp_nonce_url', 'wp_nonce_field', 'check_admin_referer', 'check_ajax_referer',
        'wp_get_referer', 'wp_get_raw_referer', 'wp_get_session_token', 'wp_validate_auth_cookie', 'wp_parse_auth_cookie',
        'wp_is_mobile', 'wp_is_json_request', 'is_ssl', 'determine_locale', 'get_user_locale', 'is_customize_preview',
        'wp_is_serving_rest_request', 'add_query_arg', 'remove_query_arg', 'wp_redirect', 'wp_safe_redirect', 'nocache_headers',
        'status_header', 'time', 'microtime', 'hrtime', 'date', 'gmdate', 'current_time', 'current_datetime', 'wp_date', 'date_i18n',
        'rand', 'mt_rand', 'random_int', 'random_bytes', 'uniqid', 'wp_rand', 'wp_generate_password', 'wp_generate_uuid4',
        'wp_remote_get', 'wp_remote_post', 'wp_remote_request', 'wp_safe_remote_get', 'wp_safe_remote_post', 'curl_init',
    ];

    /**
     * Plugins and themes up to these versions that were read, and run for two visitors with different addresses, headers and
     * cookies: what their code does before the hook wp is the same for all anonymous visitors.
     */
    private const CHECKED = [
        'akismet' => '5.6', 'advanced-custom-fields' => '6.8', 'classic-editor' => '1.6', 'contact-form-7' => '6.1',
        'hello-elementor' => '3.4', 'oceanwp' => '4.1',
    ];

    /** Plugins that must see each request before the hook wp: no setting makes them fit. */
    private const UNFIT = [
        'litespeed-cache' => 'it is a page cache', 'redirection' => 'it redirects at the hook init',
        'woocommerce' => 'it loads the cart of the visitor at the hook init',
        'w3-total-cache' => 'it is a page cache', 'wordfence' => 'its firewall checks each request at the hook init',
    ];

    /** Returns the loaded files of these, without WordPress's own. */
    public static function loaded(): array
    {
        $core = realpath(\ABSPATH) . '/';
        $own = [$core . \WPINC . '/', $core . 'wp-admin/'];
        $front = array_map(static fn (string $name): string => $core . $name, ['wp-load.php', 'wp-settings.php', 'index.php']);

        return array_values(array_filter(
            array_map(static fn (string $file): string => realpath($file) ?: $file, get_included_files()),
            static fn (string $file): bool => is_file($file)
                && !\in_array($file, $front, true) && !str_starts_with($file, $own[0]) && !str_starts_with($file, $own[1]),
        ));
    }

    /**
     * Returns the first obstacle: an unfit plugin, a choice by an unknown host, or a place that reads the request in a
     * plugin or theme that is not trusted; null if there is none.
     */
    public static function obstacle(array $files): ?string
    {
        $trusted = array_filter(array_map('trim', explode(',', (string) getenv('HOWDAH_WORDPRESS_TRUST'))));
        foreach ($files as $file) {
            $name = self::owner($file);
            if (isset(self::UNFIT[$name])) {
                return "$name: " . self::UNFIT[$name];
            }
            $isTrusted = \in_array($name, $trusted, true) || self::isChecked($name);
            if (self::choosesByAnUnknownHost($file)) {
                return "$file: it chooses by the host, which the boot does not know: serve each host by a [[site]] with only"
                    . ' that one in `hosts`';
            }
            $place = $isTrusted ? null : self::place($file);
            if ($place !== null) {
                $checked = isset(self::CHECKED[$name]) ? " ($name was checked up to " . self::CHECKED[$name] . ')' : '';

                return "$place: it may read the request while WordPress boots$checked; if it does not before the hook wp,"
                    . " put $name into HOWDAH_WORDPRESS_TRUST";
            }
        }

        return null;
    }

    /** Returns whether this plugin or theme is one of those that were checked, in no newer version. */
    private static function isChecked(string $name): bool
    {
        $heads = isset(self::CHECKED[$name]) ? [...glob(\WP_PLUGIN_DIR . "/$name/*.php") ?: [], get_theme_root() . "/$name/style.css"] : [];
        foreach ($heads as $file) {
            $head = (string) @file_get_contents($file, length: 8192);
            if (preg_match('/^[ \t\/*#@]*(?:Plugin|Theme) Name:/mi', $head) === 1
                && preg_match('/^[ \t\/*#@]*Version:\s*(\d+(?:\.\d+)?)/mi', $head, $found) === 1) {
                return version_compare($found[1], self::CHECKED[$name], '<=');
            }
        }

        return false;
    }

    /** Returns the plugin or theme of a file by its directory, or the file's name. */
    private static function owner(string $file): string
    {
        return self::addition($file) ?? basename($file);
    }

    /** Returns the plugin or theme of a file by its directory; null for the configuration. */
    private static function addition(string $file): ?string
    {
        foreach ([\WP_PLUGIN_DIR, \WPMU_PLUGIN_DIR, get_theme_root()] as $top) {
            $top = (realpath($top) ?: $top) . '/';
            if (str_starts_with($file, $top)) {
                return preg_replace('/\.php$/', '', strtok(substr($file, \strlen($top)), '/'));
            }
        }

        return null;
    }

    /** Returns whether the configuration could differ between the hosts of requests, for example by another database. */
    private static function choosesByAnUnknownHost(string $file): bool
    {
        $names = Request::knowsHost() ? 'HTTP_X_FORWARDED_HOST' : 'HTTP_HOST|SERVER_NAME|HTTP_X_FORWARDED_HOST';

        return self::addition($file) === null && preg_match("/\b($names)\b/", words_of($file)) === 1;
    }

    /**
     * Returns whether the configuration may use the word there. Allowed are: a proxy's header if all requests here use
     * HTTPS, and its consequences; values that rules of the server may set; the host without its port, if it is known; and
     * headers, if the boot has sent none.
     */
    private static function isTheSameForAll(array $words, int $at): bool
    {
        $text = static fn (int $from, int $to): string => strtr(implode('', \array_slice($words, max(0, $from), $to - $from)), '"', "'");
        $isKnown = Request::knowsHost();

        return match ($text($at, $at + 4)) {
            "\$_SERVER['HTTP_X_FORWARDED_PROTO']", "\$_SERVER['WORDPRESS_CONFIG']" => true,
            "\$_SERVER['HTTPS']", "\$_SERVER['SERVER_PORT']" => $words[$at + 4] === '=',
            "\$_SERVER['HTTP_HOST']" => $isKnown && $text($at - 4, $at) === "'/:.*/','',",
            "\$_SERVER['SERVER_NAME']" => $isKnown,
            default => $words[$at] === 'header' && preg_grep('/^X-Powered-By:/i', headers_list(), PREG_GREP_INVERT) === [],
        };
    }

    private static function place(string $file): ?string
    {
        $tokens = array_values(array_filter(
            \PhpToken::tokenize((string) file_get_contents($file)),
            static fn (\PhpToken $token): bool => !$token->isIgnorable(),
        ));
        $isConfiguration = basename($file) === 'wp-config.php';
        $variables = array_fill_keys(self::VARIABLES, true);
        $functions = array_fill_keys(self::FUNCTIONS, true);
        // `$GLOBALS['_GET']`, `php://input`, and functions that are called by name; short names are omitted, as they are
        // also ordinary words.
        $texts = array_map(static fn (string $name): string => substr($name, 1), self::VARIABLES);
        $named = array_filter(self::FUNCTIONS, static fn (string $name): bool => str_contains($name, '_'));
        $texts = array_fill_keys(['php://input', ...$texts, ...$named], true);
        foreach ($tokens as $at => $token) {
            $before = $tokens[$at - 1]->id ?? null;
            $found = match ($token->id) {
                T_VARIABLE => isset($variables[$token->text]),
                T_STRING, T_NAME_FULLY_QUALIFIED => isset($functions[strtolower(ltrim($token->text, '\\'))])
                    && ($tokens[$at + 1]->text ?? '') === '('
                    && !\in_array($before, [T_FUNCTION, T_OBJECT_OPERATOR, T_NULLSAFE_OBJECT_OPERATOR, T_DOUBLE_COLON, T_NEW], true),
                T_CONSTANT_ENCAPSED_STRING => isset($texts[trim($token->text, '\'"')]),
                default => false,
            };
            if ($found && !($isConfiguration && self::isTheSameForAll(array_column($tokens, 'text'), $at))) {
                return "$file:{$token->line} has {$token->text}";
            }
        }

        return null;
    }
}

/** The data that the boot has read, and a check for changes. */
final class Sources
{
    /** An option whose changes do not affect the boot: the list of scheduled tasks. */
    private const IGNORED = ['cron'];

    /** Hooks that are set until the snapshot. */
    private const HOOKS = ['all' => 'noteOption', 'query' => 'noteQuery', 'pre_get_ready_cron_jobs' => 'noTasks'];

    /** Maximum number of files that a request can check without a noticeable delay. */
    private const MOST_FILES = 100;

    /** Options that the boot has read: names, then their values; null for one that does not exist. */
    private static array $options = [];

    /** Other SELECT queries of the boot, with a hash of their results. */
    private static array $queries = [];

    /** Files, with the marks that change with them. */
    private static array $files = [];

    private static bool $noting = true;

    /** Runs before WordPress loads: hooks can already be set then. */
    public static function record(): void
    {
        foreach (self::HOOKS as $hook => $method) {
            $GLOBALS['wp_filter'][$hook][PHP_INT_MAX][] = ['function' => [self::class, $method], 'accepted_args' => 1];
        }
    }

    public static function noteOption(string $hook): void
    {
        if (str_starts_with($hook, 'pre_option_')) {
            self::$options[substr($hook, \strlen('pre_option_'))] = null;
        }
    }

    public static function noteQuery(mixed $query): mixed
    {
        self::noteResult();

        return $query;
    }

    /** Leaves due tasks to the requests. */
    public static function noTasks(): array
    {
        return [];
    }

    /** Runs a function whose queries each request repeats anyway. */
    public static function without(\Closure $act): void
    {
        self::noteResult();
        self::$noting = false;
        $act();
        $GLOBALS['wpdb']->flush();
        self::$noting = true;
    }

    /** Runs at the snapshot. */
    public static function recorded(array $code): void
    {
        self::noteResult();
        foreach (self::HOOKS as $hook => $method) {
            remove_filter($hook, [self::class, $method], PHP_INT_MAX);
        }
        self::keepOptions();
        foreach (self::$queries as $query => $hash) {
            if (self::ask($query) !== $hash) {
                give_up("a query of the boot has another result each time: $query");
            }
        }
        $files = [...self::mainFiles(), ...$code];
        self::$files = self::marks(\count($files) > self::MOST_FILES ? self::mainFiles() : $files);
        $now = time();
        foreach (array_keys(self::$files) as $file) {
            $changed = (int) @filectime($file);
            if ($changed >= \constant(__NAMESPACE__ . '\BEGAN') && $changed <= $now) {
                self::$files[$file] = 'changed while WordPress booted';
            }
        }
    }

    /** Returns something that the boot has read and that has changed since; loads the options for that check. */
    public static function changed(): ?string
    {
        foreach (self::$files as $file => $mark) {
            if (self::mark($file) !== $mark) {
                \function_exists('opcache_invalidate') && is_file($file) && @opcache_invalidate($file);

                return "$file has changed";
            }
        }
        $now = wp_load_alloptions();
        $missing = array_diff_key(self::$options, $now);
        if ($missing !== []) {
            $now += self::load(array_keys($missing));
        }
        foreach (self::$options as $name => $value) {
            $current = isset($now[$name]) ? (string) $now[$name] : null;
            $expires = $value !== null && preg_match('/^_(site_)?transient_timeout_/', (string) $name) === 1;
            if ($current !== $value || ($expires && (int) $value < time())) {
                return "option $name";
            }
        }
        foreach (self::$queries as $query => $hash) {
            if (self::ask($query) !== $hash) {
                return $query;
            }
        }

        return null;
    }

    /** Notes the result of the last query while it is available. */
    private static function noteResult(): void
    {
        global $wpdb;
        $query = $wpdb->last_query ?? null;
        if (self::$noting && \is_string($query) && preg_match('/^\s*SELECT\b/i', $query) && !str_contains($query, 'FOUND_ROWS()')
            && !preg_match('/^\s*SELECT (option_name, )?option_value FROM/', $query)) {
            self::$queries[$query] = self::hash();
        }
    }

    private static function hash(): string
    {
        return md5(serialize($GLOBALS['wpdb']->last_result));
    }

    private static function ask(string $query): string
    {
        $GLOBALS['wpdb']->query($query);

        return self::hash();
    }

    /**
     * Keeps the options that the boot has found in the cache. An option that it did not look up there was provided by a
     * plugin.
     */
    private static function keepOptions(): void
    {
        $loaded = wp_load_alloptions();
        $absent = wp_cache_get('notoptions', 'options') ?: [];
        foreach (array_keys(self::$options) as $name) {
            $value = $loaded[$name] ?? wp_cache_get($name, 'options');
            $isAbsent = isset($absent[$name]) && !isset($loaded[$name]);
            if (\in_array($name, self::IGNORED, true) || ($value === false && !$isAbsent)) {
                unset(self::$options[$name]);
            } else {
                self::$options[$name] = $isAbsent ? null : (string) $value;
            }
        }
    }

    /** Loads options that are not autoloaded, in one query; get_option() finds them in the cache. */
    private static function load(array $names): array
    {
        global $wpdb;
        $places = implode(', ', array_fill(0, \count($names), '%s'));
        $asked = $wpdb->prepare("SELECT option_name, option_value FROM $wpdb->options WHERE option_name IN ($places)", $names);
        $found = array_column($wpdb->get_results($asked), 'option_value', 'option_name');
        foreach ($found as $name => $value) {
            wp_cache_set($name, $value, 'options');
        }
        wp_cache_set('notoptions', array_fill_keys(array_diff($names, array_keys($found)), true), 'options');

        return $found;
    }

    /** Returns the main files of every WordPress; a directory changes when an entry is added or removed. */
    private static function mainFiles(): array
    {
        $files = [\ABSPATH . 'index.php', \ABSPATH . \WPINC . '/version.php', \WP_CONTENT_DIR, \WPMU_PLUGIN_DIR, \WP_LANG_DIR];
        $config = \ABSPATH . 'wp-config.php';
        $files[] = is_file($config) ? $config : \dirname(\ABSPATH) . '/wp-config.php';
        foreach (array_unique([get_stylesheet_directory(), get_template_directory()]) as $theme) {
            $parts = ['', '/style.css', '/functions.php', '/theme.json', '/templates', '/parts', '/patterns', '/styles'];
            $files = [...$files, ...array_map(static fn (string $part): string => $theme . $part, $parts)];
            $files = [...$files, ...(glob("$theme/{templates,parts}/*.html", GLOB_BRACE) ?: [])];
        }

        return [...$files, ...wp_get_mu_plugins(), ...wp_get_active_and_valid_plugins()];
    }

    private static function marks(array $files): array
    {
        $files = array_unique($files);

        return array_combine($files, array_map(self::mark(...), $files));
    }

    private static function mark(string $file): string
    {
        $status = @stat($file);

        return $status === false ? '' : "{$status['mtime']} {$status['ino']} {$status['size']}";
    }
}

/** The parts of a request that WordPress reads while it loads. */
final class Request
{
    /** The part of wp-includes/vars.php that reads the request. */
    private static ?\Closure $variables = null;

    private static bool $reconnects = false;

    /** The host of every request, if the server knows that there is only one. */
    private static ?string $host = null;

    public static function knowsHost(): bool
    {
        return self::$host !== null;
    }

    /** Sets the request that the boot is for, as far as it is known. */
    public static function assume(): void
    {
        self::$host = $_SERVER['HTTP_HOST'] ?? null;
        $host = self::$host ?? 'localhost';
        $_SERVER = ['PHP_SELF' => '/index.php', 'SCRIPT_NAME' => '/index.php', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET',
            'SERVER_PROTOCOL' => 'HTTP/1.1', 'REMOTE_ADDR' => '127.0.0.1', 'SERVER_NAME' => $host, 'HTTP_HOST' => $host]
            + $_SERVER;
        $GLOBALS['wp_filter']['option_siteurl'][PHP_INT_MAX][] = ['function' => [self::class, 'useAddress'], 'accepted_args' => 1];
    }

    /** Gives addresses that are made while WordPress loads the site's scheme and host, as in a request for it. */
    public static function useAddress(mixed $address): mixed
    {
        $parts = parse_url((string) $address);
        $_SERVER['SERVER_NAME'] = self::$host ?? $parts['host'] ?? 'localhost';
        $_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] . (isset($parts['port']) ? ':' . $parts['port'] : '');
        if (($parts['scheme'] ?? '') === 'https') {
            $_SERVER['HTTPS'] = 'on';
        }

        return $address;
    }

    /** Ends a boot that redirects: it has no page to serve. */
    public static function refuseRedirect(mixed $location): never
    {
        give_up(str_contains((string) $location, '/wp-admin/install.php')
            ? 'WordPress is not installed yet' : "WordPress redirects to $location while it boots");
    }

    /** Runs at the snapshot. */
    public static function prepare(): void
    {
        global $wpdb;
        remove_filter('option_siteurl', [self::class, 'useAddress'], PHP_INT_MAX);
        remove_filter('wp_redirect', [self::class, 'refuseRedirect'], PHP_INT_MAX);
        $code = '';
        foreach (\PhpToken::tokenize((string) file_get_contents(\ABSPATH . \WPINC . '/vars.php')) as $token) {
            if ($token->id === T_FUNCTION) {
                break;
            }
            $code .= $token->id === T_OPEN_TAG ? '' : $token->text;
        }
        self::$variables = eval("return static function (): void { $code };");
        // The keys of an encrypted connection cannot be in a snapshot.
        if (\defined('MYSQL_CLIENT_FLAGS') && (\MYSQL_CLIENT_FLAGS & \MYSQLI_CLIENT_SSL) !== 0) {
            self::$reconnects = $wpdb->close();
        }
    }

    /** Runs first in each request. */
    public static function begin(): void
    {
        wp_fix_server_vars();
        wp_maintenance();
        timer_start();
        \Howdah\redefine('WP_START_TIMESTAMP', microtime(true));
        self::$reconnects && $GLOBALS['wpdb']->db_connect();
        // Options, posts and users may have changed since the boot.
        wp_cache_flush();
        $changed = Sources::changed();
        if ($changed !== null) {
            \Howdah\boot_again($changed);
        }
        if (wp_is_json_request()) {
            ini_set('display_errors', '0');
        }
        (self::$variables)();
        wp_magic_quotes();
        do_action('sanitize_comment_cookies');
        // The user is identified by the request's cookies.
        $GLOBALS['current_user'] = null;
        $GLOBALS['wp']->init();
        _show_post_preview();
        if (has_action('init', 'wp_cron') || has_action('wp_loaded', '_wp_cron')) {
            wp_cron();
        }
    }
}

/** Runs before WordPress loads. */
(static function (): void {
    if (\Howdah\mode() !== 'snapshot') {
        give_up('this recipe needs snapshot mode');
    }
    $front = $_SERVER['SCRIPT_FILENAME'];
    // It runs in each request, but none of it runs before the boot.
    $own = '/^(?:define \( \'WP_USE_THEMES\' , true \) ; )?require(?:_once)? (?:\( )?'
        . '(?:__DIR__|dirname \( __FILE__ \)) \. \'\/wp-blog-header\.php\'(?: \))? ;(?: \?>)?$/';
    if (preg_match($own, words_of($front)) !== 1) {
        give_up("$front is not WordPress's own");
    }
    Sources::record();
    Request::assume();
    // Before its installation, WordPress redirects every request to install.php.
    $GLOBALS['wp_filter']['wp_redirect'][PHP_INT_MAX][] = ['function' => [Request::class, 'refuseRedirect'], 'accepted_args' => 1];
    $GLOBALS['wp_filter']['enable_loading_advanced_cache_dropin'][PHP_INT_MAX][] = ['accepted_args' => 1,
        'function' => static fn (bool $loads): bool => $loads && is_file(\WP_CONTENT_DIR . '/advanced-cache.php')
            ? give_up('a page cache (advanced-cache.php) responds before WordPress loads') : $loads];
})();

require_once \dirname($_SERVER['SCRIPT_FILENAME']) . '/wp-load.php';

(static function (): void {
    $obstacle = match (true) {
        version_compare($GLOBALS['wp_version'], '5.9', '<') => 'WordPress before 5.9',
        is_multisite() => 'multisite',
        wp_using_ext_object_cache() => 'an object cache of its own (object-cache.php), whose changes cannot be followed',
        default => Code::obstacle($code = Code::loaded()),
    };
    $obstacle === null || give_up($obstacle);
    Blocks::shareSettings();
    Sources::without(Blocks::keepTemplates(...));
    Sources::recorded($code);
    Request::prepare();
})();

\Howdah\snapshot();
Request::begin();
