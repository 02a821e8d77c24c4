<?php

declare(strict_types=1);

/**
 * Records for `howdah doctor` the state that requests leave in a PHP process: at the beginning of each request it compares the state
 * with that at the beginning of the previous one, and appends the differences to a file.
 *
 * It runs by `auto_prepend_file`, only in servers that the doctor has started. The application is not changed: its worker script
 * calls the `frankenphp_handle_request()` that prepend.php defines instead of the server's.
 */

namespace Howdah\Doctor;

final class Probe
{
    /** Limits of the values that are read; a report without the rest has `cut`. */
    private const MOST_VALUES = 60_000;
    private const MOST_ELEMENTS = 200;
    private const DEPTH = 12;
    private const TEXT = 40;

    /** Superglobals and variables that PHP creates for each request. */
    private const NOT_GLOBALS = [
        '_GET' => 1, '_POST' => 1, '_COOKIE' => 1, '_FILES' => 1, '_SERVER' => 1, '_REQUEST' => 1, '_SESSION' => 1, '_ENV' => 1,
        'GLOBALS' => 1, 'argv' => 1, 'argc' => 1, 'http_response_header' => 1, 'php_errormsg' => 1,
    ];

    private static string $report = '';
    /** The state at the last look: values by path. */
    private static ?array $last = null;
    /** The class that has the property at a path. */
    private static array $owners = [];
    private static ?string $previous = null;
    /** True if the script's loop ends after this request. */
    private static bool $ends = false;
    /** Static properties by class, and functions by name: false without static variables. */
    private static array $classes = [];
    private static array $functions = [];
    /** Initial values of static properties: newly loaded code has changed nothing. */
    private static array $defaults = [];
    private const EMPTY = ['NULL' => 1, 'false' => 1, '0' => 1, '0.0' => 1, '""' => 1, 'array(0)' => 1];
    private static bool $cut = false;

    /** Sets the file to write to. */
    public static function install(string $report): void
    {
        self::$report = $report;
    }

    /** Called at the end of a boot file: records the state that the snapshot has. */
    public static function booted(): void
    {
        self::$last ??= self::look(null);
    }

    /** One turn of the script's loop. */
    public static function turn(callable $handler): bool
    {
        if (self::$ends) {
            return false;
        }
        self::$last ??= self::look($handler);
        return \Howdah\handle_request(static function () use ($handler): void {
            if (self::begin($handler)) {
                $handler();
            }
        });
    }

    /** Called at the beginning of a request. Returns false if the request was for the probe only. */
    public static function begin(?callable $handler): bool
    {
        [$id, $what] = explode(' ', ($_SERVER['HTTP_X_HOWDAH_DOCTOR'] ?? '') . ' ');
        if ($id === '') {
            return true;
        }
        gc_collect_cycles();
        $line = ['id' => $id, 'after' => self::$previous, 'memory' => memory_get_usage()];
        if ($what !== 'memory') {
            $now = self::look($handler);
            $line['changes'] = self::$last === null ? [] : self::changes(self::$last, $now);
            $line['cut'] = self::$cut;
            self::$last = $now;
        }
        self::$previous = $id;
        $text = json_encode($line, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR);
        @file_put_contents(self::$report, $text . "\n", FILE_APPEND | LOCK_EX);
        if ($what === 'end' || $what === 'look') {
            self::$ends = $what === 'end';
            http_response_code(204);
            return false;
        }
        return true;
    }

    /** @return list<array<string, ?string>> */
    private static function changes(array $before, array $now): array
    {
        $changes = [];
        foreach ($now as $path => $value) {
            $was = $before[$path] ?? self::$defaults[$path] ?? null;
            // A function's initial values are not available any more; most have none.
            $is_new_function = $was === null && str_starts_with($path, "function\n") && isset(self::EMPTY[$value]);
            if ($was !== $value && !$is_new_function) {
                $changes[] = self::change((string) $path, $was, $value);
            }
        }
        foreach ($before as $path => $value) {
            if (!array_key_exists($path, $now)) {
                $changes[] = self::change((string) $path, $value, null);
            }
        }
        return array_slice($changes, 0, 2000);
    }

