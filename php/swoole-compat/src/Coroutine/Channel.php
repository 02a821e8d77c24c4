<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

use Howdah\CancelledException;
use Howdah\ChannelClosedException;
use Howdah\TimeoutException;

/** Swoole's channel: returns false where Howdah's throws, with the reason in $errCode. A timeout of 0 or less means none. */
class Channel
{
    public int $capacity;
    public int $errCode = SWOOLE_CHANNEL_OK;
    private readonly \Howdah\Channel $channel;
    private int $pushing = 0;
    private int $popping = 0;

    public function __construct(int $size = 1)
    {
        $this->capacity = max(1, $size);
        $this->channel = new \Howdah\Channel($this->capacity);
    }

    public function push(mixed $data, float $timeout = -1): bool
    {
        ++$this->pushing;
        try {
            return $this->attempt(function () use ($data, $timeout): bool {
                $this->channel->send($data, $timeout > 0 ? $timeout : null);

                return true;
            });
        } finally {
            --$this->pushing;
        }
    }

    public function pop(float $timeout = -1): mixed
    {
        ++$this->popping;
        try {
            return $this->attempt(fn (): mixed => $this->channel->receive($timeout > 0 ? $timeout : null));
        } finally {
            --$this->popping;
        }
    }

    public function isEmpty(): bool
    {
        return \count($this->channel) === 0;
    }

    public function isFull(): bool
    {
        return \count($this->channel) >= $this->capacity;
    }

    public function close(): bool
    {
        if ($this->channel->isClosed()) {
            return false;
        }
        $this->channel->close();
        $this->errCode = SWOOLE_CHANNEL_CLOSED;

        return true;
    }

    public function length(): int
    {
        return \count($this->channel);
    }

    /** @return array<string, int> */
    public function stats(): array
    {
        return ['consumer_num' => $this->popping, 'producer_num' => $this->pushing, 'queue_num' => $this->length()];
    }

    private function attempt(\Closure $operation): mixed
    {
        try {
            $result = $operation();
            $this->errCode = SWOOLE_CHANNEL_OK;

            return $result;
        } catch (TimeoutException) {
            $this->errCode = SWOOLE_CHANNEL_TIMEOUT;
        } catch (ChannelClosedException) {
            $this->errCode = SWOOLE_CHANNEL_CLOSED;
        } catch (CancelledException) {
            $this->errCode = SWOOLE_CHANNEL_CANCELED;
        }

        return false;
    }
}
