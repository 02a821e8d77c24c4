<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/** Work for a task worker: one task, or a tick. */
final class Order
{
    /** The path of task workers. A request that does not come through the tasks' socket gets 404 for it. */
    public const PATH = '/_howdah/octane';

    /** Maximum size of an order in bytes. */
    public const LIMIT = 16 << 20;

    private const PURPOSE = 'order';

    /**
     * @param string $kind  "resolve": the caller waits for the result; "dispatch": it does not; "tick"
     * @param int    $until hrtime() after which it must not begin: the caller has given up, or the order is outdated
     * @param string $task  serialized
     */
    public function __construct(public readonly string $kind, public readonly int $until, public readonly string $task = '')
    {
    }

    /** @throws \LengthException if it is too long */
    public function sealed(Seal $seal): string
    {
        $sealed = $seal->put(self::PURPOSE, "$this->kind\n$this->until\n$this->task");
        $length = \strlen($sealed);

        return $length <= self::LIMIT ? $sealed : throw new \LengthException("A task of $length bytes exceeds the limit of " . self::LIMIT . '.');
    }

    /** Returns null if no process of this server has written it. */
    public static function open(Seal $seal, string $sealed): ?self
    {
        $text = \strlen($sealed) <= self::LIMIT ? $seal->open(self::PURPOSE, $sealed) : null;
        [$kind, $until, $task] = $text === null ? ['', 0, ''] : explode("\n", $text, 3);

        return $text === null ? null : new self($kind, (int) $until, $task);
    }

    /** Returns the purpose that binds a result to this order. */
    public static function purposeOfResult(string $sealed): string
    {
        return 'result of ' . Seal::mark($sealed);
    }
}