    private static function change(string $path, ?string $was, ?string $is): array
    {
        [$kind, $name] = explode("\n", $path, 2);
        $change = ['kind' => $kind, 'name' => $name, 'before' => $was, 'after' => $is];
        // Contents of an array are reported as the property that has the array.
        for ($up = $path; $up !== ''; $up = substr($up, 0, (int) strrpos($up, '['))) {
            if (isset(self::$owners[$up])) {
                $change['owner'] = self::$owners[$up];
                break;
            }
            if (!str_ends_with($up, ']')) {
                break;
            }
        }
        $class = $kind === 'static' ? strstr($name, '::', true) : strstr($change['owner'] ?? '', '->', true);
        if ($class && class_exists($class, false)) {
            $change['file'] = (new \ReflectionClass($class))->getFileName() ?: null;
        } elseif ($kind === 'function') {
            $change['file'] = self::$functions[preg_replace('/\(\) \$.*/s', '', $name)]?->getFileName() ?: null;
        }
        return $change;
    }

    /** @return array<string, string> values by path */
    private static function look(?callable $handler): array
    {
        self::$owners = [];
        self::$cut = false;
        $found = self::process();
        $queue = [];
        foreach (self::roots($handler) as $path => $value) {
            $queue[] = [$path, $value, 0];
        }
        $seen = [];
        for ($at = 0; $at < count($queue); $at++) {
            if ($at >= self::MOST_VALUES) {
                self::$cut = true;
                break;
            }
            [$path, $value, $depth] = $queue[$at];
            $queue[$at] = null;
            self::visit($path, $value, $depth, $queue, $seen, $found);
        }
        return $found;
    }

    /** Values that outlive a request and are reached by names. */
    private static function roots(?callable $handler): iterable
    {
        foreach ($GLOBALS as $name => $value) {
            if (!isset(self::NOT_GLOBALS[$name])) {
                yield "global\n\$$name" => $value;
            }
        }
        foreach (get_declared_classes() as $class) {
            yield from self::statics($class);
        }
        foreach (get_defined_functions()['user'] as $name) {
            self::$functions[$name] ??= new \ReflectionFunction($name);
        }
        foreach (self::$functions as $name => $function) {
            if ($function === false) {
                continue;
            }
            $variables = $function->getStaticVariables();
            if ($variables === []) {
                // It has none, and will have none.
                self::$functions[$name] = false;
            }
            foreach ($variables as $variable => $value) {
                yield "function\n$name() \$$variable" => $value;
            }
        }
        if ($handler instanceof \Closure) {
            foreach ((new \ReflectionFunction($handler))->getStaticVariables() as $name => $value) {
                yield "loop\n\$$name" => $value;
            }
            yield "loop\n\$this" => (new \ReflectionFunction($handler))->getClosureThis();
        } elseif (is_array($handler) && is_object($handler[0])) {
            yield "loop\n\$handler" => $handler[0];
        } elseif (is_object($handler)) {
            yield "loop\n\$handler" => $handler;
        }
    }

    private static function statics(string $class): iterable
    {
        if (!isset(self::$classes[$class])) {
            $reflection = new \ReflectionClass($class);
            $own = [];
            if ($reflection->isUserDefined() && !str_starts_with($class, __NAMESPACE__ . '\\')) {
                foreach ($reflection->getProperties(\ReflectionProperty::IS_STATIC) as $property) {
                    if ($property->getDeclaringClass()->name === $reflection->name) {
                        $own[] = $property;
                        self::begins_with("static\n$property->class::\$$property->name", $property->getDefaultValue());
                    }
                }
                foreach ($reflection->getMethods() as $method) {
                    if ($method->getDeclaringClass()->name === $reflection->name && !$method->isInternal()) {
                        self::$functions["$reflection->name::$method->name"] ??= $method;
                    }
                }
            }
            self::$classes[$class] = $own;
        }
        foreach (self::$classes[$class] as $property) {
            if ($property->isInitialized()) {
                yield "static\n$property->class::\$$property->name" => $property->getValue();
            }
        }
    }

