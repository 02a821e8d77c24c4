<?php
// Changes all state that the probe reports.
@trigger_error('left', E_USER_WARNING);
json_decode('{');
@preg_match('/(?:\D+|<\d+>)*[!?]/', str_repeat('foobar ', 20000));
if (extension_loaded('libxml')) {
    libxml_use_internal_errors(true);
    simplexml_load_string('<secret><b></secret>');
    libxml_set_external_entity_loader(function () { $GLOBALS['asked_for_entity'] = 'the last request'; return null; });
}
date_create('99-99-99 nonsense');
extension_loaded('intl') && collator_create('x@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@');
if (extension_loaded('mysqli')) {
    mysqli_report(MYSQLI_REPORT_OFF);
    @mysqli_connect('localhost', 'visitor', '', '', 0, '/nowhere');
}
function_exists('openssl_pkey_get_private') && @openssl_pkey_get_private('nonsense');
function_exists('socket_create') && @socket_connect(socket_create(AF_UNIX, SOCK_STREAM, 0), '/nowhere');
function_exists('posix_kill') && posix_kill(999999999, 0);
output_add_rewrite_var('left', 'visitor');
strtok('a secret of the visitor', ' ');
if (extension_loaded('mbstring')) {
    if (function_exists('mb_ereg_search_init')) {
        mb_ereg_search_init('a secret', 's');
        mb_ereg_search();
        mb_regex_encoding('EUC-JP');
    }
    mb_convert_encoding("\xff\xfe\xfd", 'UTF-8', 'UTF-8');
    mb_internal_encoding('EUC-JP');
    mb_detect_order(['EUC-JP']);
    mb_substitute_character(0x3f3f);
}
mt_srand(7);
register_tick_function(function () { $GLOBALS['ticks'] = ($GLOBALS['ticks'] ?? 0) + 1; });
stream_context_set_default(['http' => ['header' => 'Authorization: visitor']]);
set_time_limit(77);
umask(0111);
ini_set('open_basedir', '/');
ini_set('user_agent', 'visitor');
ini_set('precision', '3');
error_reporting(E_ALL & ~E_USER_DEPRECATED & ~E_NOTICE);
set_error_handler(fn () => true);
set_exception_handler(fn () => null);
date_default_timezone_set('Asia/Tokyo');
setlocale(LC_ALL, 'C.UTF-8');
putenv('PROBED_BY_TEST=visitor');
$_ENV['PROBED_BY_TEST'] = 'visitor';
chdir('/');
if (!class_exists('LeftByARequest', false)) {
    class LeftByARequest
    {
        public $context;
    }
    class Left
    {
        public static $by;
    }
    stream_wrapper_register('probed', LeftByARequest::class);
    stream_filter_register('probed', LeftByARequest::class);
}
Left::$by = 'visitor';
spl_autoload_register(function () {});
@assert_options(ASSERT_CALLBACK, 'strlen');
extension_loaded('gettext') && textdomain('visitor');
$file = sys_get_temp_dir() . '/howdah-probe-' . $_SERVER['SERVER_PORT'];
touch($file);
is_file($file);
exec('rm ' . escapeshellarg($file));
if (function_exists('http_get_last_response_headers')) {
    @file_get_contents('http://127.0.0.1:' . $_SERVER['SERVER_PORT'] . '/ready.txt');
}
if (extension_loaded('simplexml')) {
    libxml_set_streams_context(stream_context_create(['http' => ['header' => 'Authorization: visitor']]));
}
if (extension_loaded('session')) {
    session_set_save_handler(new SessionHandler());
    session_name('VISITOR');
    session_start();
    $_SESSION['secret'] = 1;
}
header('X-Left: visitor');
http_response_code(202);
ob_start();
ignore_user_abort(true);
gc_disable();
$GLOBALS['left_by_a_request'] = 1;
defined('LEFT_BY_A_REQUEST') || define('LEFT_BY_A_REQUEST', 1);
function_exists('pcntl_async_signals') && pcntl_async_signals(true);
echo 'left';
