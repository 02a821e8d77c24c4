<?php

namespace Orders;

use Symfony\Component\Validator\Constraints as Assert;
use Symfony\Component\Validator\Mapping\ClassMetadata;

/** An order with its lines, computed from its number instead of read from a database. */
final class Order
{
    /** @param list<array{name: string, count: int, price: int}> $lines */
    public function __construct(
        public int $id,
        public string $customer,
        public string $email,
        public string $currency,
        public array $lines,
        public \DateTimeImmutable $placed,
    ) {
    }

    public static function numbered(int $id, string $currency): self
    {
        $lines = [];
        for ($i = 1; $i <= 5; $i++) {
            $lines[] = ['name' => "article $id-$i", 'count' => $i, 'price' => 100 * $i + $id];
        }
        $placed = new \DateTimeImmutable('2026-01-01 12:00:00 UTC');

        return new self($id, "customer $id", "customer$id@example.com", $currency, $lines, $placed);
    }

    public function getTotal(): int
    {
        return array_sum(array_map(static fn (array $line) => $line['count'] * $line['price'], $this->lines));
    }

    public static function loadValidatorMetadata(ClassMetadata $metadata): void
    {
        $metadata->addPropertyConstraint('id', new Assert\Positive());
        $metadata->addPropertyConstraint('customer', new Assert\Length(['min' => 3, 'max' => 80]));
        $metadata->addPropertyConstraint('email', new Assert\Email());
        $metadata->addPropertyConstraint('currency', new Assert\Choice(['EUR', 'USD', 'CHF']));
        $metadata->addPropertyConstraint('lines', new Assert\Count(['min' => 1, 'max' => 20]));
    }
}
