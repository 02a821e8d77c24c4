<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/** Work for a task worker: one task, or a tick. */
final class Order
{
    /** The path that task workers have. A request from elsewhere than the socket of the tasks gets 404 there. */
    public const PATH = '/_howdah/octane';

    /** Bytes that an order may have. */
    public const LIMIT = 16 << 20;

    private const PURPOSE = 'order';

    /**
     * @param string $kind  "resolve": the caller waits for the result; "dispatch": it does not; "tick"
     * @param int    $until hrtime() after which it is not to be begun any more: the caller has given up, or it is an old one
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

        return $length <= self::LIMIT ? $sealed : throw new \LengthException("A task of $length bytes: " . self::LIMIT . ' are the most.');
    }

    /** Null if no process of this server has written it. */
    public static function open(Seal $seal, string $sealed): ?self
    {
        $text = \strlen($sealed) <= self::LIMIT ? $seal->open(self::PURPOSE, $sealed) : null;
        [$kind, $until, $task] = $text === null ? ['', 0, ''] : explode("\n", $text, 3);

        return $text === null ? null : new self($kind, (int) $until, $task);
    }

    /** The result in answer to this very order. */
    public static function purposeOfResult(string $sealed): string
    {
        return 'result of ' . Seal::mark($sealed);
    }
}
