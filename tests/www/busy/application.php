<?php
/*
 * The application of tests/tests/async/difference.rs: classes whose every method waits, and `pause()`, the wait. Nothing a script prints
 * depends on time, chance or process, and all of it carries the request's marker.
 */

define('WAITS', Howdah\mode() === 'async');

/* A wait of a random kind and length; none in classic mode. Afterwards the code must find the same request. */
function pause(): void
{
    if (!WAITS) {
        return;
    }
    $mark = $_GET['m'];
    switch (random_int(0, 11)) {
        case 0:
            $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $read = [$pair[0]];
            $write = $except = null;
            stream_select($read, $write, $except, 0, random_int(1, 2000));
            break;
        case 1:
            echo_of($mark) === $mark || print '[a foreign answer in a wait]';
            break;
        case 2:
            time_nanosleep(0, random_int(1, 2000000));
            break;
        case 3:
            $lock = fopen(dirname(__DIR__, 2) . '/marks/lock', 'c');
            flock($lock, LOCK_EX);
            usleep(random_int(0, 100));
            break;
        default:
            usleep(random_int(0, 2000));
    }
    $_GET['m'] === $mark || print "[$mark has become {$_GET['m']}]";
}

/* The response of the test's server: the text, after a while. */
function echo_of(string $text): string
{
    $stream = stream_socket_client('tcp://127.0.0.1:' . getenv('ECHO_PORT'), $no, $why, 20) ?: throw new LogicException($why);
    fwrite($stream, "$text\n");

    return trim(fgets($stream));
}

/* The request's own number generator. */
final class Chance
{
    public static function below(int $n): int
    {
        $GLOBALS['chance'] ??= crc32($_GET['m']);
        $GLOBALS['chance'] = ($GLOBALS['chance'] * 1103515245 + 12345) & 0x7fffffff;

        return ($GLOBALS['chance'] >> 8) % $n;
    }

    /** @return list<int> */
    public static function numbers(int $count): array
    {
        $numbers = [];
        for ($i = 0; $i < $count; $i++) {
            $numbers[] = self::below(100);
        }

        return $numbers;
    }
}

/* Every magic method waits. */
#[Attribute]
final class Magic implements ArrayAccess, Countable, IteratorAggregate, JsonSerializable
{
    private array $values = [];

    public function __construct(public string $mark = '', private bool $echoes = false)
    {
        pause();
    }

    public function __destruct()
    {
        if ($this->echoes) {
            pause();
            echo "[~$this->mark]";
        }
    }

    public function __toString(): string
    {
        pause();

        return "<$this->mark>";
    }

    public function __get(string $name): mixed
    {
        pause();

        return ($this->values[$name] ?? 'none') . $this->mark;
    }

    public function __set(string $name, mixed $value): void
    {
        pause();
        $this->values[$name] = $value;
    }

    public function __isset(string $name): bool
    {
        pause();

        return isset($this->values[$name]);
    }

    public function __unset(string $name): void
    {
        pause();
        unset($this->values[$name]);
    }

    public function __call(string $name, array $arguments): string
    {
        pause();

        return "$name(" . implode(',', $arguments) . ") of $this->mark";
    }

    public static function __callStatic(string $name, array $arguments): string
    {
        pause();

        return "::$name(" . implode(',', $arguments) . ')';
    }

    public function __invoke(mixed $value): string
    {
        pause();

        return "$value by $this->mark";
    }

    public function __clone()
    {
        pause();
        $this->mark .= '+';
    }

    public function __debugInfo(): array
    {
        pause();

        return ['mark' => $this->mark];
    }

    public static function __set_state(array $values): self
    {
        pause();

        return new self($values['mark']);
    }

    public function __serialize(): array
    {
        pause();

        return [$this->mark, serialize($this->values)];
    }

    public function __unserialize(array $data): void
    {
        pause();
        [$this->mark, $values] = $data;
        $this->values = unserialize($values);
        $this->echoes = false;
    }

    public function offsetExists(mixed $offset): bool
    {
        pause();

        return isset($this->values[$offset]);
    }

