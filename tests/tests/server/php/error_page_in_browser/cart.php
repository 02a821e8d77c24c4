<?php
final class Cart
{
    /** @param array<string, int> $items */
    public function __construct(private array $items)
    {
    }

    public function total(): int
    {
        if ($this->items === []) {
            throw new DomainException('The <cart> of "Zoë" is empty', 0, new LogicException('No row in table carts'));
        }

        return array_sum($this->items);
    }
}

$checkout = static fn (Cart $cart): int => array_sum(array_map(static fn (Cart $each): int => $each->total(), [$cart]));
echo $checkout(new Cart([])), ' euros for what is in a cart with a line so long that no narrow window has room for all of it';
