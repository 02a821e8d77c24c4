<?php
$root = dirname(__DIR__) . '/root';
require $root . '/gate.php';
$scripts = [];
// The file for a path, as the server finds it in classic mode.
$find = function (string $path) use ($root): ?string {
    for ($part = $path; $part !== '' && $part !== '.'; $part = dirname($part)) {
        foreach ([$part, rtrim($part, '/') . '/index.php'] as $name) {
            if (str_ends_with($name, '.php') && is_file($root . $name)) {
                return $root . $name;
            }
        }
        if ($part === '/') {
            break;
        }
    }
    return null;
};
$handle = function () use (&$scripts, $find) {
    $path = rawurldecode(explode('?', preg_replace('~^https?://[^/]*~', '', getenv('REQUEST_URI')))[0]);
    $file = $find($path);
    if ($file === null) {
        http_response_code(404);
        return;
    }
    chdir(dirname($file));
    $script = $scripts[$file] ?? require $file;
    if ($script instanceof Closure) {
        $scripts[$file] = $script;
        $script();
    }
};
while (frankenphp_handle_request($handle)) {
}
