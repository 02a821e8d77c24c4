<?php
global $global, $object, $file;
$global++;
Holder::$n++;
Holder::$list[] = 1;
$object->own++;
echo json_encode([$global, Holder::$n, count(Holder::$list), $object->own, counter(), ini_get('precision'), getcwd(), umask(),
    getenv('BOOT'), getenv('LEAK'), defined('LEAKED'), class_exists('Leaked', false), function_exists('leaked'),
    date_default_timezone_get(), setlocale(LC_ALL, 0), mb_internal_encoding(), count(get_included_files()), ftell($file),
    count(glob('/proc/self/fd/*')), in_array('leak', stream_get_wrappers()), count(spl_autoload_functions()),
    error_reporting(), isset($GLOBALS['made']), ob_get_level(), memory_get_usage() > 8 << 20, error_get_last()]);
ini_set('precision', '3');
chdir('/');
umask(0);
putenv('BOOT=2');
putenv('LEAK=1');
define('LEAKED', 1);
eval('class Leaked {} function leaked() {}');
date_default_timezone_set('Asia/Tokyo');
setlocale(LC_ALL, 'C.UTF-8');
mb_internal_encoding('ASCII');
file_put_contents('/proc/self/comm', 'leak');
$GLOBALS['made'] = fopen('/dev/null', 'r');
$GLOBALS['made2'] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
fread($file, 10);
class_alias('Holder', 'Leaked2');
stream_wrapper_register('leak', 'Holder');
spl_autoload_register(fn () => null);
error_reporting(0);
set_error_handler(fn () => true);
set_exception_handler(fn () => null);
ob_start();
register_shutdown_function(fn () => null);
$GLOBALS['big'] = str_repeat('x', 30 << 20);
$GLOBALS['many'] = range(1, 100000);
gc_disable();
ignore_user_abort(true);
@trigger_error('left');
$GLOBALS['cycle'] = new ArrayObject;
$GLOBALS['cycle'][] = $GLOBALS['cycle'];
fclose($file);
