<?php
/*
 * The application of tests/tests/snapshot/difference.rs: state of many kinds, made once at its start, and a report of all that a script
 * can see of it. Nothing in the report depends on time, chance or process.
 */

final class Singleton
{
    public static int $count = 0;
    public static array $list = [];
    private static ?self $instance = null;
    public array $seen = [];

    public static function instance(): self
    {
        return self::$instance ??= new self();
    }
}

trait Counts
{
    public static int $counted = 0;
}

final class UsesTrait
{
    use Counts;
}

enum Suit: string
{
    case Hearts = 'h';

    public static function visits(): int
    {
        static $n = 0;

        return $n++;
    }
}

final class Destructed
{
    public function __construct(public string $name)
    {
    }

    public function __destruct()
    {
        echo "[destructed $this->name]";
    }
}

final class Upper extends php_user_filter
{
    public function filter($in, $out, &$consumed, bool $closing): int
    {
        while ($bucket = stream_bucket_make_writeable($in)) {
            $bucket->data = strtoupper($bucket->data);
            $consumed += $bucket->datalen;
            stream_bucket_append($out, $bucket);
        }

        return PSFS_PASS_ON;
    }
}

final class Wrapper
{
    public $context;

    public function stream_open(): bool
    {
        return true;
    }

    public function url_stat(): array
    {
        return [];
    }
}

function counter(): int
{
    static $n = 0;

    return $n++;
}

function numbers(): Generator
{
    for ($n = 0; ; $n++) {
        yield $n;
    }
}

Singleton::instance();
$plain = 'as booted';
$pointer = ['first', 'second', 'third'];
$generator = numbers();
$generator->current();
$fiber = new Fiber(static function (): void {
    for ($n = 0; ; $n++) {
        Fiber::suspend($n);
    }
});
$fiberValue = $fiber->start();
$closure = (static function (): Closure {
    $n = 0;

    return static function () use (&$n): int {
        return $n++;
    };
})();
$weak = new WeakMap();
$storage = new SplObjectStorage();
$document = new DOMDocument();
$document->loadXML('<booted/>');
$simple = simplexml_load_string('<simple/>');
$file = fopen(__DIR__ . '/data.txt', 'r');
fgets($file);
$memory = fopen('php://memory', 'w+');
fwrite($memory, 'booted');
$database = class_exists('SQLite3') ? new SQLite3(':memory:') : null;
$database?->exec('CREATE TABLE t (n INT)');
putenv('BOOTED=1');
$destructed = new Destructed('boot');
define('BOOTED', 1);
register_shutdown_function(static function (): void {
    echo '[shutdown boot]';
});

/** Everything that depends on a site's directory or name. */
function neutral(mixed $value): mixed
{
    return json_decode(str_replace(json_encode(dirname(__DIR__, 2)), '"TOP"', str_replace(
        trim(json_encode(dirname(__DIR__, 2)), '"'),
        'TOP',
        json_encode($value, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE),
    )), true);
}

function short(mixed $value): string
{
    return substr(md5(json_encode(neutral($value))), 0, 8);
}

function report_values(): array
{
    global $plain, $pointer, $generator, $fiberValue, $weak, $storage, $document, $simple, $file, $memory, $database;

    return [
        'static' => [Singleton::$count, Singleton::$list, Singleton::instance()->seen, UsesTrait::$counted],
        'plain' => [$plain, current($pointer), count($pointer), $generator->current(), $fiberValue],
        'objects' => [count($weak), count($storage), spl_object_id(new stdClass())],
        'libraries' => [$document->saveXML(), $simple->asXML(), $database?->querySingle('SELECT count(*) FROM t')],
        'files' => [is_resource($file) ? ftell($file) : 'closed', is_resource($memory) ? stream_get_contents($memory, offset: 0) : 'closed'],
        'globals' => array_keys($GLOBALS),
    ];
}

function report_names(): array
{
    $included = array_map('basename', get_included_files());
    sort($included);

    return [
        // The name of an anonymous class ends with a number that depends on previously compiled code.
        'classes' => array_map(static fn ($name) => explode("\0", $name)[0], array_slice(get_declared_classes(), -12)),
        'functions' => get_defined_functions()['user'],
        'constants' => get_defined_constants(true)['user'] ?? [],
        'included' => $included,
        'extensions' => short(get_loaded_extensions()),
        'wrappers' => stream_get_wrappers(),
        'filters' => stream_get_filters(),
        'autoloaders' => count(spl_autoload_functions()),
        'autoload extensions' => spl_autoload_extensions(),
    ];
}

function report_settings(): array
{
    // Snapshot mode sets some of OPcache's on purpose.
    $settings = array_filter(ini_get_all(null, false), static fn ($name) => !str_starts_with($name, 'opcache.'), ARRAY_FILTER_USE_KEY);

    return [
        'ini' => short($settings),
        'environment' => array_map(getenv(...), ['LEAK', 'BOOTED', 'PATH', 'TZ', 'HOME']),
        'ini of note' => array_intersect_key($settings, ['precision' => 1, 'include_path' => 1, 'memory_limit' => 1, 'max_execution_time' => 1, 'error_log' => 1]),
        'directory' => getcwd(),
        'umask' => umask(),
        'locale' => [setlocale(LC_ALL, 0), localeconv()['decimal_point'], class_exists('Locale') ? Locale::getDefault() : ''],
        'zone' => date_default_timezone_get(),
        'multibyte' => [mb_internal_encoding(), mb_substitute_character(), mb_language(), mb_http_output(), mb_detect_order(), mb_regex_encoding()],
        'libxml' => [libxml_use_internal_errors(), count(libxml_get_errors())],
        'gettext' => function_exists('textdomain') ? textdomain(null) : '',
        'context' => stream_context_get_options(stream_context_get_default()),
        'gc' => gc_enabled(),
    ];
}

function report_handlers(): array
{
    $error = set_error_handler(null);
    restore_error_handler();
    $exception = set_exception_handler(null);
    restore_exception_handler();
    preg_match_all('/^Sig(?:Blk|Ign):.*$/m', file_get_contents('/proc/self/status'), $signals);

    return [
        'handlers' => [$error !== null, $exception !== null],
        'signals' => function_exists('pcntl_alarm')
            ? [pcntl_signal_get_handler(SIGUSR1), pcntl_signal_get_handler(SIGALRM), pcntl_async_signals(), pcntl_alarm(0) > 0] : [],
        'kernel' => $signals[0],
        'buffers' => ob_list_handlers(),
        'client' => [connection_status(), ignore_user_abort()],
    ];
}

function report_last(): array
{
    return [
        'errors' => [error_get_last(), error_reporting(), json_last_error(), preg_last_error()],
        'openssl' => function_exists('openssl_error_string') ? openssl_error_string() : '',
        'sockets' => function_exists('socket_last_error') ? socket_last_error() : '',
        'posix' => function_exists('posix_get_last_error') ? posix_get_last_error() : '',
        'intl' => function_exists('intl_get_error_code') ? intl_get_error_code() : '',
        'strtok' => strtok(' '),
        'session' => [session_status(), session_id(), session_name(), session_get_cookie_params(), session_cache_limiter(), isset($_SESSION)],
        'answer' => [http_response_code(), headers_sent()],
        'request' => [$_GET, $_POST, $_COOKIE, $_FILES, $_SERVER['REQUEST_URI'], $_SERVER['REQUEST_METHOD'], file_get_contents('php://input')],
    ];
}

function report(): string
{
    $all = report_last() + report_handlers() + report_settings() + report_names() + report_values();

    return json_encode(neutral($all), JSON_UNESCAPED_SLASHES) . "\n";
}
