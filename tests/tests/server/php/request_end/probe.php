<?php
// The initial state that a script can see, by the names in docs/internals/request-state.md.
if (!class_exists('Contexted', false)) {
    class Contexted
    {
        public $context;
        public static $seen;
        public function stream_open(): bool
        {
            self::$seen = $this->context ? stream_context_get_options($this->context) : null;
            return false;
        }
        public function url_stat(): array
        {
            return [];
        }
    }
}
$has = fn (string $extension) => extension_loaded($extension);
$of = fn (string $function, ...$arguments) => function_exists($function) ? $function(...$arguments) : null;
$ini = ini_get_all(null, false);
unset($ini['max_execution_time']);
echo json_encode([
    'error_get_last()' => error_get_last(),
    'json_last_error()' => json_last_error(),
    'preg_last_error()' => preg_last_error(),
    'libxml_get_errors()' => count($has('libxml') ? libxml_get_errors() : []),
    'libxml_get_last_error()' => $has('libxml') ? libxml_get_last_error() : null,
    'libxml_use_internal_errors()' => $has('libxml') ? libxml_use_internal_errors() : null,
    'libxml_set_external_entity_loader()' => $has('libxml') && $has('dom')
        ? (@(new DOMDocument())->loadXML('<!DOCTYPE a SYSTEM "x:y"><a/>', LIBXML_DTDLOAD | LIBXML_NOERROR | LIBXML_NOWARNING) ? $GLOBALS['asked_for_entity'] ?? 'nobody' : 'failed')
        : null,
    'DateTime::getLastErrors()' => DateTime::getLastErrors(),
    'intl_get_error_message()' => $of('intl_get_error_message'),
    'mysqli_connect_error()' => $has('mysqli') ? mysqli_connect_error() : null,
    'openssl_error_string()' => $of('openssl_error_string'),
    'socket_last_error()' => $of('socket_last_error'),
    'posix_get_last_error()' => $of('posix_get_last_error'),
    'output_add_rewrite_var()' => (function () {
        ob_start();
        echo '<a href="x.php">';
        return [ob_list_handlers(), ob_get_clean()];
    })(),
    'strtok()' => strtok(' '),
    'mb_ereg_search_init()' => $has('mbstring') && function_exists('mb_ereg_search_getregs') ? mb_ereg_search_getregs() : null,
    'mb_get_info(): illegal_chars' => $has('mbstring') ? mb_get_info('illegal_chars') : null,
    'mt_srand()' => [mt_rand() === ($GLOBALS['seeded'] ??= (function () { mt_srand(7); return mt_rand(); })())],
    'register_tick_function()' => (function () {
        $GLOBALS['ticks'] = 0;
        declare(ticks=1) { $one = 1; }
        return $GLOBALS['ticks'];
    })(),
    'stream_context_set_default()' => stream_context_get_options(stream_context_get_default()),
    'set_time_limit()' => ini_get('max_execution_time'),
    'umask()' => umask(),
    "ini_set('open_basedir')" => ini_get('open_basedir'),
    'ini_set()' => $ini,
    'error_reporting()' => error_reporting(),
    'set_error_handler()' => (function () { $found = set_error_handler(null); restore_error_handler(); return $found !== null; })(),
    'set_exception_handler()' => (function () { $found = set_exception_handler(null); restore_exception_handler(); return $found !== null; })(),
    'date_default_timezone_set()' => date_default_timezone_get(),
    'setlocale()' => setlocale(LC_ALL, 0),
    'putenv()' => getenv('PROBED_BY_TEST', true),
    '$_ENV' => $_ENV['PROBED_BY_TEST'] ?? null,
    'mb_internal_encoding()' => $has('mbstring') ? [mb_internal_encoding(), mb_detect_order(), mb_substitute_character(), mb_language()] : null,
    'mb_regex_encoding()' => $of('mb_regex_encoding'),
    'stream_wrapper_register()' => in_array('probed', stream_get_wrappers(), true),
    'stream_filter_register()' => in_array('probed', stream_get_filters(), true),
    'spl_autoload_register()' => count(spl_autoload_functions()),
    'assert_options()' => @assert_options(ASSERT_CALLBACK) !== null,
    'session_id(), $_SESSION, session_status()' => $has('session') ? [session_id(), $_SESSION ?? null, session_status()] : null,
    'session_name()' => $has('session') ? session_name() : null,
    'ob_start()' => ob_get_level(),
    'header()' => [headers_list(), http_response_code(), headers_sent()],
    'connection_status()' => connection_status(),
    'ignore_user_abort()' => ignore_user_abort(),
    'gc_disable()' => gc_enabled(),
    'globals' => isset($GLOBALS['left_by_a_request']),
    'static properties' => class_exists('Left', false) ? Left::$by : null,
    'constants' => defined('LEFT_BY_A_REQUEST'),
    'classes' => class_exists('LeftByARequest', false),
    'filter_input()' => $has('filter') ? filter_input(INPUT_GET, 'left') : null,
    'pcntl_async_signals()' => $of('pcntl_async_signals'),
    'textdomain(), bindtextdomain()' => $of('textdomain', null),
    'clearstatcache()' => is_file(sys_get_temp_dir() . '/howdah-probe-' . $_SERVER['SERVER_PORT']),
    'http_get_last_response_headers()' => $of('http_get_last_response_headers'),
    'session_set_save_handler()' => $of('session_module_name'),
    'libxml_set_streams_context()' => $has('simplexml') ? (function () {
        Contexted::$seen = 'not opened';
        stream_wrapper_register('contexted', Contexted::class);
        @simplexml_load_file('contexted://x');
        stream_wrapper_unregister('contexted');
        return Contexted::$seen;
    })() : null,
], JSON_PARTIAL_OUTPUT_ON_ERROR);
