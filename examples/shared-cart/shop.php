<?php
// A shop with the mistake that makes worker mode dangerous: a service looks up the visitor's cart once and keeps it.
// With PHP-FPM the service ends with the request. In worker mode it stays, and the next visitor sees this visitor's
// cart.

declare(strict_types=1);

/** The cart of the current visitor. */
final class CurrentCart
{
    /** @var list<string>|null */
    private ?array $items = null;

    /** @return list<string> */
    public function items(): array
    {
        // The mistake: data of a request stays in a service.
        return $this->items ??= $_SESSION['cart'] ?? [];
    }

    public function add(string $item): void
    {
        $_SESSION['cart'] = $this->items = [...$this->items(), $item];
    }
}

final class Shop
{
    public function __construct(private readonly CurrentCart $cart = new CurrentCart())
    {
    }

    public function respond(): void
    {
        session_start();
        if ($_SERVER['REQUEST_METHOD'] === 'POST') {
            $this->cart->add((string) ($_POST['item'] ?? 'nothing'));
            http_response_code(303);
            header('Location: /');

            return;
        }
        header('Content-Type: text/plain; charset=utf-8');
        $items = $this->cart->items();
        echo 'Your cart: ', $items === [] ? 'empty' : implode(', ', $items), "\n";
    }
}
