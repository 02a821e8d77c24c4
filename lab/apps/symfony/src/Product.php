<?php

namespace Orders;

/** A product, computed from its number: a small object, as most APIs serve. */
final class Product
{
    public function __construct(
        public int $id,
        public string $name,
        public int $price,
    ) {
    }

    public static function numbered(int $id): self
    {
        return new self($id, "product $id", 100 + $id);
    }
}
