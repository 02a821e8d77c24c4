<?php

/* A queue of values between coroutines, in order, each delivered to one receiver. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\WaitQueue;

/** @implements \IteratorAggregate<int, mixed> */
final class Channel implements \IteratorAggregate, \Countable
{
    /** @var \SplQueue<mixed> */
    private readonly \SplQueue $buffer;
    private readonly WaitQueue $senders;
    private readonly WaitQueue $receivers;
    private bool $closed = false;

    /** @param int $capacity maximum number of buffered values; with 0, a send waits for its receiver */
    public function __construct(private readonly int $capacity = 0)
    {
        if ($capacity < 0) {
            throw new \ValueError('A channel\'s capacity cannot be negative');
        }
        $this->buffer = new \SplQueue();
        $this->senders = new WaitQueue();
        $this->receivers = new WaitQueue();
    }

    /**
     * Sends a value; waits while the channel is full.
     *
     * @param float|null $timeout seconds
     *
     * @throws ChannelClosedException also if it is closed while waiting: the value was not received
     * @throws TimeoutException       the value was not sent
     */
    public function send(mixed $value, ?float $timeout = null): void
    {
        if ($this->trySend($value)) {
            return;
        }
        $waiter = $this->senders->wait($timeout, $value)
            ?? throw new TimeoutException(\sprintf('No room in the channel within %g s', $timeout));
        if ($waiter->refused) {
            throw new ChannelClosedException('The channel was closed while a value waited to be sent');
        }
    }

    /**
     * Sends a value if that is possible without waiting; false otherwise.
     *
     * @throws ChannelClosedException
     */
    public function trySend(mixed $value): bool
    {
        if ($this->closed) {
            throw new ChannelClosedException('The channel is closed');
        }
        // Receivers wait only while the buffer is empty.
        if ($this->receivers->serve($value) !== null) {
            return true;
        }
        if (\count($this->buffer) < $this->capacity) {
            $this->buffer->enqueue($value);

            return true;
        }

        return false;
    }

    /**
     * Receives the next value; waits while there is none.
     *
     * @param float|null $timeout seconds
     *
     * @throws ChannelClosedException when it is closed and empty
     * @throws TimeoutException
     */
    public function receive(?float $timeout = null): mixed
    {
        if ($this->tryReceive($value)) {
            return $value;
        }
        if ($this->closed) {
            throw new ChannelClosedException('The channel is closed and empty');
        }
        $waiter = $this->receivers->wait($timeout)
            ?? throw new TimeoutException(\sprintf('Nothing in the channel within %g s', $timeout));
        if ($waiter->refused) {
            throw new ChannelClosedException('The channel was closed');
        }

        return $waiter->answer;
    }

    /** Receives a value if there is one. Returns false if there is none, whether or not the channel is closed. */
    public function tryReceive(mixed &$value): bool
    {
        if (!$this->buffer->isEmpty()) {
            $value = $this->buffer->dequeue();
            $sender = $this->senders->serve();
            if ($sender !== null) {
                $this->buffer->enqueue($sender->offer);
            }

            return true;
        }
        $sender = $this->senders->serve();
        if ($sender === null) {
            return false;
        }
        $value = $sender->offer;

        return true;
    }

    /** Closes the channel: nothing can be sent any more, but buffered values can be received. Closing twice does nothing. */
    public function close(): void
    {
        $this->closed = true;
        $this->receivers->serveAll(refused: true);
        $this->senders->serveAll(refused: true);
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** @return \Iterator<int, mixed> the values until the channel is closed and empty */
    public function getIterator(): \Iterator
    {
        while (true) {
            try {
                $value = $this->receive();
            } catch (ChannelClosedException) {
                return;
            }
            yield $value;
        }
    }

    /** Returns the number of buffered values. */
    public function count(): int
    {
        return \count($this->buffer);
    }
}
