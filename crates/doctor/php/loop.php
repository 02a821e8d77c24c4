<?php

/**
 * A worker script for applications that have none: each request runs the script that classic mode would run, in one process.
 * Declarations and state of such an application stay for the next request; `howdah doctor` finds out with which effect.
 */

(static function (): void {
    $root = '__ROOT__';
    $front = '__FRONT__';
    $find = static function (string $uri) use ($root, $front): string {
        $path = rawurldecode((string) (parse_url("http://localhost$uri", PHP_URL_PATH) ?: '/'));
        $under = realpath($root . $path);
        if ($under !== false && str_starts_with("$under/", "$root/")) {
            if (is_dir($under) && is_file("$under/index.php")) {
                return "$under/index.php";
            }
            if (is_file($under) && str_ends_with($under, '.php')) {
                return $under;
            }
        }
        return "$root/$front";
    };
    if (is_file('__AUTOLOAD__')) {
        require '__AUTOLOAD__';
    }
    $handler = static function () use ($find, $root): void {
        $file = $find($_SERVER['REQUEST_URI']);
        $_SERVER['SCRIPT_FILENAME'] = $file;
        $_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = substr($file, strlen($root));
        $directory = dirname($file);
        chdir($directory);
        (static function (): void {
            require func_get_arg(0);
        })($file);
        // A directory that the application has changed stays, for the probe.
        if (getcwd() === $directory) {
            chdir($root);
        }
    };
    chdir($root);
    while (frankenphp_handle_request($handler)) {
    }
})();