    private static function begins_with(string $path, mixed $value): void
    {
        $queue = [[$path, $value, 0]];
        $seen = [];
        for ($at = 0; $at < count($queue); $at++) {
            self::visit($queue[$at][0], $queue[$at][1], $queue[$at][2], $queue, $seen, self::$defaults);
        }
    }

    private static function visit(string $path, mixed $value, int $depth, array &$queue, array &$seen, array &$found): void
    {
        if (is_array($value)) {
            $found[$path] = 'array(' . count($value) . ')';
            self::elements($path, $value, $depth, $queue);
        } elseif (!is_object($value)) {
            $found[$path] = self::text($value);
        } elseif ($value instanceof \ReflectionProperty || $value instanceof \ReflectionFunctionAbstract) {
            $found[$path] = $value::class;
        } elseif (isset($seen[spl_object_id($value)])) {
            $found[$path] = $value::class;
        } else {
            $seen[spl_object_id($value)] = $value;
            $found[$path] = self::object($value, $path, $found);
            self::inside($path, $value, $depth, $queue);
        }
    }

    private static function elements(string $path, array $value, int $depth, array &$queue): void
    {
        if ($depth >= self::DEPTH) {
            self::$cut = self::$cut || $value !== [];
            return;
        }
        $count = 0;
        foreach ($value as $key => $element) {
            if (++$count > self::MOST_ELEMENTS) {
                self::$cut = true;
                break;
            }
            $queue[] = ["{$path}[" . self::short((string) $key) . ']', $element, $depth + 1];
        }
    }

    private static function inside(string $path, object $value, int $depth, array &$queue): void
    {
        if ($depth >= self::DEPTH) {
            self::$cut = true;
            return;
        }
        if ($value instanceof \Closure) {
            $function = new \ReflectionFunction($value);
            foreach ($function->getStaticVariables() as $name => $captured) {
                $queue[] = ["$path{\$$name}", $captured, $depth + 1];
            }
            $queue[] = ["$path{\$this}", $function->getClosureThis(), $depth + 1];
            return;
        }
        foreach (get_mangled_object_vars($value) as $name => $property) {
            $parts = explode("\0", (string) $name);
            $class = count($parts) > 2 && $parts[1] !== '*' ? $parts[1] : $value::class;
            $short = end($parts);
            $inner = "$path->$short";
            self::$owners[$inner] = "$class->$short";
            $queue[] = [$inner, $property, $depth + 1];
        }
        if ($value instanceof \ArrayObject || $value instanceof \ArrayIterator || $value instanceof \SplFixedArray) {
            $array = $value instanceof \SplFixedArray ? $value->toArray() : $value->getArrayCopy();
            self::elements($path, $array, $depth, $queue);
        } elseif ($value instanceof \SplObjectStorage || $value instanceof \WeakMap) {
            self::elements($path, self::keys($value), $depth, $queue);
        }
    }

    private static function keys(\SplObjectStorage|\WeakMap $value): array
    {
        $keys = [];
        foreach ($value instanceof \WeakMap ? $value : clone $value as $key => $entry) {
            $keys[] = $value instanceof \WeakMap ? $key : $entry;
        }
        return $keys;
    }

    /** Description of an object, with state outside of its properties. */
    private static function object(object $value, string $path, array &$found): string
    {
        $class = $value::class;
        try {
            if ($value instanceof \Closure) {
                return self::callable($value);
            }
            if ($value instanceof \UnitEnum) {
                return "$class::$value->name";
            }
            if ($value instanceof \DateTimeInterface) {
                return "$class " . $value->format('c');
            }
            $state = self::connection($value);
            if ($state !== null) {
                $found["connection\n" . (self::$owners[$path] ?? strtr(substr($path, strpos($path, "\n") + 1), "\n", ' '))] = $state;
            }
            $counted = $value instanceof \ArrayObject || $value instanceof \SplObjectStorage || $value instanceof \WeakMap
                || $value instanceof \SplDoublyLinkedList || $value instanceof \SplHeap || $value instanceof \SplFixedArray
                || $value instanceof \ArrayIterator || $value instanceof \SplPriorityQueue;
            return $counted ? "$class(" . count($value) . ')' : $class;
        } catch (\Throwable) {
            return $class;
        }
    }

