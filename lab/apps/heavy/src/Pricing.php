<?php

namespace Heavy;

use Heavy\Entity\Variant;

/** Computes a variant's price for a visitor: the channel's price, its discount, and the tax of the visitor's zone. */
final class Pricing
{
    public function of(Variant $variant, string $channel, string $zone): array
    {
        $price = $variant->prices[$channel] ?? $variant->prices->first();
        $rate = $variant->taxCategory->rates[$zone];
        $amount = (float) $rate->amount;
        $tax = $rate->included ? (int) round($price->price - $price->price / (1 + $amount)) : (int) round($price->price * $amount);
        return [
            'price' => $rate->included ? $price->price : $price->price + $tax,
            'originalPrice' => $price->originalPrice,
            'discount' => round(1 - $price->price / $price->originalPrice, 3),
            'tax' => $tax,
            'rate' => $variant->taxCategory->code,
        ];
    }
}
