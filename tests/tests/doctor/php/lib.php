<?php

/** State that the leaking scripts of the doctor's tests leak into. */

namespace App;

final class User
{
    public function __construct(public string $name) {}
}

final class Cart
{
    public static array $items = [];
    public static int $count = 0;
    public static float $total = 0.5;
    public static bool $open = false;
    public static string $log = '';
    public static ?User $user = null;
    public static ?string $first = null;
    public static array $deep = ['a' => ['b' => []]];
    public static ?string $theme = null;
    private static array $secrets = [];
    protected static ?string $token = null;
    public static bool $done = false;
    public static int $shown = 0;

    public static function remember(string $name): void
    {
        self::$secrets[] = $name;
    }

    public static function token(): string
    {
        return self::$token ??= bin2hex(random_bytes(16));
    }
}

abstract class Base
{
    public static int $made = 0;
}

final class Child extends Base
{
    public static int $own = 0;
}

trait Counts
{
    public static int $counted = 0;

    public function count(): int
    {
        static $times = 0;
        return ++$times;
    }

    public static function tick(): void
    {
        self::$counted++;
    }
}

final class Counter
{
    use Counts;
}

enum Level
{
    case Low;
    case High;
}

final class Bag
{
    public static ?\ArrayObject $list = null;
    public static ?\SplObjectStorage $objects = null;
    public static ?\SplQueue $queue = null;
    public static ?\SplPriorityQueue $priorities = null;
    public static ?\SplMinHeap $heap = null;
    public static ?\SplFixedArray $fixed = null;
    public static ?\WeakMap $weak = null;
    public static array $keys = [];
    public static ?\DateTimeImmutable $day = null;
    public static Level $level = Level::Low;
    public static array $hooks = [];
    public static ?\Closure $counter = null;
    public static array $files = [];
    public static array $handles = [];
}

final class Service
{
    public array $items = [];
    public ?string $current = null;
    private int $uses = 0;

    public function use(): void
    {
        $this->uses++;
    }
}

final class Container
{
    private static ?self $instance = null;
    /** @var array<string, object> */
    public array $services = [];

    public static function get(string $name): object
    {
        self::$instance ??= new self();
        return self::$instance->services[$name] ??= new Service();
    }
}

final class Db
{
    private static ?\PDO $pdo = null;

    public static function get(): \PDO
    {
        return self::$pdo ??= new \PDO('sqlite::memory:');
    }
}

final class Session implements \SessionHandlerInterface
{
    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        return true;
    }

    public function read(string $id): string
    {
        return '';
    }

    public function write(string $id, string $data): bool
    {
        return true;
    }

    public function destroy(string $id): bool
    {
        return true;
    }

    public function gc(int $max): int
    {
        return 0;
    }
}

function visits(): int
{
    static $visits = 0;
    return ++$visits;
}

function visitors(string $name): void
{
    static $names = [];
    $names[] = $name;
}

function cached(): int
{
    static $sum = null;
    return $sum ??= array_sum(range(1, 100));
}

function who(): string
{
    return $_SERVER['HTTP_USER_AGENT'] ?? '';
}
