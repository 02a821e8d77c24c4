<?php
$encoding = extension_loaded('mbstring') ? mb_internal_encoding(...) : fn () => null;
if (isset($_GET['set'])) {
    ini_set('precision', '3');
    setlocale(LC_ALL, 'C.UTF-8');
    date_default_timezone_set('Asia/Tokyo');
    $encoding('ISO-8859-1');
    chdir('/');
    umask(0);
    putenv('LEAK=1');
    $GLOBALS['leak'] = 1;
    define('LEAK', 1);
    set_error_handler(fn () => true);
    error_reporting(0);
    ob_start();
    header('X-Leak: 1');
    http_response_code(201);
    function leak() {}
    class Leak {}
    ignore_user_abort(true);
    set_include_path('/leak');
    stream_wrapper_unregister('http');
    mt_srand(1);
}
echo json_encode([ini_get('precision'), setlocale(LC_ALL, 0), date_default_timezone_get(), $encoding(), getcwd() === __DIR__,
    umask(), getenv('LEAK'), isset($GLOBALS['leak']), defined('LEAK'), set_error_handler(null), error_reporting(), ignore_user_abort(),
    function_exists('leak', ), class_exists('Leak', false), get_include_path(), in_array('http', stream_get_wrappers())]);