    public function offsetGet(mixed $offset): mixed
    {
        pause();

        return ($this->values[$offset] ?? 'none') . $this->mark;
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        pause();
        $offset === null ? $this->values[] = $value : $this->values[$offset] = $value;
    }

    public function offsetUnset(mixed $offset): void
    {
        pause();
        unset($this->values[$offset]);
    }

    public function count(): int
    {
        pause();

        return strlen($this->mark);
    }

    public function getIterator(): Generator
    {
        pause();
        foreach ($this->values as $key => $value) {
            pause();
            yield $key => $value . $this->mark;
        }
    }

    public function jsonSerialize(): mixed
    {
        pause();

        return ['json' => $this->mark, 'inner' => json_encode([$this->mark])];
    }
}

/* The old serialisation interface. */
final class Sleeper
{
    public mixed $self = null;

    public function __construct(public string $mark)
    {
    }

    public function __sleep(): array
    {
        pause();

        return ['mark', 'self'];
    }

    public function __wakeup(): void
    {
        pause();
        $this->mark .= '!';
    }
}

final class Steps implements Iterator
{
    private int $at = 0;

    public function __construct(private string $mark, private int $count = 3)
    {
    }

    public function current(): mixed
    {
        pause();

        return "$this->mark$this->at";
    }

    public function key(): mixed
    {
        pause();

        return $this->at;
    }

    public function next(): void
    {
        pause();
        $this->at++;
    }

    public function rewind(): void
    {
        pause();
        $this->at = 0;
    }

    public function valid(): bool
    {
        pause();

        return $this->at < $this->count;
    }
}

final class Heap extends SplHeap
{
    protected function compare(mixed $a, mixed $b): int
    {
        pause();

        return strcmp($a, $b);
    }
}

/* Created by a parameter's default and by a constant expression. */
function with_default(string $mark, Magic $made = new Magic('default')): string
{
    static $calls = ['constant'];

    return "$mark $made $calls[0]";
}

/* Called by a style sheet. */
function xsl_waits(string $text): string
{
    pause();

    return "($text)";
}

/* Reads and writes the request's files next to the script; every step waits. */
final class Wrapper
{
    private static array $files = [];
    public mixed $context = null;
    private string $name = '';
    private int $at = 0;

    public function stream_open(string $path, string $mode): bool
    {
        pause();
        $this->name = $path;
        if ($mode[0] === 'w') {
            self::$files[$path] = '';
        }

        return isset(self::$files[$path]);
    }

    public function stream_read(int $count): string
    {
        pause();
        $data = substr(self::$files[$this->name], $this->at, min($count, 20));
        $this->at += strlen($data);

        return $data;
    }

    public function stream_write(string $data): int
    {
        pause();
        self::$files[$this->name] .= $data;

        return strlen($data);
    }

    public function stream_eof(): bool
    {
        return $this->at >= strlen(self::$files[$this->name]);
    }

    public function stream_stat(): array
    {
        pause();

        return ['size' => strlen(self::$files[$this->name])];
    }

    public function stream_set_option(): bool
    {
        return false;
    }

    public function stream_close(): void
    {
        pause();
    }

    public function url_stat(string $path): array|false
    {
        pause();

        return isset(self::$files[$path]) ? ['size' => strlen(self::$files[$path]), 'mode' => 0100644] : false;
    }

    public function unlink(string $path): bool
    {
        pause();
        unset(self::$files[$path]);

        return true;
    }

    public function dir_opendir(string $path): bool
    {
        pause();
        $this->name = $path;

        return true;
    }

    public function dir_readdir(): string|false
    {
        pause();

        return $this->at++ < 2 ? basename($this->name) . $this->at : false;
    }

    public function dir_closedir(): void
    {
        pause();
    }
}

final class Upper extends php_user_filter
{
    public function filter($in, $out, &$consumed, bool $closing): int
    {
        while ($bucket = stream_bucket_make_writeable($in)) {
            pause();
            $bucket->data = strrev($bucket->data) . $this->params;
            $consumed += $bucket->datalen;
            stream_bucket_append($out, $bucket);
        }

        return PSFS_PASS_ON;
    }
}

