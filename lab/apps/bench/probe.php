<?php
// Reports the facts about PHP in this system: the lab requests it once after each start, never during a measurement.
$opcache = function_exists('opcache_get_status') ? @opcache_get_status(false) : false;
$ini = [];
foreach (['memory_limit', 'output_buffering', 'opcache.validate_timestamps', 'opcache.revalidate_freq', 'realpath_cache_size',
    'zlib.output_compression', 'zend.assertions', 'precision', 'opcache.jit_buffer_size'] as $name) {
    $value = ini_get($name);
    $ini[$name] = $value === false ? '' : (string) $value;
}
header('Content-Type: application/json');
echo json_encode([
    'version' => PHP_VERSION,
    'sapi' => PHP_SAPI,
    'zts' => (bool) PHP_ZTS,
    'opcache' => (bool) ($opcache['opcache_enabled'] ?? false),
    'jit' => (bool) ($opcache['jit']['on'] ?? false),
    'extensions' => count(get_loaded_extensions()),
    'ini' => $ini,
]);