    /** Session state of a database connection, as far as it is known without asking its server. */
    private static function connection(object $value): ?string
    {
        if ($value instanceof \PDO) {
            $attributes = [];
            foreach (['ERRMODE', 'CASE', 'DEFAULT_FETCH_MODE', 'ORACLE_NULLS', 'AUTOCOMMIT'] as $name) {
                try {
                    $attributes[] = strtolower($name) . '=' . self::text($value->getAttribute(constant("PDO::ATTR_$name")));
                } catch (\Throwable) {
                    // This driver has no such attribute.
                }
            }
            return ($value->inTransaction() ? 'in a transaction, ' : 'idle, ') . implode(' ', $attributes);
        }
        if ($value instanceof \PgSql\Connection) {
            $status = pg_transaction_status($value);
            return $status === PGSQL_TRANSACTION_IDLE ? 'idle' : "in a transaction ($status)";
        }
        if ($value instanceof \Redis) {
            return $value->getMode() === \Redis::ATOMIC ? 'idle' : 'in a transaction or a pipeline';
        }
        return null;
    }

    private static function text(mixed $value): string
    {
        return match (true) {
            is_string($value) => '"' . self::short($value) . '"',
            is_resource($value) => get_resource_type($value),
            is_array($value) => 'array(' . count($value) . ')',
            is_object($value) => $value::class,
            is_scalar($value), $value === null => var_export($value, true),
            default => get_debug_type($value),
        };
    }

    private static function short(string $text): string
    {
        $shown = addcslashes(substr($text, 0, self::TEXT), "\0..\37\"\\");
        return strlen($text) <= self::TEXT ? $shown : $shown . '… (' . strlen($text) . ' bytes, ' . hash('crc32b', $text) . ')';
    }

    private static function callable(mixed $callable): string
    {
        if ($callable === null) {
            return 'none';
        }
        if ($callable instanceof \Closure) {
            $function = new \ReflectionFunction($callable);
            return $function->isInternal() ? "$function->name()" : 'closure at ' . $function->getFileName() . ':' . $function->getStartLine();
        }
        if (is_array($callable)) {
            return (is_object($callable[0]) ? $callable[0]::class . '->' : "$callable[0]::") . "$callable[1]()";
        }
        return is_object($callable) ? $callable::class : "$callable()";
    }

    /** State of the process, not of the code. */
    private static function process(): array
    {
        $found = [];
        $put = static function (string $kind, string $name, mixed $value) use (&$found): void {
            $is_whole = $kind === 'handler' || $kind === 'autoloader' || $kind === 'wrapper';
            $found["$kind\n$name"] = is_string($value) ? ($is_whole ? $value : self::short($value)) : self::text($value);
        };
        foreach (ini_get_all(null, false) as $name => $value) {
            $put('ini', (string) $name, $value ?? 'null');
        }
        foreach (get_defined_constants(true)['user'] ?? [] as $name => $value) {
            $put('constant', (string) $name, $value);
        }
        // The list has the request's variables too, which are not the process's.
        foreach (array_keys(getenv()) as $name) {
            $own = getenv((string) $name, true);
            if ($own !== false) {
                $put('env', (string) $name, $own);
            }
        }
        foreach ($_ENV as $name => $value) {
            $put('env', "\$_ENV[$name]", $value);
        }
        foreach (get_included_files() as $file) {
            $put('code', "include $file", '');
        }
        self::handlers($put);
        self::surroundings($put);
        self::open($put);
        return $found;
    }