/* Sessions in a table; every step waits. */
final class Sessions implements SessionHandlerInterface
{
    private static array $kept = [];

    public function __construct(private string $mark)
    {
    }

    public function open(string $path, string $name): bool
    {
        pause();
        echo "[open $this->mark]";

        return true;
    }

    public function read(string $id): string
    {
        pause();
        $_GET['m'] === $this->mark || print '[a foreign handler]';

        return self::$kept[$id] ?? '';
    }

    public function write(string $id, string $data): bool
    {
        pause();
        self::$kept[$id] = $data;

        return true;
    }

    public function close(): bool
    {
        pause();
        echo "[close $this->mark]";

        return true;
    }

    public function destroy(string $id): bool
    {
        pause();
        unset(self::$kept[$id]);

        return true;
    }

    public function gc(int $lifetime): int
    {
        return 0;
    }
}

if (extension_loaded('soap')) {
    /* A client with delayed responses; it sends no request. */
    final class Caller extends SoapClient
    {
        public string $sent = '';

        public function __doRequest(string $request, string $location, string $action, int $version, bool $oneWay = false, ?string $parser = null): ?string
        {
            pause();
            $mark = $_GET['m'];
            $this->sent .= strip_tags($request);
            @trigger_error("beside the call of $mark");
            if (str_contains($request, 'fail')) {
                $body = "<E:Fault><faultcode>E:Server</faultcode><faultstring>failed $mark</faultstring></E:Fault>";
            } else {
                $body = "<o:workResponse><return i:type='o:made'><text i:type='o:t'>text $mark</text><made i:type='o:made'><mark i:type='s:string'>$mark</mark></made></return></o:workResponse>";
            }
            pause();

            return "<E:Envelope xmlns:E='http://schemas.xmlsoap.org/soap/envelope/' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'"
                . " xmlns:s='http://www.w3.org/2001/XMLSchema' xmlns:o='urn:own'><E:Body>$body</E:Body></E:Envelope>";
        }
    }
}

/* Created from a SOAP response; its properties wait. */
final class Soaped
{
    private array $values = [];

    public function __set(string $name, mixed $value): void
    {
        pause();
        $this->values[$name] = $value;
    }

    public function __get(string $name): mixed
    {
        return $this->values[$name] ?? null;
    }
}

/* Called by a SOAP server. */
final class Served
{
    public function __construct(private string $mark)
    {
    }

    public function hello(string $from): string
    {
        pause();

        return "hello $from by $this->mark";
    }
}

/* Calls a function twice, in coroutines if they are supported. */
function both(callable $function, string $one, string $other): void
{
    if (WAITS) {
        Howdah\all([static fn () => $function($one), static fn () => $function($other)]);
    } else {
        $function($one);
        $function($other);
    }
}

/* The very end: a request's report after everything else has run. */
function report(string $mark): void
{
    $own = [$_GET['m'], $_REQUEST['m'], $_SERVER['HTTP_X_MARK'], $_COOKIE['c'], $_POST['p'] ?? 'none', $GLOBALS['own'] ?? 'none'];
    $rest = [filter_input(INPUT_GET, 'm'), getenv('HTTP_X_MARK'), md5(file_get_contents('php://input')), http_response_code(), headers_list()];
    echo "\n", json_encode([$own, $rest, ob_get_level(), error_get_last()['message'] ?? null, json_last_error_msg(), preg_last_error_msg()], JSON_UNESCAPED_SLASHES);
    echo ini_get('user_agent'), ini_get('precision'), date_default_timezone_get(), mb_internal_encoding(), error_reporting(), " $mark";
}

spl_autoload_register(static function (string $class): void {
    if (preg_match('/^Auto(\d+)$/', $class, $found)) {
        usleep(WAITS ? random_int(0, 200) : 0);
        eval("final class $class { const NUMBER = $found[1]; }");
    }
});
stream_wrapper_register('busy', Wrapper::class);
stream_filter_register('busy.reverse', Upper::class);