    private static function handlers(callable $put): void
    {
        $handler = set_error_handler(static fn() => false);
        restore_error_handler();
        $put('handler', 'error handler', self::callable($handler));
        $handler = set_exception_handler(static fn() => null);
        restore_exception_handler();
        $put('handler', 'exception handler', self::callable($handler));
        foreach (spl_autoload_functions() as $at => $loader) {
            $put('autoloader', "autoloader $at", self::callable($loader));
        }
        $put('autoloader', 'number of autoloaders', count(spl_autoload_functions()));
        if (function_exists('pcntl_signal_get_handler')) {
            for ($signal = 1; $signal < 32; $signal++) {
                $put('signal', "handler of signal $signal", is_int($now = pcntl_signal_get_handler($signal)) ? $now : self::callable($now));
            }
            $put('signal', 'pcntl_async_signals()', pcntl_async_signals());
            $put('process', 'priority', @pcntl_getpriority());
            $blocked = [];
            // Changes nothing, as this signal cannot be blocked; from PHP 8.4 on there has to be one.
            pcntl_sigprocmask(SIG_UNBLOCK, [SIGKILL], $blocked);
            $put('signal', 'blocked signals', implode(' ', $blocked));
        }
        if (function_exists('libxml_get_external_entity_loader')) {
            $put('handler', 'external entity loader of libxml', self::callable(libxml_get_external_entity_loader()));
        }
    }

    private static function surroundings(callable $put): void
    {
        $put('directory', 'current directory', (string) getcwd());
        $put('locale', 'locale', (string) setlocale(LC_ALL, '0'));
        $put('timezone', 'time zone', date_default_timezone_get());
        $put('umask', 'umask', sprintf('%04o', umask()));
        $put('reporting', 'error_reporting()', error_reporting());
        $put('buffer', 'open output buffers', implode(', ', ob_list_handlers()));
        $put('wrapper', 'stream wrappers', implode(' ', stream_get_wrappers()));
        $put('wrapper', 'stream filters', implode(' ', stream_get_filters()));
        $put('wrapper', 'default stream context', json_encode(stream_context_get_options(stream_context_get_default()), JSON_PARTIAL_OUTPUT_ON_ERROR));
        $put('process', 'ignore_user_abort()', ignore_user_abort());
        $put('process', 'gc_enabled()', gc_enabled());
        $settings = [
            'mb_internal_encoding', 'mb_language', 'mb_substitute_character', 'mb_regex_encoding', 'mb_regex_set_options',
            'mb_http_output', 'libxml_use_internal_errors', 'session_name', 'session_module_name', 'session_save_path', 'session_cache_limiter',
            'session_cache_expire', 'spl_autoload_extensions', 'posix_getsid', 'posix_getpgrp', 'bcscale',
        ];
        foreach ($settings as $name) {
            if (function_exists($name)) {
                $put('setting', "$name()", $name === 'posix_getsid' ? posix_getsid(0) : $name());
            }
        }
        if (function_exists('mb_detect_order')) {
            $put('setting', 'mb_detect_order()', implode(' ', (array) mb_detect_order()));
        }
        if (function_exists('libxml_get_errors')) {
            $put('setting', 'errors kept by libxml', count(libxml_get_errors()));
        }
        if (function_exists('session_get_cookie_params')) {
            $put('setting', 'session_get_cookie_params()', json_encode(session_get_cookie_params()));
        }
        if (class_exists('mysqli_driver', false)) {
            $put('setting', 'mysqli_report()', (new \mysqli_driver())->report_mode);
        }
        if (class_exists('Locale', false)) {
            $put('locale', 'Locale::getDefault()', \Locale::getDefault());
        }
        if (function_exists('textdomain')) {
            $put('setting', 'textdomain()', (string) textdomain(null));
        }
        if (function_exists('posix_getrlimit')) {
            $put('process', 'limits', json_encode(posix_getrlimit()));
        }
    }

    /** Streams and descriptors that are open. */
    private static function open(callable $put): void
    {
        $open = [];
        foreach (get_resources() as $resource) {
            $type = get_resource_type($resource);
            if ($type === 'stream' && is_resource($resource)) {
                $about = stream_get_meta_data($resource);
                $type = 'stream ' . ($about['uri'] ?? $about['stream_type']);
            }
            $open[$type] = ($open[$type] ?? 0) + 1;
        }
        foreach ($open as $type => $count) {
            $put('resource', $type, $count);
        }
        $links = @scandir('/proc/self/fd');
        // Without `.`, `..` and the descriptor that reads the directory.
        $put('resource', 'open descriptors', $links === false ? 0 : count($links) - 3);
    }
}
